import { base64url } from "jose";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { block, issueTo, setEnd, takeStep, unblock, withBadge } from "../badges/life-support.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../support/clock.ts";
import { runSql } from "../support/home.ts";
import { callServer, outcome, requestBadge, serverHeaders } from "../support/http.ts";
import { claim, invite, requestInvitation, revoke } from "../support/invitations.ts";
import { Outbox } from "../support/outbox.ts";
import { answer, useReceivers } from "../support/receivers.ts";
import { RECORDED_EVENTS } from "../support/rows.ts";
import { follow, listPage } from "./support/pages.ts";
import { signIn } from "./support/people.ts";

useStandingClock();
const receiver = useReceivers();

const idsOf = async (application: TestApplication, path: string) =>
  (await follow(application, path)).flat().map(({ id }) => id);

const time = (milliseconds: number) => encodeURIComponent(ahead(milliseconds).replace("Z", "+00:00"));

const listedBy = async (application: TestApplication, path: string) => (await listPage(application, path)).items;

describe("GET /v1/badges?state= (contract section 24)", () => {
  it("?state= lists the badges that are in a state now, whether or not their expiry is recorded", async () => {
    const application = await createApplication();
    const ids: Record<string, string> = {};
    for (const name of ["active", "suspended", "revoked", "expired", "expired and suspended", "expired by the clock"]) {
      ids[name] = await issueTo(application, name, name);
    }
    const of = (name: string) => ids[name] ?? "";
    await takeStep(application, of("suspended"), "suspend");
    await takeStep(application, of("revoked"), "revoke");
    await takeStep(application, of("expired and suspended"), "suspend");
    for (const name of ["expired", "expired and suspended"]) await setEnd(application, of(name), ahead(-HOUR));
    await setEnd(application, of("expired by the clock"), ahead(SECOND));
    moveClock(SECOND);
    const expired = [of("expired"), of("expired and suspended"), of("expired by the clock")];
    for (const [query, expected] of [
      ["active", [of("active")]],
      ["suspended", [of("suspended")]],
      ["revoked", [of("revoked")]],
      ["replaced", []],
      ["expired", expired],
      ["expired&order=newest", expired.toReversed()],
    ] as const) {
      expect([query, await idsOf(application, `/v1/badges?state=${query}`)]).toEqual([query, expected]);
    }
    const [found] = (await listPage(application, "/v1/badges?state=expired&per_page=1")).items;
    expect(found).toEqual({
      ...{ id: of("expired"), userId: "expired", state: "expired", expiresAt: ahead(-HOUR - SECOND) },
      ...{ issuedAt: ahead(-SECOND), changedAt: ahead(-SECOND) },
    });
  });

  it("searched lists of badges name the actor of the last change, unless it was a login; plain pages never do", async () => {
    const application = await createApplication();
    const issue = (name: string) => issueTo(application, name, name);
    const [suspended, resumed, loggedIn] = [await issue("suspended"), await issue("resumed"), await issue("logged in")];
    const rebound = await issue("rebound");
    await issue("untouched");
    const step = async (badge: string, name: string, actor: string) => {
      moveClock(SECOND);
      const path = `/v1/badges/${badge}/${name}`;
      expect((await callServer(application, "PATCH", path, undefined, { actor })).status).toBe(200);
    };
    for (const badge of [suspended, resumed, loggedIn, rebound]) await step(badge, "suspend", "Tom");
    await step(resumed, "resume", "Ann");
    await step(loggedIn, "resume", "Tom");
    // Whoever lets another key take a badge over changes nothing that callers see.
    await step(rebound, "rebind", "Ann");
    await requestBadge(application, "logged in", { userId: "logged in", metadata: { os: "iOS" } });
    const { applicationsecret: secret = "" } = await signIn(application, "viewer");
    const person = { ...application, secret };
    const { items } = await listPage(person, "/v1/badges?order=newest");
    const actors = Object.fromEntries(items.map(({ id, changedBy }) => [id, changedBy]));
    expect(JSON.stringify(await listPage(application, "/v1/badges?order=newest"))).not.toContain("Tom");
    const byServer = (name: string) => ({ kind: "server", name });
    expect(actors).toEqual({
      ...Object.fromEntries(items.map(({ id }) => [id, undefined])),
      ...{ [suspended]: byServer("Tom"), [resumed]: byServer("Ann") },
    });
    for (const path of ["/v1/badges", "/v1/users/suspended/badges"]) {
      expect(JSON.stringify(await listPage(person, path))).not.toContain("Tom");
    }
  });
});

