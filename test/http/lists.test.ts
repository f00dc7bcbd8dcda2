import { drizzle } from "drizzle-orm/d1";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { makeConsoleSecret } from "../../src/shared/credentials.ts";
import { newEventId } from "../../src/shared/identifiers.ts";
import { consoleSecret } from "../../src/shared/schema.ts";
import { block, callServer, issueTo, setEnd, takeStep, unblock } from "../badges/life-support.ts";
import { requestInvitation } from "../invitations/support/calls.ts";
import { ahead, HOUR, moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { call, requestBadge, serverHeaders } from "../support/http.ts";
import { outcome } from "./support/draft.ts";

useStandingClock();

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

const anyPage = z.record(z.string(), z.array(z.record(z.string(), z.unknown())));

/** A page of a list. @param query with its question mark */
async function page(application: TestApplication, path: string) {
  const { status, body, headers } = await callServer(application, "GET", path);
  expect(status, JSON.stringify(body)).toBe(200);
  const [items = []] = Object.values(anyPage.parse(body));
  return { items, next: headers.get("pagination-cursor") };
}

/** All pages of a list, each of `perPage` items. */
async function follow(application: TestApplication, path: string, perPage = 2) {
  const pages = [];
  for (let next: string | null = ""; next !== null; ) {
    const query = `per_page=${perPage}${next === "" ? "" : `&cursor=${next}`}`;
    const found = await page(application, `${path}${path.includes("?") ? "&" : "?"}${query}`);
    pages.push(found.items);
    next = found.next;
  }
  return pages;
}

const idsOf = async (application: TestApplication, path: string) =>
  (await follow(application, path)).flat().map(({ id }) => id);

/** Sets columns that no call sets yet. */
const setBadge = (number: string, column: "name" | "starts_at", value: string | number) =>
  homeDatabase().prepare(`UPDATE badge SET ${column} = ?2 WHERE number = ?1`).bind(Number(number), value).run();

describe("GET /v1/badges?state= (contract section 24)", () => {
  it("lists the badges that are in a state now, whether or not their expiry is recorded", async () => {
    const application = await createApplication();
    const names = [
      "active",
      "suspended",
      "revoked",
      "expired",
      "expired and suspended",
      "expired by the clock",
    ] as const;
    const ids = new Map<string, string>();
    for (const name of names) ids.set(name, await issueTo(application, name, name));
    const of = (name: (typeof names)[number]) => ids.get(name) ?? "";
    await takeStep(application, of("suspended"), "suspend");
    await takeStep(application, of("revoked"), "revoke");
    await takeStep(application, of("expired and suspended"), "suspend");
    for (const name of ["expired", "expired and suspended"] as const) await setEnd(application, of(name), ahead(-HOUR));
    await setEnd(application, of("expired by the clock"), ahead(SECOND));
    moveClock(SECOND);
    const { body } = await callServer(application, "PATCH", "/v1/users/nobody/block");
    expect(body.blocked).toBe(true);
    expect(await idsOf(application, "/v1/badges?state=active")).toEqual([of("active")]);
    expect(await idsOf(application, "/v1/badges?state=suspended")).toEqual([of("suspended")]);
    expect(await idsOf(application, "/v1/badges?state=revoked")).toEqual([of("revoked")]);
    expect(await idsOf(application, "/v1/badges?state=replaced")).toEqual([]);
    const expired = [of("expired"), of("expired and suspended"), of("expired by the clock")];
    expect(await idsOf(application, "/v1/badges?state=expired")).toEqual(expired);
    expect(await idsOf(application, "/v1/badges?state=expired&order=newest")).toEqual(expired.toReversed());
    const [found] = (await page(application, "/v1/badges?state=expired&per_page=1")).items;
    expect(found).toEqual({
      ...{ id: of("expired"), userId: "expired", state: "expired", expiresAt: ahead(-HOUR - SECOND) },
      ...{ issuedAt: ahead(-SECOND), changedAt: ahead(-SECOND) },
    });
  });

  it("tells a person who made the last change, however long ago, unless that was a login, and nobody in a plain page", async () => {
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
    await homeDatabase()
      .prepare(
        `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < 1500)
         INSERT INTO history (application_id, id, at, action, actor_kind) SELECT ?1, 'his_~' || n, 9, 'key:rotated', 'server' FROM place`,
      )
      .bind(application.id)
      .run();
    const { row, secret } = await makeConsoleSecret();
    const person = { ...row, applicationId: application.id, name: "Eve", role: "viewer", createdAt: 0 } as const;
    await drizzle(homeDatabase()).insert(consoleSecret).values(person);
    const { items } = await page({ ...application, secret }, "/v1/badges?order=newest");
    const actors = Object.fromEntries(items.map(({ id, changedBy }) => [id, changedBy]));
    expect(JSON.stringify(await page(application, "/v1/badges?order=newest"))).not.toContain("Tom");
    expect(actors).toEqual({
      [suspended ?? ""]: { kind: "server", name: "Tom" },
      [resumed ?? ""]: { kind: "server", name: "Ann" },
      [loggedIn ?? ""]: undefined,
      [untouched ?? ""]: undefined,
    });
    for (const path of ["/v1/badges", "/v1/users/suspended/badges"]) {
      expect(JSON.stringify(await page({ ...application, secret }, path))).not.toContain("Tom");
    }
  });

  it("leaves a plain page as it was: state and times only where section 12 has them", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    expect((await page(application, "/v1/badges")).items).toEqual([{ id, userId: "alice" }]);
    await setBadge(id, "name", "Alice");
    await setBadge(id, "starts_at", Date.parse("2030-01-01T00:00:00Z"));
    const named = { id, userId: "alice", name: "Alice", startsAt: "2030-01-01T00:00:00.000Z" };
    expect((await page(application, "/v1/badges")).items).toEqual([named]);
    expect((await page(application, "/v1/users/alice/badges")).items).toEqual([named]);
    const { body, headers } = await callServer(application, "GET", `/v1/badges/${id}`);
    expect(body).toEqual({ ...named, state: "active", issuedAt: ahead(0), changedAt: ahead(0) });
    expect(headers.get("etag")).toBe('"1"');
  });
});

