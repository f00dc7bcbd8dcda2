import { describe, expect, it } from "vitest";
import { verifyWebhook } from "../../src/client/index.ts";
import { signedAsService } from "../client/support.ts";
import { bindObject } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { ahead, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../support/clock.ts";
import { testContext } from "../support/context.ts";
import { runSql } from "../support/home.ts";
import { callServer, requestBadge, serverHeaders } from "../support/http.ts";
import { claim, invite, requestInvitation, revoke } from "../support/invitations.ts";
import { keptQueue } from "../support/queue.ts";
import { readRows } from "../support/rows.ts";
import { SUBSCRIBABLE } from "../support/subscribable.ts";
import { sweep } from "../support/sweep.ts";

useStandingClock();

/** An application whose events are recorded and not sent. */
const subscriber = (events: readonly string[]): Promise<TestApplication> =>
  createApplication({ webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1, events: events.join(",") });

const names = async (application: TestApplication): Promise<string[]> =>
  (await readRows(application)).events.map(({ event }) => event);

async function issue(application: TestApplication, udid: string): Promise<string> {
  const { status, body } = await requestBadge(application, udid, { userId: "alice", metadata: { os: "iOS" } });
  expect(status).toBe(201);
  return String(body.badgeId);
}

/** Runs a sweep and what it defers. */
async function sweepAll(queue = keptQueue()): Promise<void> {
  const { context, deferred } = testContext({ queue });
  await sweep(context);
  await Promise.all(deferred);
}

describe("events of a badge and of an invitation (contract section 18)", () => {
  it("a badge has one event for each change, with the badge of section 12 and the change number last", async () => {
    const application = await subscriber(SUBSCRIBABLE);
    const id = await issue(application, "phone");
    const end = ahead(HOUR);
    const step = (path: string, body?: unknown) => callServer(application, "PATCH", `/v1/badges/${id}${path}`, body);
    expect((await step("/suspend")).status).toBe(200);
    expect((await step("/resume")).status).toBe(200);
    expect((await step("", { expiresAt: end })).status).toBe(200);
    moveClock(HOUR);
    await sweepAll();
    expect((await step("/revoke")).status).toBe(200);
    const [created, ...changes] = (await readRows(application)).events.map(({ payload }) => payload);
    expect(JSON.parse(created ?? "")).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-z]{26}$/),
      event: "badge:created",
      createdAt: expect.any(String),
      data: { id, userId: "alice", metadata: { os: "iOS" } },
    });
    const issuedAt = ahead(-HOUR);
    const data = (state: string, changedAt: string, change: number, more: object = {}) =>
      JSON.stringify({ id, userId: "alice", state, metadata: { os: "iOS" }, ...more, issuedAt, changedAt, change });
    expect(changes.map((text) => [JSON.parse(text).event, JSON.stringify(JSON.parse(text).data)])).toEqual([
      ["badge:suspended", data("suspended", issuedAt, 2)],
      ["badge:resumed", data("active", issuedAt, 3)],
      ["badge:expired", data("expired", ahead(0), 5, { expiresAt: end })],
      ["badge:revoked", data("revoked", ahead(0), 6, { expiresAt: end })],
    ]);
    for (const text of changes) expect(JSON.stringify(JSON.parse(text))).toBe(text);
  });

  it("events of an invitation have the number, and the expiry as it was sent, once, when it is revoked or expires", async () => {
    const application = await subscriber(SUBSCRIBABLE);
    const expiresAt = ahead(MINUTE).replace("Z", "+00:00");
    const [revoked, expired] = [await invite(application, expiresAt), await invite(application, expiresAt)];
    for (const _ of [1, 2]) expect((await revoke(application, revoked.token)).status).toBe(200);
    const revokedAt = ahead(0);
    moveClock(MINUTE);
    await sweepAll();
    await sweepAll();
    const { events } = await readRows(application);
    const body = (name: string, place: number, number: number) =>
      JSON.stringify({
        id: events[place]?.id,
        event: name,
        createdAt: place === 0 ? revokedAt : ahead(0),
        data: { id: String(number), expiresAt },
      });
    expect(events.map(({ payload }) => payload)).toEqual([
      body("invitation:revoked", 0, revoked.number),
      body("invitation:expired", 1, expired.number),
    ]);
    expect(events.map(({ createdAt }) => createdAt)).toEqual([Date.parse(revokedAt), Date.now()]);
  });

  it("events of invitations are sent to the queue at once", async () => {
    const application = await subscriber(SUBSCRIBABLE);
    await runSql("UPDATE application SET webhook_held_at = NULL WHERE id = ?", application.id);
    for (let place = 0; place < 3; place++) await invite(application, ahead(SECOND));
    moveClock(SECOND);
    const queue = keptQueue();
    await bindObject(application, () => ({ WEBHOOKS: queue }));
    await sweepAll(queue);
    const { events } = await readRows(application);
    const woken = queue.sent.map(({ body }) => body).filter(({ applicationId }) => applicationId === application.id);
    expect(woken.map(({ eventId }) => eventId).toSorted()).toEqual(events.map(({ id }) => id).toSorted());
    expect(events).toMatchObject(Array(3).fill({ event: "invitation:expired", state: "pending" }));
  });
});

describe("a subscription (contract section 18: a receiver gets only the events it subscribes to)", () => {
  /** Everything that has an event. */
  async function live(application: TestApplication): Promise<void> {
    const id = await issue(application, "phone");
    for (const path of ["/suspend", "/resume"]) await callServer(application, "PATCH", `/v1/badges/${id}${path}`);
    const replacing = await invite(application);
    expect((await claim(application, "phone", "alice", replacing.token)).status).toBe(201);
    const { status, body } = await requestInvitation(
      application,
      { expiresAt: ahead(MINUTE), badgeExpiresAt: ahead(HOUR) },
      serverHeaders(application),
    );
    expect(status).toBe(201);
    expect((await claim(application, "tablet", "bob", body.id)).status).toBe(201);
    await callServer(application, "PATCH", `/v1/badges/${replacing.number}/revoke`);
    expect((await revoke(application, (await invite(application)).token)).status).toBe(200);
    await invite(application, ahead(MINUTE));
  }

  async function liveOnce(applications: readonly TestApplication[]): Promise<void> {
    await Promise.all(applications.map(live));
    moveClock(HOUR);
    await sweepAll();
  }

  it("a subscription to some events gets those and no others, which the client verifies and types by their names", async () => {
    const halves = [0, 1].map((half) => SUBSCRIBABLE.filter((_, place) => place % 2 === half));
    const applications = await Promise.all(halves.map(subscriber));
    await liveOnce(applications);
    for (const [half, application] of applications.entries()) {
      expect(new Set(await names(application))).toEqual(new Set(halves[half]));
      const { secret } = application;
      for (const { id: eventId, event: kind, payload: body } of (await readRows(application)).events) {
        const timestampSeconds = Math.floor(Date.now() / 1000);
        const headers = await signedAsService({ eventId, timestampSeconds, body, secrets: [secret] });
        const verified = await verifyWebhook({ headers, body, secrets: secret });
        expect(verified, kind).toEqual({ ok: true, eventId, kind, event: JSON.parse(body) });
      }
    }
  });

  it("a subscription is to badge:created by default, and to nothing without a URL", async () => {
    const [standard, deaf] = [
      await createApplication({ webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1 }),
      await createApplication({ events: SUBSCRIBABLE.join(",") }),
    ];
    await liveOnce([standard, deaf]);
    expect(await names(standard)).toEqual(["badge:created", "badge:created", "badge:created"]);
    expect(await names(deaf)).toEqual([]);
  });
});