describe("GET /v1/badges?q= (contract section 24)", () => {
  it("?q= finds parts of user IDs and names in any case, also beyond ASCII, and takes no character for a wildcard", async () => {
    const application = await createApplication();
    const odd = ["İbrahim", "ΣΙΣΥΦΟΣ", "Straße", "WEIẞ"];
    const users = ["Jörg.MÜLLER@example", "anna", "ANNABEL", "50%_off", "x", "ЖЕНЯ", ...odd];
    const ids: string[] = [];
    for (const user of users) ids.push(await issueTo(application, user.length.toString() + ids.length, user));
    await runSql("UPDATE badge SET name = 'Zoë Ångström' WHERE number = ?1", Number(ids[4]));
    const found = async (text: string) =>
      (await idsOf(application, `/v1/badges?q=${encodeURIComponent(text)}`)).map(
        (id) => users[ids.indexOf(String(id))],
      );
    for (const text of ["müller", "JÖRG.m"]) expect(await found(text)).toEqual(["Jörg.MÜLLER@example"]);
    expect(await found("Anna")).toEqual(["anna", "ANNABEL"]);
    expect(await found("%_")).toEqual(["50%_off"]);
    for (const text of ["__", "' OR 1"]) expect(await found(text)).toEqual([]);
    expect(await found("zoË å")).toEqual(["x"]);
    expect(await found("женя")).toEqual(["ЖЕНЯ"]);
    for (const user of odd) expect(await found(user)).toEqual([user]);
    // Letters of ASCII, and letters without case, are no burden.
    const most = String.fromCodePoint(...Array.from({ length: 40 }, (_, place) => 0x430 + place));
    expect(await found(`${most}abcdefghijklmnopqrstuvwxyz李`)).toEqual([]);
  });

  it("a search of badges continues after a page that ends early, until all rows are scanned", async () => {
    const application = await createApplication({ size: 100_000 });
    await runSql(
      `WITH RECURSIVE place (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n < 4999)
       INSERT INTO badge (number, application_id, device, user_id, ordinal, login_sequence, issued_at)
       SELECT ?2 + n, ?1, 'd' || n, iif(n % 1000 = 700, 'wanted', 'other'), n + 1, 1, 1 FROM place`,
      application.id,
      application.firstNumber,
    );
    const wanted = [700, 1700, 2700, 3700, 4700].map((place) => String(application.firstNumber + place));
    for (const [query, expected] of [
      ["", wanted],
      ["&order=newest", wanted.toReversed()],
    ] as const) {
      const pages = await follow(application, `/v1/badges?q=WANT${query}`, 1);
      expect(pages.flat().map(({ id }) => id)).toEqual(expected);
      expect(pages.some((items) => items.length === 0)).toBe(true);
      expect(pages.length).toBeLessThan(20);
    }
  });
});

it("?endsBefore= lists badges that end before a time, alone or with other filters (contract section 24)", async () => {
  const application = await createApplication();
  const ids: string[] = [];
  for (const [index, hours] of [1, 2, 3, null].entries()) {
    const id = await issueTo(application, `phone ${index}`, `user ${index}`);
    if (hours !== null) await setEnd(application, id, ahead(hours * HOUR));
    ids.push(id);
  }
  const endsBefore = (hours: number) => `endsBefore=${time(hours * HOUR)}`;
  expect(await idsOf(application, `/v1/badges?${endsBefore(3)}`)).toEqual(ids.slice(0, 2));
  expect(await idsOf(application, `/v1/badges?${endsBefore(9)}&order=newest`)).toEqual(ids.slice(0, 3).toReversed());
  expect(await idsOf(application, `/v1/badges?${endsBefore(9)}&q=ER%202&state=active`)).toEqual([ids[2]]);
  expect(await idsOf(application, "/v1/badges?order=newest")).toEqual(ids.toReversed());
});

