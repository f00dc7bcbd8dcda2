import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import type { z } from "zod";
import * as responses from "../../src/shared/overview-responses.ts";
import { claim, invite, requestInvitation, revoke } from "../invitations/support/calls.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { RECORDED_EVENTS } from "../invitations/support/storage.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { type Answer, requestBadge, serverHeaders } from "../support/http.ts";
import { Outbox } from "../support/outbox.ts";
import { answer, useReceivers } from "../support/receivers.ts";
import { until } from "../support/until.ts";
import { outcome } from "./support/draft.ts";
import { callAsServer } from "./support/server-calls.ts";

useQuietLog();
useStandingClock();
const receiver = useReceivers();

/** The body of a granted call, which has the documented shape and no field beside it. */
async function read<Body>(
  application: TestApplication,
  shape: { strict(): z.ZodType<Body> },
  path: string,
): Promise<Body> {
  const { status, body } = await callAsServer(application, "GET", path);
  expect(status, JSON.stringify(body)).toBe(200);
  return shape.strict().parse(body);
}

const listInvitations = (application: TestApplication, query = "") =>
  read(application, responses.invitationPage, `/v1/invitations${query}`);

const listEvents = (application: TestApplication, query = "") =>
  read(application, responses.eventPage, `/v1/events${query}`);

async function issue(application: TestApplication, udid: string, os?: string): Promise<string> {
  const { status, body } = await requestBadge(application, udid, { userId: udid, ...(os && { metadata: { os } }) });
  expect(status).toBe(201);
  return String(body.badgeId);
}

/** Every page of a list from the first to the last, two items each. */
async function follow(application: TestApplication, path: string, field: string): Promise<unknown[][]> {
  const pages: unknown[][] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? "" : `&cursor=${cursor}`;
    const { status, body, headers }: Answer = await callAsServer(application, "GET", `${path}?per_page=2${query}`);
    expect(status).toBe(200);
    const items = body[field];
    if (!Array.isArray(items)) throw new Error("a page has items");
    pages.push(items);
    cursor = headers.get("pagination-cursor");
  } while (cursor !== null);
  return pages;
}

const CALLS = [
  ["GET", "/v1/application"],
  ["GET", "/v1/invitations"],
  ["GET", "/v1/events"],
  ["POST", "/v1/events/evt_00000000000000000000000000/replay"],
  ["GET", "/v1/stats"],
] as const;

describe("who may call these routes (contract section 19: server calls, no CORS)", () => {
  it("is the application's server alone, whatever else is wrong with the call", async () => {
    const [application, other] = [await createApplication(), await createApplication()];
    for (const [method, path] of CALLS) {
      for (const headers of [
        { applicationsecret: "" },
        { applicationsecret: other.secret },
        { applicationid: other.id },
        { applicationid: "" },
      ]) {
        const refused = await callAsServer(application, method, `${path}?state=nonsense&per_page=0`, { headers });
        expect(`${path} ${outcome(refused)}`).toBe(`${path} 401 INVALID_CREDENTIALS`);
      }
      const granted = await callAsServer(application, method, path, { headers: { origin: "https://page.example" } });
      expect(granted.headers.has("access-control-allow-origin")).toBe(false);
      const wrong = await callAsServer(application, "DELETE", path);
      expect([outcome(wrong), wrong.headers.has("allow")]).toEqual(["405 METHOD_NOT_ALLOWED", true]);
    }
  });

  it("refuses unknown states, page sizes and cursors, also those of another list", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    for (let place = 0; place < 2; place++) {
      await invite(application);
      await issue(application, `phone ${place}`);
    }
    const cursorOf = async (path: string) =>
      (await callAsServer(application, "GET", `${path}?per_page=1`)).headers.get("pagination-cursor");
    const cursors = { invitations: await cursorOf("/v1/invitations"), events: await cursorOf("/v1/events") };
    expect(cursors).toEqual({
      invitations: expect.stringMatching(/^[\w-]+$/),
      events: expect.stringMatching(/^[\w-]+$/),
    });
    const refusals = [
      ...["", "Pending", "all", "pending,held", "pending&state=pending"].map((text) => [`state=${text}`, "STATE"]),
      ...["0", "-1", "1.5", "many"].map((text) => [`per_page=${text}`, "PER_PAGE"]),
      ...["", "AAAA", "ZXZlbnRzOg", "%00"].map((text) => [`cursor=${text}`, "CURSOR"]),
    ];
    for (const path of ["/v1/invitations", "/v1/events"]) {
      const foreign = path === "/v1/events" ? cursors.invitations : cursors.events;
      for (const [query, code] of [...refusals, [`cursor=${foreign}`, "CURSOR"]]) {
        const refused = await callAsServer(application, "GET", `${path}?${query}`);
        expect(`${path}?${query} ${outcome(refused)}`).toBe(`${path}?${query} 422 INVALID_${code}`);
      }
    }
    for (const [path, state] of [
      ["/v1/events", "claimed"],
      ["/v1/invitations", "held"],
    ] as const) {
      expect(outcome(await callAsServer(application, "GET", `${path}?state=${state}`))).toBe("422 INVALID_STATE");
    }
  });
});

