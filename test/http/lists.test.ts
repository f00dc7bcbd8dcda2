import { base64url } from "jose";
import { describe, expect, it } from "vitest";
import { eventPage } from "../../src/shared/event-responses.ts";
import { newEventId } from "../../src/shared/identifiers.ts";
import { block, issueTo, setEnd, takeStep, unblock, withBadge } from "../badges/life-support.ts";
import { claim, invite, requestInvitation, revoke } from "../invitations/support/calls.ts";
import { ahead, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { RECORDED_EVENTS } from "../invitations/support/storage.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { runSql } from "../support/home.ts";
import { call, callServer, requestBadge, serverHeaders } from "../support/http.ts";
import { Outbox } from "../support/outbox.ts";
import { answer, useReceivers } from "../support/receivers.ts";
import { outcome } from "./support/draft.ts";
import { follow, listPage } from "./support/pages.ts";
import { signIn } from "./support/people.ts";

useStandingClock();
const receiver = useReceivers();

const idsOf = async (application: TestApplication, path: string) =>
  (await follow(application, path)).flat().map(({ id }) => id);

/** What a page would have of an invitation or an event. */
const listedBy = async (application: TestApplication, path: string) => (await listPage(application, path)).items;

/** Sets columns that no call sets yet. */
const setBadge = (number: string, column: "name" | "starts_at", value: string | number) =>
  runSql(`UPDATE badge SET ${column} = ?2 WHERE number = ?1`, Number(number), value);

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
    const [suspended, resumed, loggedIn, untouched] = await Promise.all(
      ["suspended", "resumed", "logged in", "untouched"].map((name) => issueTo(application, name, name)),
    );
    const act = (id: unknown, step: string, actor: string) =>
      call("PATCH", `/v1/badges/${id}/${step}`, { headers: { ...serverHeaders(application), actor } });
    expect((await act(suspended, "suspend", "Tom")).status).toBe(200);
    for (const actor of ["Tom", "Ann"]) {
      moveClock(SECOND);
      expect((await act(resumed, actor === "Tom" ? "suspend" : "resume", actor)).status).toBe(200);
    }
    for (const step of ["suspend", "resume"]) expect((await act(loggedIn, step, "Tom")).status).toBe(200);
    moveClock(SECOND);
    await requestBadge(application, "logged in", { userId: "logged in", metadata: { os: "iOS" } });
    // More rows than any page of history has.
    await runSql(
      `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < 1500)
         INSERT INTO history (application_id, id, at, action, actor_kind) SELECT ?1, 'his_~' || n, 9, 'key:rotated', 'server' FROM place`,
      application.id,
    );
    const { applicationsecret: secret = "" } = await signIn(application, "viewer");
    const person = { ...application, secret };
    const { items } = await listPage(person, "/v1/badges?order=newest");
    const actors = Object.fromEntries(items.map(({ id, changedBy }) => [id, changedBy]));
    expect(JSON.stringify(await listPage(application, "/v1/badges?order=newest"))).not.toContain("Tom");
    expect(actors).toEqual({
      [suspended ?? ""]: { kind: "server", name: "Tom" },
      [resumed ?? ""]: { kind: "server", name: "Ann" },
      [loggedIn ?? ""]: undefined,
      [untouched ?? ""]: undefined,
    });
    for (const path of ["/v1/badges", "/v1/users/suspended/badges"]) {
      expect(JSON.stringify(await listPage(person, path))).not.toContain("Tom");
    }
  });

  it("a plain page of badges has state and times only where section 12 has them", async () => {
    const { application, number: id } = await withBadge();
    expect((await listPage(application, "/v1/badges")).items).toEqual([{ id, userId: "alice" }]);
    await setBadge(id, "name", "Alice");
    await setBadge(id, "starts_at", Date.parse("2030-01-01T00:00:00Z"));
    const named = { id, userId: "alice", name: "Alice", startsAt: "2030-01-01T00:00:00.000Z" };
    expect((await listPage(application, "/v1/badges")).items).toEqual([named]);
    expect((await listPage(application, "/v1/users/alice/badges")).items).toEqual([named]);
    const { body, headers } = await callServer(application, "GET", `/v1/badges/${id}`);
    expect(body).toEqual({ ...named, state: "active", issuedAt: ahead(0), changedAt: ahead(0) });
    expect(headers.get("etag")).toBe('"1"');
  });
});