// Other queries that are refused: test/http/errors/order.test.ts.
describe("cursors of lists (contract sections 4, 19, 23 and 24)", () => {
  it("a cursor of a list is refused when it was changed or repeated, or is of another list or order", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    for (let place = 0; place < 2; place++) {
      await invite(application);
      await issueTo(application, `phone ${place}`, "alice");
    }
    const lists = ["/v1/badges?", "/v1/badges?order=newest&", "/v1/users/alice/badges?", "/v1/events?", "/v1/history?"];
    const cursors: Record<string, string> = {};
    for (const list of [...lists, "/v1/invitations?", `/v1/invitations?from=${ahead(-HOUR)}&`]) {
      cursors[list] = String((await listPage(application, `${list}per_page=1`)).next);
      expect(cursors[list]).toMatch(/^[\w-]{8,}$/);
    }
    const noPositions = ["", " 1", "01", "+1", "-1", "1.5", "1e3", "NaN", "9007199254740993", '"1"'];
    const forged = noPositions.map((position) => base64url.encode(`["badges",${position}]`));
    for (const [list, own] of Object.entries(cursors)) {
      const changed = [`${own}A`, `A${own}`, `${own}=`, `${own}${own}`, own.slice(1), own.slice(0, -1)];
      const foreign = Object.values(cursors).filter((other) => other !== own);
      for (const cursor of [...changed, ...forged, ...foreign, `${own}&cursor=${own}`]) {
        const refused = outcome(await callServer(application, "GET", `${list}cursor=${cursor}`));
        expect(`${list}${cursor} ${refused}`).toBe(`${list}${cursor} 422 INVALID_CURSOR`);
      }
    }
  });

  it.each([
    ["/v1/badges", ["badges", 1], "200"],
    ["/v1/badges?order=newest", ["newest-badges", 1], "200"],
    ["/v1/users?state=blocked", ["blocked-users", { userId: "alice", blockedAt: 1 }], "200"],
    ["/v1/invitations", ["invitations", { at: 1, rowid: 1 }], "200"],
    ["/v1/invitations?from=2030-01-01T00:00:00Z", ["visits", { at: 1, rowid: 1 }], "200"],
    ["/v1/access", ["access", "Ann"], "200"],
    ["/v1/doors", ["doors", "North"], "200"],
    ["/v1/events", ["events", "evt_1"], "200"],
    ["/v1/history", ["history", "his_1"], "200"],
    ["/v1/changes", ["changes", { epoch: "0".repeat(32), change: 1 }], "410 EXPIRED_CURSOR"],
  ])(
    "a cursor of %s that one release made is known in the next, since two serve a deployment",
    async (list, position, expected) => {
      const path = `${list}${list.includes("?") ? "&" : "?"}cursor=${base64url.encode(JSON.stringify(position))}`;
      expect(outcome(await callServer(await createApplication(), "GET", path))).toBe(expected);
    },
  );
});

it("?state=blocked lists blocked users in the order in which they were blocked (contract section 24)", async () => {
  const [application, other] = [await createApplication(), await createApplication()];
  for (const user of ["zoë", "bob", "alice"]) {
    await block(application, user);
    moveClock(SECOND);
  }
  await block(other, "mallory");
  await unblock(application, "bob");
  await block(application, "bob");
  const pages = await follow(application, "/v1/users?state=blocked");
  expect(pages.map((items) => items.length)).toEqual([2, 1]);
  expect(pages.flat()).toEqual(
    ["zoë", "alice", "bob"].map((userId) => ({ userId, blocked: true, blockedAt: expect.stringMatching(/Z$/) })),
  );
});

it("GET /v1/invitations lists invitations of every state, newest first, with what was sent and who claimed, and no token (contract sections 19 and 24)", async () => {
  const application = await createApplication();
  const all: Record<string, unknown>[] = [];
  const tokens: string[] = [];
  const make = async (state: string, body: { expiresAt: string; [field: string]: unknown }, more: object = {}) => {
    const { status, body: made } = await requestInvitation(application, body, serverHeaders(application));
    expect(status).toBe(201);
    all.unshift({ ...body, badgeId: made.badgeId, createdAt: ahead(0), state, ...more });
    tokens.push(String(made.id));
    moveClock(SECOND);
  };
  const oddTime = ahead(HOUR).replace("Z", "+00:00");
  const visit = { name: "Ada", userId: "ada", badgeStartsAt: oddTime, badgeExpiresAt: ahead(2 * HOUR) };
  await make("pending", { expiresAt: oddTime, ...visit });
  await make("claimed", { expiresAt: ahead(HOUR) }, { userId: "bob" });
  await make("revoked", { expiresAt: ahead(HOUR) });
  await make("expired", { expiresAt: ahead(MINUTE) });
  expect((await claim(application, "phone", "bob", tokens[1])).status).toBe(201);
  expect((await revoke(application, tokens[2] ?? "")).status).toBe(200);
  moveClock(MINUTE);
  const invitations = await listedBy(application, "/v1/invitations");
  expect(invitations).toEqual(all);
  for (const token of tokens) expect(JSON.stringify(invitations)).not.toContain(token.slice(4));
  for (const state of ["pending", "claimed", "revoked", "expired"]) {
    const ofState = await listedBy(application, `/v1/invitations?state=${state}`);
    expect(ofState, state).toEqual(all.filter((each) => each.state === state));
  }
});