describe("GET /v1/application (contract section 19)", () => {
  it("returns the settings of the application", async () => {
    const application = await createApplication({
      name: "Main Street",
      requireSecret: true,
      webhookUrl: "https://hooks.example/badges",
    });
    expect(await read(application, responses.applicationView, "/v1/application")).toEqual({
      applicationId: application.id,
      name: "Main Street",
      firstNumber: application.firstNumber,
      lastNumber: application.lastNumber,
      requireSecret: true,
      requireProof: false,
      statusList: false,
      webhookUrl: "https://hooks.example/badges",
    });
    const silent = await createApplication();
    expect(await read(silent, responses.applicationView, "/v1/application")).toMatchObject({
      requireSecret: false,
      webhookUrl: null,
    });
  });
});

describe("GET /v1/invitations (contract section 19)", () => {
  it("lists invitations of every state, newest first, with what was sent and who claimed, and no token", async () => {
    const application = await createApplication();
    const createdAt: string[] = [];
    const tokens: string[] = [];
    const make = async (expiresAt: string, more: object = {}) => {
      const body = { expiresAt, ...more };
      const made = await requestInvitation(application, body, serverHeaders(application));
      expect(made.status).toBe(201);
      createdAt.unshift(ahead(0));
      tokens.push(String(made.body.id));
      moveClock(SECOND);
      return { badgeId: String(made.body.badgeId), ...body };
    };
    const oddTime = ahead(HOUR).replace("Z", "+00:00");
    const pending = await make(oddTime, { badgeExpiresAt: ahead(2 * HOUR) });
    const claimed = await make(ahead(HOUR));
    const revoked = await make(ahead(HOUR));
    const expired = await make(ahead(MINUTE));
    expect((await claim(application, "phone", "bob", tokens[1])).status).toBe(201);
    expect((await revoke(application, tokens[2] ?? "")).status).toBe(200);
    moveClock(MINUTE);
    const all = [
      { ...expired, state: "expired" },
      { ...revoked, state: "revoked" },
      { ...claimed, state: "claimed", userId: "bob" },
      { ...pending, state: "pending" },
    ].map((each, place) => ({ ...each, createdAt: createdAt[place] }));
    const { invitations } = await listInvitations(application);
    expect(invitations).toEqual(all);
    for (const token of tokens) expect(JSON.stringify(invitations)).not.toContain(token.slice(4));
    for (const state of ["pending", "claimed", "revoked", "expired"]) {
      const ofState = await listInvitations(application, `?state=${state}`);
      expect(ofState.invitations, state).toEqual(all.filter((each) => each.state === state));
    }
    expect((await listInvitations(await createApplication())).invitations).toEqual([]);
  });

  it("pages through invitations of one millisecond without skipping or repeating one", async () => {
    const application = await createApplication();
    const made: string[] = [];
    for (let place = 0; place < 4; place++) made.unshift(String((await invite(application)).number));
    const pages = await follow(application, "/v1/invitations", "invitations");
    expect(pages.map((page) => page.length)).toEqual([2, 2]);
    expect(pages.flat()).toMatchObject(made.map((badgeId) => ({ badgeId })));
  });
});