describe("GET /v1/badges?q= (contract section 24)", () => {
  it("?q= finds parts of user IDs and names in any case, also beyond ASCII, and takes no character for a wildcard", async () => {
    const application = await createApplication();
    const users = ["Jörg.MÜLLER@example", "anna", "ANNABEL", "50%_off", "x", "ЖЕНЯ"];
    const ids: string[] = [];
    for (const user of users) ids.push(await issueTo(application, user.length.toString() + ids.length, user));
    await setBadge(ids[4] ?? "", "name", "Zoë Ångström");
    const found = async (text: string) =>
      (await idsOf(application, `/v1/badges?q=${encodeURIComponent(text)}`)).map(
        (id) => users[ids.indexOf(String(id))],
      );
    expect(await found("müller")).toEqual(["Jörg.MÜLLER@example"]);
    expect(await found("JÖRG.m")).toEqual(["Jörg.MÜLLER@example"]);
    expect(await found("Anna")).toEqual(["anna", "ANNABEL"]);
    expect(await found("%_")).toEqual(["50%_off"]);
    expect(await found("__")).toEqual([]);
    expect(await found("zoË å")).toEqual(["x"]);
    expect(await found("женя")).toEqual(["ЖЕНЯ"]);
    expect(await found("' OR 1")).toEqual([]);
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

describe("GET /v1/badges?endsBefore= and order=newest (contract section 24)", () => {
  it("?endsBefore= lists badges that end before a time, alone or with other filters", async () => {
    const application = await createApplication();
    const ids: string[] = [];
    for (const [index, hours] of [1, 2, 3, null].entries()) {
      const id = await issueTo(application, `phone ${index}`, `user ${index}`);
      if (hours !== null) await setEnd(application, id, ahead(hours * HOUR));
      ids.push(id);
    }
    const endsBefore = (hours: number) =>
      `endsBefore=${encodeURIComponent(ahead(hours * HOUR).replace("Z", "+00:00"))}`;
    expect(await idsOf(application, `/v1/badges?${endsBefore(3)}`)).toEqual(ids.slice(0, 2));
    expect(await idsOf(application, `/v1/badges?${endsBefore(9)}&order=newest`)).toEqual(ids.slice(0, 3).toReversed());
    expect(await idsOf(application, `/v1/badges?${endsBefore(9)}&q=ER%202&state=active`)).toEqual([ids[2]]);
    expect(await idsOf(application, "/v1/badges?order=newest")).toEqual(ids.toReversed());
  });

  it("a list of badges refuses cursors of the other order", async () => {
    const application = await createApplication();
    for (let place = 0; place < 2; place++) await issueTo(application, `phone ${place}`, "alice");
    const { next } = await listPage(application, "/v1/badges?per_page=1");
    const newest = (await listPage(application, "/v1/badges?per_page=1&order=newest")).next;
    for (const query of [`order=newest&cursor=${next}`, `cursor=${newest}`]) {
      expect(outcome(await callServer(application, "GET", `/v1/badges?${query}`))).toBe("422 INVALID_CURSOR");
    }
  });
});

describe("queries of lists (contract sections 4, 19 and 24)", () => {
  const PER_PAGE = ["0", "-1", "1.5", "many"].map((text) => [`per_page=${text}`, "PER_PAGE"]);
  const CURSOR = ["", "AAAA", "ZXZlbnRzOg", "%00"].map((text) => [`cursor=${text}`, "CURSOR"]);
  const statesOf = (...texts: string[]) => texts.map((text) => [`state=${text}`, "STATE"]);
  const filters = [
    ...[...statesOf("", "Active", "pending", "active&state=active"), ["order=oldest", "STATE"]],
    ...["q=", "q=a", `q=${"x".repeat(256)}`, "q=ab&q=cd"].map((query) => [query, "NAME"]),
    ...["endsBefore=", "endsBefore=2030-01-01", "endsBefore=2030-01-01T00:00:00"].map((query) => [query, "EXPIRESAT"]),
  ];

  it.each([
    ["/v1/badges", filters],
    ["/v1/invitations", statesOf("", "Pending", "all", "held", "pending,claimed", "pending&state=pending")],
    ["/v1/events", statesOf("", "Pending", "all", "claimed", "pending,held", "pending&state=pending")],
  ])("queries of %s are refused unless the list has them, also with the cursor of another list", async (path, own) => {
    const application = await createApplication(RECORDED_EVENTS);
    for (let place = 0; place < 2; place++) {
      await invite(application);
      await issueTo(application, `phone ${place}`, "alice");
    }
    const others = ["/v1/badges", "/v1/invitations", "/v1/events"].filter((other) => other !== path);
    const cursors = await Promise.all(
      others.map(async (list) => (await listPage(application, `${list}?per_page=1`)).next),
    );
    for (const cursor of cursors) expect(cursor).toMatch(/^[\w-]+$/);
    const foreign = cursors.map((cursor) => [`cursor=${cursor}`, "CURSOR"]);
    for (const [query, code] of [...PER_PAGE, ...CURSOR, ...foreign, ...own]) {
      const refused = outcome(await callServer(application, "GET", `${path}?${query}`));
      expect(`${query} ${refused}`).toBe(`${query} 422 INVALID_${code}`);
    }
  });
});

describe("the cursor of another release (contract sections 4 and 13)", () => {
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

describe("GET /v1/users?state=blocked (contract section 24)", () => {
  it("?state=blocked lists blocked users in the order in which they were blocked", async () => {
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
});

describe("GET /v1/invitations (contract sections 19 and 24)", () => {
  it("GET /v1/invitations lists invitations of every state, newest first, with what was sent and who claimed, and no token", async () => {
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
    const visit = { name: "Ada", userId: "ada", badgeStartsAt: oddTime, badgeExpiresAt: ahead(2 * HOUR) };
    const pending = await make(oddTime, visit);
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
    const invitations = await listedBy(application, "/v1/invitations");
    expect(invitations).toEqual(all);
    for (const token of tokens) expect(JSON.stringify(invitations)).not.toContain(token.slice(4));
    for (const state of ["pending", "claimed", "revoked", "expired"]) {
      const ofState = await listedBy(application, `/v1/invitations?state=${state}`);
      expect(ofState, state).toEqual(all.filter((each) => each.state === state));
    }
    expect(await listedBy(await createApplication(), "/v1/invitations")).toEqual([]);
  });

  it("pages of invitations of one millisecond skip and repeat none", async () => {
    const application = await createApplication();
    const made: string[] = [];
    for (let place = 0; place < 4; place++) made.unshift(String((await invite(application)).number));
    const pages = await follow(application, "/v1/invitations");
    expect(pages.map((page) => page.length)).toEqual([2, 2]);
    expect(pages.flat()).toMatchObject(made.map((badgeId) => ({ badgeId })));
  });
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
    for (const [state, id] of [
      ["pending", failed],
      ["delivered", delivered],
    ]) {
      expect(await idsOf(outbox.application, `/v1/events?state=${state}`)).toEqual([id]);
    }
    expect(await listedBy(outbox.application, "/v1/events?state=exhausted")).toEqual([]);
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

  it("pages of events of one millisecond skip and repeat none", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const numbers: string[] = [];
    for (let place = 0; place < 5; place++) numbers.push(await issueTo(application, `phone ${place}`, "alice"));
    const pages = await follow(application, "/v1/events");
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    const all = eventPage.parse({ events: pages.flat() }).events;
    expect(all.map(({ data }) => data.id).toSorted()).toEqual(numbers.toSorted());
    const ids = all.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted().toReversed());
  });
});

describe("GET /v1/history (contract section 23)", () => {
  const write = (application: TestApplication, row: Record<string, string | number | null>) => {
    const columns = {
      ...{ application_id: application.id, id: newEventId(Date.now()).replace("evt_", "his_"), at: Date.now() },
      ...{ action: "badge:revoked", actor_kind: "server", ...row },
    };
    const names = Object.keys(columns);
    return runSql(`INSERT INTO history (${names}) VALUES (${names.map(() => "?")})`, ...Object.values(columns));
  };

  it("GET /v1/history lists newest first who did what, by badge, by user or both", async () => {
    const [application, other] = [await createApplication(), await createApplication()];
    await write(application, { badge: 17, user_id: "alice", actor_kind: "person", actor_name: "Tom", reason: "Lost" });
    moveClock(SECOND);
    await write(application, { badge: 17, user_id: "bob", request_id: "r-1", detail: '{"expiresAt":null}' });
    moveClock(SECOND);
    await write(application, { action: "user:blocked", user_id: "alice", actor_kind: "administrator" });
    await write(other, { badge: 17, user_id: "alice" });
    const all = [
      { at: ahead(0), action: "user:blocked", actor: { kind: "administrator" }, userId: "alice" },
      {
        ...{ at: ahead(-SECOND), action: "badge:revoked", actor: { kind: "server" }, badgeId: "17", userId: "bob" },
        ...{ requestId: "r-1", detail: { expiresAt: null } },
      },
      {
        ...{ at: ahead(-2 * SECOND), action: "badge:revoked", actor: { kind: "person", name: "Tom" }, badgeId: "17" },
        ...{ userId: "alice", reason: "Lost" },
      },
    ];
    expect((await follow(application, "/v1/history")).map((items) => items.length)).toEqual([2, 1]);
    expect((await follow(application, "/v1/history", 1)).flat()).toEqual(all);
    expect((await follow(application, "/v1/history?badge=17", 1)).flat()).toEqual(all.slice(1));
    expect((await follow(application, "/v1/history?user=alice", 1)).flat()).toEqual([all[0], all[2]]);
    expect((await follow(application, "/v1/history?badge=17&user=alice", 1)).flat()).toEqual([all[2]]);
    expect((await follow(application, "/v1/history?badge=18")).flat()).toEqual([]);
  });
});