describe("GET /v1/events (contract section 19)", () => {
  it("GET /v1/events lists each event with its delivery, newest first", async () => {
    const endpoint = receiver((_, attempt) => answer(attempt === 1 ? 500 : 204, {}, attempt === 1 ? "down" : null));
    const outbox = await Outbox.open({ webhookUrl: endpoint.url });
    const failed = await outbox.issue("alice", '{"os":"iOS"}');
    await outbox.deliver(failed);
    outbox.now += SECOND;
    moveClock(SECOND);
    const delivered = await outbox.issue("bob");
    await outbox.deliver(delivered);
    const events = await listedBy(outbox.application, "/v1/events");
    const dueAt = Number((await outbox.event(failed)).dueAt);
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
    const ofState = (state: string) => idsOf(outbox.application, `/v1/events?state=${state}`);
    expect([await ofState("pending"), await ofState("delivered")]).toEqual([[failed], [delivered]]);
    expect(await ofState("exhausted")).toEqual([]);
  });

  it.each(["/v1/events", "/v1/invitations"])("pages of %s of one millisecond skip and repeat none", async (path) => {
    const application = await createApplication(RECORDED_EVENTS);
    const made: string[] = [];
    for (let place = 0; place < 5; place++) {
      if (path === "/v1/events") made.push(await issueTo(application, `phone ${place}`, "alice"));
      else made.push(String((await invite(application)).number));
    }
    const pages = await follow(application, path);
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    const shown = z.array(z.object({ badgeId: z.string().optional(), data: z.object({ id: z.string() }).optional() }));
    const ids = shown.parse(pages.flat()).map(({ badgeId, data }) => badgeId ?? data?.id);
    expect(ids.toSorted()).toEqual(made.toSorted());
  });

  it("a listed event has no next attempt while the endpoint's settings prevent one", async () => {
    const { application } = await withBadge(RECORDED_EVENTS);
    expect(await listedBy(application, "/v1/events?state=held")).toMatchObject([{ nextAttemptAt: null }]);
    const set = (sql: string) => runSql(sql, application.id);
    const dueAt = Date.now() + HOUR;
    await set(`UPDATE webhook_event SET state = 'pending', due_at = ${dueAt} WHERE application_id = ?`);
    expect(await listedBy(application, "/v1/events")).toMatchObject([{ state: "pending", nextAttemptAt: null }]);
    await set("UPDATE application SET webhook_held_at = NULL WHERE id = ?");
    expect(await listedBy(application, "/v1/events")).toMatchObject([{ nextAttemptAt: ahead(HOUR) }]);
    await set("UPDATE application SET webhook_url = NULL WHERE id = ?");
    expect(await listedBy(application, "/v1/events")).toMatchObject([{ nextAttemptAt: null }]);
  });
});