describe("GET /v1/badges?q= (contract section 24)", () => {
  it("finds parts of user IDs and names in any case, also beyond ASCII, and takes no character for a wildcard", async () => {
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

  it("goes on behind a page that ends early, until everything was looked at", async () => {
    const application = await createApplication({ size: 100_000 });
    await homeDatabase()
      .prepare(
        `WITH RECURSIVE place (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n < 4999)
       INSERT INTO badge (number, application_id, device, user_id, position, turn, issued_at)
       SELECT ?2 + n, ?1, 'd' || n, iif(n % 1000 = 700, 'wanted', 'other'), n + 1, 1, 1 FROM place`,
      )
      .bind(application.id, application.firstNumber)
      .run();
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
  it("lists what ends before a time, alone or with other filters", async () => {
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

  it("refuses what it does not know, and cursors of the other order", async () => {
    const application = await createApplication();
    for (let place = 0; place < 2; place++) await issueTo(application, `phone ${place}`, "alice");
    const { next } = await page(application, "/v1/badges?per_page=1");
    const newest = (await page(application, "/v1/badges?per_page=1&order=newest")).next;
    for (const [query, code] of [
      ...["state=", "state=Active", "state=pending", "state=active&state=active", "order=oldest"].map((q) => [
        q,
        "STATE",
      ]),
      ...["q=", "q=a", `q=${"x".repeat(256)}`, "q=ab&q=cd"].map((query) => [query, "NAME"]),
      ...["endsBefore=", "endsBefore=2030-01-01", "endsBefore=2030-01-01T00:00:00"].map((query) => [
        query,
        "EXPIRESAT",
      ]),
      [`order=newest&cursor=${next}`, "CURSOR"],
      [`cursor=${newest}`, "CURSOR"],
    ]) {
      expect(`${query} ${outcome(await callServer(application, "GET", `/v1/badges?${query}`))}`).toBe(
        `${query} 422 INVALID_${code}`,
      );
    }
  });
});

describe("GET /v1/users?state=blocked (contract section 24)", () => {
  it("lists blocked users in the order in which they were blocked", async () => {
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

describe("GET /v1/invitations (contract section 24)", () => {
  it("has the name, the user and the start of a visit", async () => {
    const application = await createApplication();
    const { body } = await requestInvitation(application, { expiresAt: ahead(HOUR) }, serverHeaders(application));
    await homeDatabase()
      .prepare(
        "UPDATE invitation SET name = 'Ada', user_id = 'ada', badge_starts_at = '2030-01-01T08:00:00+01:00' WHERE application_id = ?",
      )
      .bind(application.id)
      .run();
    expect((await page(application, "/v1/invitations?state=pending")).items).toEqual([
      {
        ...{ badgeId: body.badgeId, state: "pending", createdAt: ahead(0), expiresAt: ahead(HOUR) },
        ...{ name: "Ada", userId: "ada", badgeStartsAt: "2030-01-01T08:00:00+01:00" },
      },
    ]);
  });
});

describe("GET /v1/history (contract section 23)", () => {
  const write = (application: TestApplication, row: Record<string, string | number | null>) => {
    const columns = {
      ...{ application_id: application.id, id: newEventId(Date.now()).replace("evt_", "his_"), at: Date.now() },
      ...{ action: "badge:revoked", actor_kind: "server", ...row },
    };
    const names = Object.keys(columns);
    return homeDatabase()
      .prepare(`INSERT INTO history (${names}) VALUES (${names.map(() => "?")})`)
      .bind(...Object.values(columns))
      .run();
  };

  it("lists newest first who did what, by badge, by user or both", async () => {
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