describe("GET /v1/events (contract section 19)", () => {
  it("lists each event with its delivery, newest first", async () => {
    const endpoint = receiver((_, attempt) => answer(attempt === 1 ? 500 : 204, {}, attempt === 1 ? "down" : null));
    const outbox = await Outbox.open({ webhookUrl: endpoint.url });
    const failed = await outbox.issue("alice", '{"os":"iOS"}');
    await outbox.deliver(failed);
    outbox.now += SECOND;
    moveClock(SECOND);
    const delivered = await outbox.issue("bob");
    await outbox.deliver(delivered);
    const { events } = await listEvents(outbox.application);
    const dueAt = (await outbox.event(failed)).dueAt;
    expect(dueAt).toBeGreaterThan(outbox.now);
    const common = { event: "badge:created", attempts: 1 };
    expect(events).toMatchObject([
      {
        ...{ id: delivered, ...common, state: "delivered", lastStatus: 204, lastOutcome: "answered" },
        ...{ nextAttemptAt: null, deliveredAt: new Date(outbox.now).toISOString(), data: { userId: "bob" } },
      },
      {
        ...{ id: failed, ...common, state: "pending", lastStatus: 500, lastResponse: "down" },
        ...{ nextAttemptAt: new Date(dueAt).toISOString(), deliveredAt: null },
        data: { userId: "alice", metadata: { os: "iOS" } },
      },
    ]);
    for (const [state, id] of [
      ["pending", failed],
      ["delivered", delivered],
    ]) {
      const { events } = await listEvents(outbox.application, `?state=${state}&per_page=3`);
      expect(events.map((event) => event.id)).toEqual([id]);
    }
    expect((await listEvents(outbox.application, "?state=exhausted")).events).toEqual([]);
  });

  it("has no next attempt while the endpoint's settings prevent one", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    await issue(application, "phone");
    expect((await listEvents(application, "?state=held")).events).toMatchObject([{ nextAttemptAt: null }]);
    const set = (sql: string) => homeDatabase().prepare(sql).bind(application.id).run();
    const dueAt = Date.now() + HOUR;
    await set(`UPDATE webhook_event SET state = 'pending', due_at = ${dueAt} WHERE application_id = ?`);
    expect((await listEvents(application)).events).toMatchObject([{ state: "pending", nextAttemptAt: null }]);
    await set("UPDATE application SET webhook_held_at = NULL WHERE id = ?");
    expect((await listEvents(application)).events).toMatchObject([{ nextAttemptAt: ahead(HOUR) }]);
    await set("UPDATE application SET webhook_url = NULL WHERE id = ?");
    expect((await listEvents(application)).events).toMatchObject([{ nextAttemptAt: null }]);
  });

  it("pages through events of one millisecond without skipping or repeating one", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const numbers: string[] = [];
    for (let place = 0; place < 5; place++) numbers.push(await issue(application, `phone ${place}`));
    const pages = await follow(application, "/v1/events", "events");
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    const all = responses.eventPage.parse({ events: pages.flat() }).events;
    expect(all.map(({ data }) => data.id).toSorted()).toEqual(numbers.toSorted());
    expect(all.map(({ id }) => id)).toEqual(
      all
        .map(({ id }) => id)
        .toSorted()
        .toReversed(),
    );
  });
});

describe("POST /v1/events/{id}/replay (contract section 19)", () => {
  const replay = async ({ application }: { application: TestApplication }, id: string): Promise<unknown> => {
    const { status, body } = await callAsServer(application, "POST", `/v1/events/${id}/replay`);
    expect(status, JSON.stringify(body)).toBe(202);
    return responses.replayedEvent.strict().parse(body);
  };

  it.each(["pending", "delivered", "exhausted", "held"] as const)("sends a %s event at once", async (state) => {
    const endpoint = receiver();
    const outbox = await Outbox.open({ webhookUrl: endpoint.url });
    const id = await outbox.issue();
    await outbox.change(id, { state, attempts: 5, dueAt: outbox.now + DAY, deliveredAt: null });
    const woken: unknown[] = [];
    vi.spyOn(env.WEBHOOKS, "sendBatch").mockImplementation(async (messages) => {
      for (const { body } of messages) woken.push(body);
      return { metadata: { metrics: { backlogCount: 0, backlogBytes: 0 } } };
    });
    expect(await replay(outbox, id)).toEqual({ id, state: "pending" });
    await until(() => expect(woken).toEqual([{ applicationId: outbox.application.id, eventId: id }]));
    expect(await outbox.event(id)).toMatchObject({ state: "pending", attempts: 0 });
    await outbox.deliver(id);
    expect(endpoint.received).toHaveLength(1);
    expect(await outbox.event(id)).toMatchObject({ state: "delivered", attempts: 1 });
  });

  it.each([
    ["without a URL", (outbox: Outbox) => outbox.setUrl(null)],
    [
      "while the endpoint is held",
      (outbox: Outbox) =>
        homeDatabase()
          .prepare("UPDATE application SET webhook_held_at = 1 WHERE id = ?")
          .bind(outbox.application.id)
          .run(),
    ],
  ])("holds the event %s, and it is sent on release", async (_, stop) => {
    const endpoint = receiver();
    const outbox = await Outbox.open({ webhookUrl: endpoint.url });
    const id = await outbox.issue();
    await outbox.change(id, { state: "exhausted", attempts: 14 });
    await stop(outbox);
    expect(await replay(outbox, id)).toEqual({ id, state: "held" });
    await outbox.deliver(id);
    expect(endpoint.received).toHaveLength(0);
    await outbox.setUrl(endpoint.url);
    outbox.now += MINUTE;
    await outbox.sweep();
    await outbox.deliver(id);
    expect(endpoint.received).toHaveLength(1);
  });

  it("does not find an event of another application, or one that never existed", async () => {
    const [outbox, other] = [await Outbox.open({ webhookUrl: receiver().url }), await createApplication()];
    const id = await outbox.issue();
    const before = await outbox.event(id);
    for (const [application, asked] of [
      [other, id],
      [outbox.application, `${id}x`],
      [outbox.application, "nonsense"],
    ] as const) {
      const refused = await callAsServer(application, "POST", `/v1/events/${asked}/replay`);
      expect(outcome(refused)).toBe("404 UNKNOWN_EVENT");
    }
    expect(await outbox.event(id)).toEqual(before);
  });
});

