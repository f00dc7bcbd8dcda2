import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { createApplication, type TestApplication } from "../support/application.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, useStandingClock } from "../support/clock.ts";
import { runSql } from "../support/home.ts";
import { callServer, outcome, requestBadge } from "../support/http.ts";
import { claim, invite, revoke } from "../support/invitations.ts";
import { Outbox } from "../support/outbox.ts";
import { useReceivers } from "../support/receivers.ts";
import { RECORDED_EVENTS } from "../support/rows.ts";
import { until } from "../support/until.ts";

useStandingClock();
const receiver = useReceivers();

async function read(application: TestApplication, path: string): Promise<Record<string, unknown>> {
  const { status, body } = await callServer(application, "GET", path);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

describe("GET /v1/application (contract section 19)", () => {
  it("an application that a restored D1 does not have is refused, while the isolate still knows it", async () => {
    const application = await createApplication();
    await read(application, "/v1/application");
    for (const table of ["application_secret", "signing_key", "application_head"]) {
      await runSql(`DELETE FROM ${table} WHERE application_id = ?`, application.id);
    }
    await runSql("DELETE FROM application WHERE id = ?", application.id);
    for (const path of ["/v1/application", "/v1/stats"]) {
      expect(outcome(await callServer(application, "GET", path))).toBe("401 INVALID_CREDENTIALS");
    }
  });

  it("GET /v1/application returns the settings of the application, by default and as an administrator set them, and names nobody to the server", async () => {
    for (const settings of [
      {},
      {
        ...{ name: "Main Street", requireSecret: true, requireProof: true, statusList: true },
        ...{ webhookUrl: "https://hooks.example/badges", invitationLink: "https://app.example.com/visit/{token}" },
      },
    ]) {
      const application = await createApplication(settings);
      const { id: applicationId, firstNumber, lastNumber } = application;
      expect(await read(application, "/v1/application")).toEqual({
        ...{ applicationId, firstNumber, lastNumber, name: "Test", webhookUrl: null },
        // PUBLIC_URL of wrangler.toml: the page for visitors (section 27).
        invitationLink: `http://localhost:8787/pass#${applicationId}/{token}`,
        ...{ requireSecret: false, requireProof: false, statusList: false, ...settings },
      });
    }
  });
});

describe("POST /v1/events/{id}/replay (contract section 19)", () => {
  const replay = async ({ application }: { application: TestApplication }, id: string): Promise<unknown> => {
    const { status, body } = await callServer(application, "POST", `/v1/events/${id}/replay`);
    expect(status, JSON.stringify(body)).toBe(202);
    return body;
  };

  it.each(["pending", "delivered", "exhausted", "held"] as const)("sends a %s event at once", async (state) => {
    const endpoint = receiver();
    const outbox = await Outbox.open({ webhookUrl: endpoint.url });
    const id = await outbox.issue();
    await outbox.change(id, { state, attempts: 5, dueAt: outbox.now + DAY, deliveredAt: outbox.now });
    const woken: unknown[] = [];
    vi.spyOn(env.WEBHOOKS, "sendBatch").mockImplementation(async (messages) => {
      for (const { body } of messages) woken.push(body);
      return { metadata: { metrics: { backlogCount: 0, backlogBytes: 0 } } };
    });
    expect(await replay(outbox, id)).toEqual({ id, state: "pending" });
    await until(() =>
      expect(woken).toEqual([{ applicationId: outbox.application.id, eventId: id, afterMilliseconds: 0 }]),
    );
    expect(await outbox.event(id)).toMatchObject({ state: "pending", attempts: 0, deliveredAt: null });
    await outbox.deliver(id);
    expect(endpoint.received).toHaveLength(1);
    expect(await outbox.event(id)).toMatchObject({ state: "delivered", attempts: 1 });
  });

  it("a replay holds the event without a URL and while the endpoint is held, and it is sent on release", async () => {
    for (const column of ["webhook_url = NULL", "webhook_held_at = 1"]) {
      const endpoint = receiver();
      const outbox = await Outbox.open({ webhookUrl: endpoint.url });
      const id = await outbox.issue();
      await outbox.change(id, { state: "exhausted", attempts: 14 });
      await runSql(`UPDATE application SET ${column} WHERE id = ?`, outbox.application.id);
      expect(await replay(outbox, id)).toEqual({ id, state: "held" });
      await outbox.deliver(id);
      expect(endpoint.received).toHaveLength(0);
      await outbox.setUrl(endpoint.url);
      outbox.now += MINUTE;
      await outbox.sweep();
      await outbox.deliver(id);
      expect(endpoint.received).toHaveLength(1);
    }
  });
});

// Days, states and frequent values of badges: test/storage/statistics.test.ts.
it("GET /v1/stats counts badges, invitations and deliveries, exact at once (contract section 19)", async () => {
  const application = await createApplication({ ...RECORDED_EVENTS, size: 100, reuseAfterSeconds: 60 });
  expect(await read(application, "/v1/stats")).toMatchObject({ asOf: ahead(0), numbers: { issued: 0, used: 0 } });
  for (const [udid, os] of [["one", "iOS"], ["two", "iOS"], ["three", "Android"], ["four"]] as const) {
    const metadata = os && { os };
    expect((await requestBadge(application, udid, { userId: udid, metadata })).status).toBe(201);
  }
  expect(await read(application, "/v1/stats")).toMatchObject({ asOf: ahead(0), numbers: { issued: 4 } });
  await invite(application, ahead(2 * HOUR));
  expect((await revoke(application, (await invite(application, ahead(2 * HOUR))).token)).status).toBe(200);
  // The second number takes the place of the first.
  for (let count = 0; count < 2; count++) {
    const { token } = await invite(application, ahead(2 * HOUR));
    expect((await claim(application, "five", "five", token)).status).toBe(201);
  }
  moveClock(MINUTE);
  expect(await read(application, "/v1/stats")).toMatchObject({
    applicationId: application.id,
    name: "Test",
    numbers: { size: 100, issued: 5, reserved: 1, retired: 1, left: 93, used: 7, usedPercent: 7 },
    badges: {
      os: {
        values: [
          { value: null, badges: 2 },
          { value: "iOS", badges: 2 },
          { value: "Android", badges: 1 },
        ],
      },
      deviceModel: { values: [{ value: null, badges: 5 }], others: 0 },
    },
    invitations: { pending: 1, claimed: 2, revoked: 1, expired: 0 },
    badgesByState: { active: 5, suspended: 0, revoked: 0, expired: 0, replaced: 1 },
    deliveries: [{ state: "held", outcome: null, events: 6 }],
    asOf: ahead(0),
  });
});
