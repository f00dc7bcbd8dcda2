import { describe, expect, it } from "vitest";
import { block, getBadge, issueTo } from "../badges/life-support.ts";
import { inParallel, requestQuietly } from "../badges/support.ts";
import { outcome } from "../invitations/support/calls.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { allocatorOf, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { isAbout } from "../support/faults.ts";
import { badgeRows } from "../support/rows.ts";
import { ENTRY, putIntoInbox, resultOf, wake } from "./support.ts";

useQuietLog();

/** The largest fields that a request may have, and twice as large in JSON. */
const LONGEST = '"'.repeat(256);
const METADATA = { deviceModel: LONGEST, os: LONGEST, osVersion: LONGEST, sdkVersion: LONGEST };

describe("blocking a user with 500 badges of maximal metadata (contract section 12)", () => {
  it("revokes all of them, while others get badges", { timeout: 120_000 }, async () => {
    const application = await createApplication();
    for (let round = 0; round < 5; round++) {
      const body = { userId: "mallory", metadata: METADATA };
      const answers = await inParallel(100, (place) => requestQuietly(application, `${round}-${place}`, body));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    }
    const startedAt = Date.now();
    let isBlocked = false;
    const blocked = block(application, "mallory").finally(() => {
      isBlocked = true;
    });
    const waits: number[] = [];
    while (!isBlocked) {
      const askedAt = Date.now();
      await issueTo(application, `other-${waits.length}`, "bob");
      waits.push(Date.now() - askedAt);
    }
    const { status, body } = await blocked;
    expect(status).toBe(200);
    expect(body.revoked).toHaveLength(500);
    expect(Date.now() - startedAt).toBeLessThan(90_000);
    expect(Math.max(...waits)).toBeLessThan(5000);
    const rows = await badgeRows(application);
    expect(rows.filter(({ userId, state }) => userId === "mallory" && state !== "revoked")).toEqual([]);
    expect(rows.filter(({ userId, state }) => userId === "bob" && state !== "active")).toEqual([]);
  });

  it("is finished by the clock when the caller is gone after the first chunk", async () => {
    const application = await createApplication();
    await inParallel(150, (place) => requestQuietly(application, `phone-${place}`, { userId: "mallory" }));
    let entries = 0;
    await aroundObjectD1(application, (state) => async (statements, send) => {
      if (isAbout(statements, ENTRY) && ++entries === 2) {
        state.abort("the object dies");
        return new Promise(() => {});
      }
      return send();
    });
    expect((await block(application, "mallory")).status).toBe(503);
    expect(outcome(await requestQuietly(application, "new", { userId: "mallory" }))).toBe("403 BLOCKED_USER");
    await wake(application);
    await wake(application);
    const live = (await badgeRows(application)).filter(({ state }) => state !== "revoked");
    expect(live).toEqual([]);
    const { body } = await block(application, "mallory");
    expect(body.revoked).toHaveLength(150);
  });
});

describe("a block whose response is lost (contract section 12)", () => {
  it("returns the numbers that it revoked when it is repeated", async () => {
    const application = await createApplication();
    const number = Number(await issueTo(application, "phone", "alice"));
    const call = {
      id: "one block",
      until: Date.now() + 9000,
      origin: { actor: { kind: "server" } },
      command: { kind: "block", userId: "alice" },
    } as const;
    const told = { kind: "user", userId: "alice", numbers: [number] };
    for (let time = 0; time < 2; time++) {
      expect((await allocatorOf(application).call(application.id, call)).outcome).toEqual(told);
    }
  });
});

describe("commands of the administration script (contract section 21)", () => {
  it("are carried out in the order in which they came, each once", async () => {
    const application = await createApplication();
    const number = await issueTo(application, "phone", "alice");
    const suspended = await putIntoInbox(application, { kind: "suspend", number: Number(number) });
    await Promise.all([wake(application), wake(application)]);
    expect(await resultOf(suspended)).toMatchObject({ kind: "badge" });
    expect((await getBadge(application, number)).body.state).toBe("suspended");
    const changes = (await badgeRows(application)).map(({ change }) => change);
    await Promise.all([wake(application), wake(application)]);
    expect((await badgeRows(application)).map(({ change }) => change)).toEqual(changes);
  });
});