describe("GET /v1/invitations?from=&until=&q= (contract section 19)", () => {
  /** One invitation for each name; times are milliseconds ahead. @returns the tokens */
  async function inviteAll(
    application: TestApplication,
    visits: Readonly<Record<string, { starts?: number; ends?: number; until: number; userId?: string }>>,
  ): Promise<Record<string, string>> {
    const tokens: Record<string, string> = {};
    for (const [name, { starts, ends, until, userId }] of Object.entries(visits)) {
      const start = starts !== undefined && { badgeStartsAt: ahead(starts) };
      const body = { name, userId, expiresAt: ahead(until), ...start, ...(ends && { badgeExpiresAt: ahead(ends) }) };
      const made = await requestInvitation(application, body, serverHeaders(application));
      expect(made.status, JSON.stringify(made.body)).toBe(201);
      tokens[name] = String(made.body.id);
    }
    return tokens;
  }

  const namesOf = async (application: TestApplication, query: string, perPage = 2) =>
    (await follow(application, `/v1/invitations?${query}`, perPage)).flat().map(({ name }) => name);

  /** Longer than a day, a week and a month, so that all classes of visits are there. */
  const VISITS = {
    "next month": { starts: 30 * DAY, ends: 30 * DAY + HOUR, until: 20 * DAY },
    "a year": { starts: -300 * DAY, ends: 65 * DAY, until: 60 * DAY },
    "a fortnight": { starts: -10 * DAY, ends: 4 * DAY, until: DAY },
    "this morning": { starts: -2 * HOUR, ends: HOUR, until: HOUR },
    "three days": { starts: -DAY, ends: 2 * DAY, until: DAY },
    "until claimed": { until: 3 * HOUR },
    tomorrow: { starts: DAY, ends: DAY + HOUR, until: DAY },
  };
  const IN_ORDER = ["a year", "a fortnight", "three days", "this morning", "until claimed", "tomorrow", "next month"];

  it("invitations from one time until another are those whose visit begins before its end and ends after its beginning, in the order in which visits begin", async () => {
    const application = await createApplication();
    await inviteAll(application, VISITS);
    for (const perPage of [1, 2, 10]) {
      expect(await namesOf(application, `from=${time(-400 * DAY)}`, perPage)).toEqual(IN_ORDER);
      expect(await namesOf(application, `until=${time(31 * DAY)}`, perPage)).toEqual(IN_ORDER);
    }
    const touching = (from: number, until: number) => namesOf(application, `from=${time(from)}&until=${time(until)}`);
    expect(await touching(HOUR, DAY)).toEqual(["a year", "a fortnight", "three days", "until claimed"]);
    expect(await touching(HOUR - 1, DAY + 1)).toEqual(IN_ORDER.slice(0, 6));
    expect(await touching(3 * HOUR, 3 * HOUR)).toEqual(["a year", "a fortnight", "three days"]);
    expect(await touching(66 * DAY, 99 * DAY)).toEqual([]);
    expect(await touching(-299 * DAY, -11 * DAY)).toEqual(["a year"]);
    // A visit is found by its beginning, although its invitation has to be claimed before.
    expect(await touching(30 * DAY, 40 * DAY)).toEqual(["a year", "next month"]);
    expect(await touching(29 * DAY, 30 * DAY)).toEqual(["a year"]);
    await inviteAll(application, { "without end": { starts: 70 * DAY, until: DAY } });
    expect(await touching(70 * DAY, 71 * DAY)).toEqual(["without end"]);
    expect(await touching(70 * DAY + 1, 71 * DAY)).toEqual([]);
  });

  it("a visit that was moved after the claim is on its new day, with its new times", async () => {
    const application = await createApplication();
    const visit = { starts: HOUR, ends: 2 * HOUR, until: HOUR };
    const tokens = await inviteAll(application, { moved: visit, other: visit });
    const { body } = await claim(application, "phone", "visitor", tokens.moved);
    const of = (day: number) => `from=${time(day)}&until=${time(day + 6 * HOUR)}`;
    const times = { startsAt: ahead(DAY + HOUR), expiresAt: ahead(DAY + 2 * HOUR) };
    await callServer(application, "PATCH", `/v1/badges/${body.badgeId}`, times);
    expect(await namesOf(application, of(0))).toEqual(["other"]);
    expect(await namesOf(application, of(DAY))).toEqual(["moved"]);
    const [moved] = (await listPage(application, `/v1/invitations?${of(DAY)}`)).items;
    expect(moved).toMatchObject({ badgeStartsAt: times.startsAt, badgeExpiresAt: times.expiresAt });
    await callServer(application, "PATCH", `/v1/badges/${body.badgeId}`, { startsAt: null, expiresAt: null });
    const [today] = (await listPage(application, `/v1/invitations?${of(0)}`)).items;
    expect([today?.name, today?.badgeStartsAt]).toEqual(["moved", undefined]);
  });

  it("invitations can be searched by name and user ID, and filtered by a state that the clock decides, in both orders", async () => {
    const application = await createApplication();
    const tokens = await inviteAll(application, {
      "Zoë Müller": { starts: HOUR, until: DAY },
      "Ann Lee": { until: 2 * MINUTE, userId: "mueller" },
      "MÜLLER, Jo": { until: DAY },
      Bob: { until: DAY },
      "Tom Müller": { until: MINUTE },
    });
    expect((await claim(application, "phone", "Mr MÜLLER", tokens.Bob)).status).toBe(201);
    expect((await revoke(application, tokens["MÜLLER, Jo"] ?? "")).status).toBe(200);
    moveClock(MINUTE);
    const q = `q=${encodeURIComponent("müLLer")}`;
    expect(await namesOf(application, q)).toEqual(["Tom Müller", "Bob", "MÜLLER, Jo", "Zoë Müller"]);
    expect(await namesOf(application, `${q}&state=pending`)).toEqual(["Zoë Müller"]);
    const span = `from=${time(-DAY)}&until=${time(DAY)}`;
    for (const [state, found] of [
      ["pending", ["Zoë Müller"]],
      ["expired", ["Tom Müller"]],
      ["claimed", ["Bob"]],
      ["revoked", ["MÜLLER, Jo"]],
    ] as const) {
      expect([state, await namesOf(application, `${q}&state=${state}`)]).toEqual([state, found]);
      expect([state, await namesOf(application, `${q}&state=${state}&${span}`)]).toEqual([state, found]);
    }
    expect(await namesOf(application, `q=mueller&${span}`)).toEqual(["Ann Lee"]);
    expect(await namesOf(await createApplication(), span)).toEqual([]);
  });
});