describe("GET /v1/stats (contract section 19)", () => {
  const stats = (application: TestApplication) => read(application, responses.statistics, "/v1/stats");

  it("counts badges, invitations and deliveries", async () => {
    const application = await createApplication({ ...RECORDED_EVENTS, size: 100, reuseAfterSeconds: 60 });
    const first = await issue(application, "one", "iOS");
    moveClock(DAY);
    const [second, third] = [await issue(application, "two", "iOS"), await issue(application, "three", "Android")];
    await issue(application, "four");
    for (const [id, step] of [
      [first, "suspend"],
      [second, "revoke"],
    ]) {
      expect((await callAsServer(application, "PATCH", `/v1/badges/${id}/${step}`)).status).toBe(200);
    }
    const body = { expiresAt: ahead(MINUTE) };
    expect((await callAsServer(application, "PATCH", `/v1/badges/${third}`, { body })).status).toBe(200);
    await invite(application, ahead(2 * HOUR));
    expect((await revoke(application, (await invite(application, ahead(2 * HOUR))).token)).status).toBe(200);
    const { token } = await invite(application, ahead(2 * HOUR));
    expect((await claim(application, "five", "five", token)).status).toBe(201);
    moveClock(MINUTE);
    const found = await stats(application);
    expect(found).toMatchObject({
      applicationId: application.id,
      name: "Test",
      numbers: { size: 100, issued: 5, reserved: 1, retired: 0, left: 94, used: 6, usedPercent: 6 },
      badges: {
        os: {
          values: [
            { value: null, badges: 2 },
            { value: "iOS", badges: 2 },
            { value: "Android", badges: 1 },
          ],
          others: 0,
        },
        deviceModel: { values: [{ value: null, badges: 5 }], others: 0 },
      },
      invitations: { pending: 1, claimed: 1, revoked: 1, expired: 0 },
      badgesByState: { active: 2, suspended: 1, revoked: 1, expired: 1, replaced: 0 },
      deliveries: [{ state: "held", outcome: null, events: 5 }],
      asOf: ahead(0),
    });
    expect(found.badgesPerDay).toHaveLength(90);
    expect(found.badgesPerDay.at(-1)?.day).toBe(ahead(0).slice(0, 10));
    expect(found.badgesPerDay[0]?.day).toBe(ahead(-89 * DAY).slice(0, 10));
    expect(found.badgesPerDay.reduce((sum, { badges }) => sum + badges, 0)).toBe(5);
    expect(found.badgesPerDay.find(({ day }) => day === ahead(-DAY - MINUTE).slice(0, 10))?.badges).toBeGreaterThan(0);
  });

  it("counts again after five minutes, and not before", async () => {
    const application = await createApplication();
    const countedAt = ahead(0);
    expect(await stats(application)).toMatchObject({ asOf: countedAt, numbers: { issued: 0 } });
    await issue(application, "phone");
    moveClock(5 * MINUTE - 1);
    expect(await stats(application)).toMatchObject({ asOf: countedAt, numbers: { issued: 0 } });
    moveClock(1);
    expect(await stats(application)).toMatchObject({ asOf: ahead(0), numbers: { issued: 1 } });
  });
});
