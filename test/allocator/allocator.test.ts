import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { deviceId, invitationDigest } from "../../src/shared/identifiers.ts";
import { Allocator } from "../../src/worker/allocator/allocator.ts";
import { badgeHolder, holderKey } from "../../src/worker/allocator/holder.ts";
import { allocatorOf, aroundObjectD1, bindObject, leasesOf, withLedger } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { requestBadge } from "../support/http.ts";
import { freedNumbers } from "../support/ledger.ts";
import { linesOf } from "../support/log-lines.ts";
import { KeptQueue } from "../support/outbox.ts";
import { badgeRows, eventRows } from "../support/rows.ts";
import { until } from "../support/until.ts";

const warn = vi.spyOn(console, "warn");

beforeEach(() => {
  warn.mockReset().mockImplementation(() => {});
  vi.spyOn(console, "log").mockImplementation(() => {});
});

const WITH_WEBHOOK = { webhookUrl: "https://hooks.example/badges" };

const rulesOf = ({ firstNumber: first, lastNumber: last }: TestApplication) => ({
  range: { first, last },
  reuseAfterSeconds: 0,
});

const requestOf = (device: string, eventId: string) => ({
  ...{ device: deviceId.parse(device), userId: "alice", metadata: null, signingKeyId: 1 },
  ...{ eventId, issuedAt: Date.now() },
});

describe("an object whose instance was started without a name (contract section 1)", () => {
  it("issues, reclaims and logs under the application ID that its first caller passed", async () => {
    const application = await createApplication();
    // An object without a name: as an instance that was started by ID string, or by an alarm of long ago.
    const id = env.ALLOCATOR.newUniqueId();
    const stub = env.ALLOCATOR.get(env.ALLOCATOR.idFromString(id.toString()));
    const request = requestOf("device", "evt_unnamed");
    const issued = await stub.issue(rulesOf(application), request, application.id);
    expect(issued).toMatchObject({ kind: "written" });
    expect(await badgeRows(application)).toMatchObject([{ device: "device", eventId: "evt_unnamed" }]);
    await evictDurableObject(stub);
    // The alarm comes first, while D1 is away.
    await runInDurableObject(stub, (instance, { storage }) => {
      storage.sql.exec("UPDATE lease SET confirmed = 0, leased_at = 0");
      Object.defineProperty(instance, "env", { value: { ...env, DB: undefined, DB_2: undefined }, configurable: true });
    });
    await runDurableObjectAlarm(stub);
    const lines = linesOf(warn).filter((line) => line.application === application.id);
    expect(lines).toMatchObject([{ event: "reclaim-postponed" }]);
    await evictDurableObject(stub);
    // A Worker of an earlier version passes no ID.
    expect(await stub.issue(rulesOf(application), requestOf("other", "evt_other"))).toMatchObject({ kind: "written" });
    await runDurableObjectAlarm(stub);
    expect(await badgeRows(application)).toHaveLength(2);
  });

  it("refuses the calls of another application", async () => {
    const [application, other] = [await createApplication(), await createApplication()];
    const issued = runInDurableObject(allocatorOf(application), (allocator) =>
      allocator.issue(rulesOf(other), requestOf("device", "evt_foreign"), other.id),
    );
    await expect(issued).rejects.toThrow("another application");
    expect([...(await badgeRows(application)), ...(await badgeRows(other))]).toEqual([]);
  });
});

describe("the wake-ups of a group (contract section 8)", () => {
  it("are sent by the object in one batch, even when no caller waits for the response", async () => {
    const application = await createApplication(WITH_WEBHOOK);
    const queue = new KeptQueue();
    const sendBatch = vi.spyOn(queue, "sendBatch");
    await bindObject(application, () => ({ WEBHOOKS: queue }));
    const issue = vi.spyOn(Allocator.prototype, "issue");
    await aroundObjectD1(application, () => async (_, send) => {
      // The first write lasts until all others have come.
      while (issue.mock.calls.length < 20) await scheduler.wait(1);
      return send();
    });
    const stub = allocatorOf(application);
    // Callers that are gone before their responses come: nothing is done with those.
    for (let place = 0; place < 20; place++) {
      void stub.issue(rulesOf(application), requestOf(`device-${place}`, `evt_${place}`), application.id);
    }
    await until(async () => expect(await eventRows(application)).toHaveLength(20));
    await until(() => expect(queue.sent).toHaveLength(20));
    const wakeUps = Array.from({ length: 20 }, (_, place) => ({
      body: { applicationId: application.id, eventId: `evt_${place}` },
      delaySeconds: 0,
    }));
    expect(queue.sent).toEqual(expect.arrayContaining(wakeUps));
    expect(sendBatch.mock.calls.length).toBeLessThanOrEqual(2);
    issue.mockRestore();
  });

  it("are not listed in a response: a Worker of an earlier version would send them again", async () => {
    const application = await createApplication(WITH_WEBHOOK);
    await bindObject(application, () => ({ WEBHOOKS: new KeptQueue() }));
    const result = await allocatorOf(application).issue(rulesOf(application), requestOf("device", "evt_0"));
    // Those of version 1.0.0 ignore the bookmark.
    expect(result).toEqual({ kind: "written", number: expect.any(Number), wakeUps: [], bookmark: expect.any(String) });
  });
});

describe("badges that are adopted while an allocation waits for D1 (contract section 1)", () => {
  it("keep their numbers: the allocation frees only the number that it leased itself", async () => {
    const application = await createApplication({ size: 10 });
    expect((await requestBadge(application, "device", { userId: "alice" })).status).toBe(201);
    const [badge] = await badgeRows(application);
    if (!badge?.device) expect.fail("no badge");
    const holder = badgeHolder(badge);
    if (!holder) expect.fail("no holder");
    // The object is restored to before it leased that number.
    await withLedger(application, (_, { sql }) => sql.exec("DELETE FROM lease").toArray());
    const adopted = Promise.withResolvers<void>();
    const isWaiting = Promise.withResolvers<void>();
    await aroundObjectD1(application, () => async (_, send) => {
      const result = await send();
      isWaiting.resolve();
      await adopted.promise;
      return result;
    });
    const issued = allocatorOf(application).issue(rulesOf(application), requestOf(badge.device, "evt_late"));
    await isWaiting.promise;
    const [vain] = await leasesOf(application);
    expect(vain?.number).not.toBe(badge.number);
    expect(await allocatorOf(application).adopt([badge])).toBe(1);
    adopted.resolve();
    expect(await issued).toEqual({ kind: "existing", number: badge.number });
    expect(await leasesOf(application)).toEqual([{ holder: holderKey(holder), number: badge.number, confirmed: true }]);
    expect(await withLedger(application, (_, { sql }) => freedNumbers(sql))).toEqual([vain?.number]);
  });

  it("keep their numbers when a late release names the invitation with another number", async () => {
    const application = await createApplication({ size: 10 });
    const stub = allocatorOf(application);
    const reserved = {
      number: application.firstNumber + 3,
      device: null,
      userId: null,
      invitation: invitationDigest.parse("digest"),
    };
    await stub.adopt([reserved]);
    const ended = { applicationId: application.id, digest: reserved.invitation, endedAt: 1 };
    await stub.release([{ ...ended, number: reserved.number + 1 }]);
    expect(await leasesOf(application)).toMatchObject([{ number: reserved.number }]);
    await stub.release([ended]);
    expect(await leasesOf(application)).toEqual([]);
  });
});