it("GET /v1/access lists who has a console secret, by name and a page at a time (contract section 19)", async () => {
  const application = await createApplication();
  for (const role of ["viewer", "reception", "operator"] as const) await signIn(application, role);
  await signIn(await createApplication(), "operator");
  const pages = await follow(application, "/v1/access");
  expect(pages.map((page) => page.length)).toEqual([2, 1]);
  expect(pages.flat()).toEqual(
    ["operator", "reception", "viewer"].map((role) => ({
      ...{ name: expect.stringContaining(`The ${role} `), role, createdAt: "1970-01-01T00:00:00.001Z" },
    })),
  );
});

it("the history can be filtered by time, actor, action, badge, user, and all of these together (contract section 23)", async () => {
  const application = await createApplication();
  const [adas, bobs] = [await issueTo(application, "phone", "ada"), await issueTo(application, "tablet", "bob")];
  const byAnn = (badge: string, step: string) =>
    callServer(application, "PATCH", `/v1/badges/${badge}/${step}`, {}, { actor: "Ann%20Lee" });
  for (const act of [
    () => takeStep(application, adas, "suspend"),
    () => byAnn(adas, "resume"),
    () => byAnn(bobs, "suspend"),
    () => block(application, "ada"),
    () => unblock(application, "ada"),
  ]) {
    expect((await act()).status).toBe(200);
    moveClock(SECOND);
  }
  const span = `since=${time(-5 * SECOND)}&until=${time(-3 * SECOND)}`;
  const [suspended, resumed] = ["badge:suspended", "badge:resumed"];
  for (const [query, expected] of [
    [`since=${time(-SECOND)}&until=${time(0)}`, ["user:unblocked"]],
    [`until=${time(-3 * SECOND)}`, [resumed, suspended]],
    [`since=${time(-SECOND + 1)}`, []],
    ["since=1970-01-01T00:00:00Z&until=1970-01-02T00:00:00Z", []],
    ["actor=Ann%20Lee", [suspended, resumed]],
    ["actor=Ann", []],
    ["action=badge:suspended", [suspended, suspended]],
    [`action=badge:suspended&badge=${adas}`, [suspended]],
    ["action=badge:suspended&user=bob&actor=Ann%20Lee", [suspended]],
    [`badge=${adas}&user=ada&${span}`, [resumed, suspended]],
    [`badge=${adas}&user=ada&actor=Ann%20Lee&action=badge:resumed&${span}`, [resumed]],
    [`badge=${bobs}&user=ada&${span}`, []],
  ] as const) {
    const found = (await follow(application, `/v1/history?${query}`, 1)).flat();
    expect([query, found.map(({ action }) => action)]).toEqual([query, expected]);
  }
});
