import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { eventIdPrefix } from "../../src/shared/identifiers.ts";
import { DAY_MILLISECONDS, HOUR_MILLISECONDS } from "../../src/shared/time.ts";
import { BADGE_CURSOR } from "../../src/worker/badges/list.ts";
import { findRecipients } from "../../src/worker/storage/command-rows.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { readCounts } from "../../src/worker/storage/statistics-counts.ts";
import { readStatusRows } from "../../src/worker/storage/status-lists.ts";
import { findDueEvents, releaseHeldEvents } from "../../src/worker/storage/webhook-backlog.ts";
import { reconcile } from "../allocator/support.ts";
import { aroundObjectD1, wake } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { billOf } from "../support/bill.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { type AroundTrip, aroundD1, type Statement } from "../support/d1.ts";
import { byEffort } from "../support/effort.ts";
import { isAbout } from "../support/faults.ts";
import { bindDatabase, homeDatabase, runSql } from "../support/home.ts";
import { type Answer, serverHeaders } from "../support/http.ts";
import { Meter } from "../support/meter.ts";
import { setUntriedFrom } from "../support/outbox.ts";

/**
 * Rows of each kind that no read of the measured application may read: another application's, and its own of other states.
 * More than any page or sweep may look at; the same reads are then the same beside any number.
 */
const MANY = byEffort(10_000, 100_000);

const NOW = Date.parse("2030-01-01T00:00:00Z");
const PER_PAGE = 10;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
});

type Row = Record<string, number | string | null>;

/**
 * Rows of a table, made by SQLite.
 *
 * @param columns SQL expressions over `n`, which counts from `first`, and `?1`, the application
 */
async function fill(table: string, { id }: { id: string }, count: number, columns: Row, first = 1): Promise<void> {
  const names = Object.keys(columns);
  await runSql(
    `WITH RECURSIVE place (n) AS (SELECT CAST(?3 AS INTEGER) UNION ALL SELECT n + 1 FROM place WHERE n + 1 < ?3 + ?2)
     INSERT INTO ${table} (application_id, ${names}) SELECT ?1, ${names.map((name) => columns[name] ?? "NULL")} FROM place WHERE ?2 > 0`,
    id,
    count,
    first,
  );
}

let nextNumber = 6_000_000_000;

/** @param from the ordinal before the first */
const badges = async (application: TestApplication, count: number, from: number, columns: Row = {}, first = 1) => {
  const row = {
    ...{ number: `${nextNumber} + n`, device: `'d' || (${nextNumber} + n)`, user_id: "'user ' || n" },
    ...{ event_id: "'evt_' || n", signing_key_id: 1, ordinal: `${from} + n`, login_sequence: 1 },
    ...{ issued_at: 1000, change: `${from} + n`, changed_at: 1000, ...columns },
  };
  await fill("badge", application, count, row, first);
  nextNumber += first + count;
};

const invitations = (
  application: TestApplication,
  count: number,
  {
    state,
    createdAt,
    ends = NOW + 1000,
    first = 1,
  }: { state: string; createdAt: number; ends?: number; first?: number },
) => {
  const row = {
    ...{ digest: `?1 || '${state} ${createdAt} ' || n`, number: "n", state: `'${state}'`, creator_device: "'d'" },
    ...{ expires_at: "'2030'", expires_at_time: ends, created_at: `${createdAt} + n` },
  };
  return fill("invitation", application, count, row, first);
};

const events = (application: TestApplication, count: number, state: string, madeAt: number, first = 1) => {
  const row = {
    id: `'${eventIdPrefix(madeAt)}' || printf('%016d', n)`,
    ...{ event: "'badge:created'", payload: "'{\"data\":{}}'", state: `'${state}'` },
    ...{ due_at: NOW + 1000, created_at: madeAt },
  };
  return fill("webhook_event", application, count, row, first);
};

const history = (
  application: TestApplication,
  count: number,
  { madeAt, badge, userId, first = 1 }: { madeAt: number; badge: number; userId: string; first?: number },
) => {
  const row = {
    id: `'his_${eventIdPrefix(madeAt).slice(4)}' || printf('%016d', n)`,
    ...{ at: madeAt, action: "'badge:suspended'", actor_kind: "'server'", badge, user_id: `'${userId}'` },
  };
  return fill("history", application, count, row, first);
};

const blocked = (application: TestApplication, count: number, first = 1) =>
  fill("blocked_user", application, count, { user_id: "'blocked ' || n", blocked_at: "n" }, first);

const people = (application: TestApplication, count: number, first = 1) => {
  const digest = `'${"d".repeat(43)}'`;
  const row = { name: "'person ' || n", id: "n", digest, created_at: 1000 };
  return fill("console_secret", application, count, row, first);
};

const doors = (application: TestApplication, count: number, first = 1) => {
  const row = { name: "'door ' || n", id: "'sec_' || n", digest: "printf('%043d', n)", created_at: 1000 };
  return fill("door_secret", application, count, row, first);
};

/** Three of everything that is listed. */
async function fillFew(application: TestApplication): Promise<void> {
  await badges(application, 3, 0);
  await badges(application, 3, 3, { state: "'suspended'", status_change: "3 + n" });
  await badges(application, 3, 6, { state: "'revoked'", ended_at: 1000, status_change: "6 + n" });
  await badges(application, 3, 9, { state: "'replaced'", ended_at: 1000, superseded_at: 1000, status_change: "9 + n" });
  await badges(application, 3, 12, { ended_at: 1000, expires_at: 1000, status_change: "12 + n" });
  await badges(application, 3, 15, { expires_at: 2000 });
  for (const state of ["pending", "claimed", "revoked", "expired"]) {
    await invitations(application, 3, { state, createdAt: 1_000_000 });
  }
  await invitations(application, 3, { state: "pending", createdAt: 2_000_000, ends: NOW - 1000 });
  for (const [index, state] of ["pending", "delivered", "exhausted", "held"].entries()) {
    await events(application, 3, state, 1000 * (index + 1));
  }
  await history(application, 3, { madeAt: 1000, badge: 17, userId: "alice" });
  await blocked(application, 3);
  await people(application, 3);
  await doors(application, 3);
}

/** What stands beside it, before and after it in the order of every list. */
async function fillMany(application: TestApplication, count: number, first: number): Promise<void> {
  const user_id = "'other ' || n";
  await badges(application, count, 1000, { user_id, expires_at: 9_000_000_000_000 }, first);
  await badges(application, count, 200_000, { user_id, state: "'revoked'", ended_at: 1000 }, first);
  await invitations(application, count, { state: "claimed", createdAt: 3_000_000, first });
  await events(application, count, "delivered", 10_000, first);
  await history(application, count, { madeAt: 20_000, badge: 18, userId: "bob", first });
}

/** An application with everything, of which much is due. */
async function fillOther(application: TestApplication, count: number, first: number): Promise<void> {
  await badges(application, count, 0, { expires_at: 2000 }, first);
  await badges(application, count, 200_000, { state: "'suspended'", status_change: "n" }, first);
  await invitations(application, count, { state: "pending", createdAt: 1000, ends: NOW - 1000, first });
  await events(application, count, "held", 1000, first);
  await history(application, count, { madeAt: 1000, badge: 17, userId: "alice", first });
  await blocked(application, count, first);
  await people(application, count, first);
  await doors(application, count, first);
}

/** Pages for which an index has no other rows; a value is how many items there are. */
const READS: Record<string, number> = {
  "/v1/badges?order=newest&state=suspended": 3,
  ...{ "/v1/badges?state=suspended": 3, "/v1/badges?state=replaced": 3, "/v1/badges?state=expired": 6 },
  // Of three that it reads, the clock has ended one.
  "/v1/users/user%201/badges": 2,
  "/v1/users?state=blocked": 3,
  ...{ "/v1/invitations?state=pending": 3, "/v1/invitations?state=revoked": 3, "/v1/invitations?state=expired": 6 },
  ...{ "/v1/events?state=pending": 3, "/v1/events?state=exhausted": 3, "/v1/events?state=held": 3 },
  "/v1/access": 3,
  "/v1/doors": 3,
  ...{ "/v1/history?until=1970-01-01T00:00:02Z": 3, "/v1/history?badge=17&since=1970-01-01T00:00:00Z": 3 },
  ...{ "/v1/history?badge=17": 3, "/v1/history?user=alice": 3, "/v1/history?badge=17&user=alice": 3 },
};

/** Pages that look at rows of other states too, but never at more than the contract allows. */
const BOUNDED = [
  ...["/v1/badges?state=active", "/v1/badges?q=nobody", "/v1/badges?endsBefore=2020-01-01T00:00:00Z"],
  ...["/v1/badges?state=revoked&q=nobody", "/v1/badges?state=expired&q=nobody&order=newest"],
  ...["/v1/events?state=delivered", "/v1/events", "/v1/invitations", "/v1/history", "/v1/changes"],
  ...["/v1/badges?state=revoked", "/v1/invitations?state=claimed", "/v1/badges"],
  ...[
    "/v1/invitations?q=nobody",
    "/v1/invitations?state=claimed&q=nobody",
    "/v1/invitations?until=2030-01-02T00:00:00Z",
  ],
  ...["/v1/invitations?from=2031-01-01T00:00:00Z", "/v1/invitations?state=expired&from=1999-01-01T00:00:00Z&q=nobody"],
  ...["/v1/history?actor=nobody", "/v1/history?action=user:erased", "/v1/history?badge=18&user=bob&actor=nobody"],
];

/** Of each list of /openapi.json: without a filter, and with each of its states. */
const LISTS = Object.entries(openApiDocument(NOW).paths).flatMap(([path, { get: { parameters = [] } = {} }]) => {
  if (!parameters.some(({ name }) => name === "per_page")) return [];
  const states = parameters.find(({ name }) => name === "state")?.schema.enum ?? [];
  return [path.replace("{id}", "user%201"), ...states.map((state) => `${path}?state=${String(state)}`)];
});

const page = z.record(z.string(), z.unknown());

/** Adds to `bills` how many rows each trip to D1 reads that is `counted`. */
function billing(bills: number[], isCounted: (statements: readonly Statement[]) => boolean = () => true): AroundTrip {
  return async (statements, send) => {
    const result = await send();
    if (isCounted(statements)) bills.push((await billOf(statements, result)).rowsRead);
    return result;
  };
}

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0);

/** Calls an application's server, and counts what D1 reads, but not what tells who calls. */
async function read(application: TestApplication, path: string) {
  const bills: number[] = [];
  const isCounted = (statements: readonly Statement[]) => !isAbout(statements, "FROM application WHERE application.id");
  const d1 = aroundD1(homeDatabase(), billing(bills, isCounted));
  const onePage = `${path}${path.includes("?") ? "&" : "?"}per_page=${PER_PAGE}`;
  const bindings = { ...bindDatabase(d1), DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED };
  const answer = await callWith(bindings, "GET", onePage, { headers: serverHeaders(application) });
  expect(answer.status, `${path} ${JSON.stringify(answer.body)}`).toBe(200);
  const [list] = Object.values(page.parse(answer.body)).filter((value) => Array.isArray(value));
  const cursor = answer.headers.get("pagination-cursor");
  return { rowsRead: sumOf(bills), items: list?.length, hasNext: cursor !== null, cursor };
}

it.each(["/v1/badges", "/v1/users/user-0/badges"])(
  "%s reads as many rows for a late page as for the first (contract section 4)",
  async (path) => {
    const application = await createApplication();
    await badges(application, 20_000, 0, { user_id: "'user-' || (n % 4)" });
    for (const ordinal of [0, 10_000, 19_600]) {
      const { rowsRead, items } = await read(application, `${path}?cursor=${BADGE_CURSOR.encode(ordinal)}`);
      // One more tells whether another page follows.
      expect({ ordinal, rowsRead, items }).toEqual({ ordinal, rowsRead: PER_PAGE + 1, items: PER_PAGE });
    }
  },
);

/** What each kind of call that changes something reads and writes, and what devices ask for most. */
async function measureCalls(application: TestApplication, name: string): Promise<Record<string, unknown>> {
  const meter = new Meter(application);
  const costs: Record<string, unknown> = {};
  const call = async (kind: string, method: string, path: string, headers: Record<string, string>, body?: unknown) => {
    let answer: Answer | undefined;
    const { d1RowsRead, d1RowsWritten } = await meter.measure(async () => {
      answer = await meter.request(method, path, { headers, body });
    });
    costs[kind] = { d1RowsRead, d1RowsWritten };
    expect(answer?.status, `${kind} ${JSON.stringify(answer?.body)}`).toBeLessThan(300);
    return answer;
  };
  const device = (udid: string) => ({ applicationid: application.id, udid: `${name} ${udid}` });
  const server = serverHeaders(application);
  const invite = (kind: string) =>
    call(kind, "POST", "/v1/invitation", device("server"), { expiresAt: new Date(NOW + 600_000).toISOString() });
  // The object has begun its list of entries, and a page of changes is full.
  for (let place = 0; place < 12; place++)
    await call("first", "POST", "/v1/badge", device(`${place}`), { userId: "a" });
  delete costs.first;
  await call("new badge", "POST", "/v1/badge", device("one"), { userId: "alice" });
  await call("login", "POST", "/v1/badge", device("one"), { userId: "alice" });
  await call("metadata", "POST", "/v1/badge", device("one"), { userId: "alice", metadata: { os: "iOS" } });
  await call("signature", "POST", "/v1/badge/sign", device("one"), { base64: "aGVsbG8=" });
  const token = (await invite("invitation"))?.body.id;
  await call("claim", "POST", "/v1/badge", device("two"), { userId: "bob", invitationToken: token });
  const revoked = (await invite("another invitation"))?.body.id;
  await call("revoked invitation", "PATCH", `/v1/invitation/${revoked}/revoke`, server);
  const user = `carol ${name}`;
  const badge = (await call("third badge", "POST", "/v1/badge", device("three"), { userId: user }))?.body.badgeId;
  await call("end", "PATCH", `/v1/badges/${badge}`, server, { expiresAt: "2031-01-01T00:00:00Z" });
  for (const step of ["suspend", "resume", "rebind", "revoke"]) {
    await call(step, "PATCH", `/v1/badges/${badge}/${step}`, server);
  }
  await call("block", "PATCH", `/v1/users/${user}/block`, server);
  await call("unblock", "PATCH", `/v1/users/${user}/unblock`, server);
  const cursor = (await call("feed", "GET", "/v1/changes?per_page=1", server))?.headers.get("pagination-cursor");
  await call("changes", "GET", `/v1/changes?per_page=10&cursor=${cursor}`, server);
  return costs;
}

describe("a call costs what it returns or changes (contract sections 21 and 24)", () => {
  it("the cost of every list is measured, without a filter and with each of its states", () => {
    const measured = [...Object.keys(READS), ...BOUNDED];
    // One cannot be listed without its state.
    expect(LISTS.filter((list) => list !== "/v1/users" && !measured.includes(list))).toEqual([]);
  });

  it("a later page of expired invitations costs as much beside many older ones that are pending", async () => {
    const application = await createApplication();
    await invitations(application, 5000, { state: "pending", createdAt: 1_000_000 });
    await invitations(application, 2 * PER_PAGE, { state: "expired", createdAt: 2_000_000 });
    const { cursor } = await read(application, "/v1/invitations?state=expired");
    const { items, rowsRead } = await read(application, `/v1/invitations?state=expired&cursor=${cursor}`);
    expect(items).toBe(PER_PAGE);
    expect(rowsRead).toBeLessThan(100);
  });

  it("visits of a day cost as much beside many short ones of days before and after", async () => {
    const application = await createApplication();
    const day = (days: number) => {
      const createdAt = NOW + days * DAY_MILLISECONDS;
      return { state: "claimed", createdAt, ends: createdAt + HOUR_MILLISECONDS };
    };
    for (const days of [-2, 2]) await invitations(application, 5000, day(days));
    await invitations(application, 3, day(0));
    const span = "from=2030-01-01T00:00:00Z&until=2030-01-01T12:00:00Z";
    const { items, rowsRead, hasNext } = await read(application, `/v1/invitations?${span}`);
    expect({ items, hasNext }).toEqual({ items: 3, hasNext: false });
    expect(rowsRead).toBeLessThan(100);
  });

  it("whether a user is blocked costs as much beside many blocked users", async () => {
    const application = await createApplication();
    const digests = { user_id: "'blocked ' || n", user_digest: "printf('%043d', n)", blocked_at: "n" };
    await fill("blocked_user", application, 2, digests);
    const few = await read(application, "/v1/users/nobody");
    await fill("blocked_user", application, 10_000, digests, 3);
    expect(await read(application, "/v1/users/nobody")).toEqual(few);
  });

  it("a new allocator's copy, a republication and a verification read no rows of an application with lower numbers", async () => {
    const other = await createApplication();
    const number = `${other.firstNumber} - 1 + n`;
    await fill("badge", other, 5000, { number });
    await fill("freed_number", other, 5000, { number, freed_at: 1 });
    const application = await createApplication();
    const rowsRead: number[] = [];
    await aroundObjectD1(application, () => billing(rowsRead));
    await wake(application);
    expect(await reconcile(application, { republish: true, verify: true })).toMatchObject({ republished: true });
    expect(rowsRead.length).toBeGreaterThan(10);
    expect(Math.max(...rowsRead)).toBeLessThan(100);
  });

  it("a verification reads each row a few times, however many pages there are", async () => {
    const application = await createApplication();
    await invitations(application, 8000, { state: "revoked", createdAt: 1_000_000 });
    await wake(application);
    const rowsRead: number[] = [];
    await aroundObjectD1(application, () => billing(rowsRead, (statements) => isAbout(statements, "from invitation")));
    expect(await reconcile(application, { verify: true })).toMatchObject({ differences: { count: 0 } });
    expect(rowsRead.length).toBeGreaterThan(8);
    expect(Math.max(...rowsRead)).toBeLessThan(4000);
  });

  it(`a call costs what it returns or changes beside ${MANY} rows of other applications and of other states`, {
    timeout: 300_000,
  }, async () => {
    const made = await Promise.all([1, 2, 3, 4].map(() => createApplication()));
    // In the order of their IDs, in which indexes have them: the measured ones are in the middle.
    const [before, application, caller, after] = made.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    if (!before || !application || !caller || !after) throw new Error("there are four");
    await fillFew(application);
    // One of each, so that every range has a row behind it, which a search reads to see that it has ended.
    for (const other of [before, after]) await fillOther(other, 1, 1);
    for (const own of [application, caller]) await fillMany(own, 1, 1);
    const measureAll = async () => {
      const rows: Record<string, number> = {};
      for (const [path, items] of Object.entries(READS)) {
        const found = await read(application, path);
        expect([path, found.items]).toEqual([path, items]);
        rows[path] = found.rowsRead;
      }
      return rows;
    };
    // As the ticks leave it: events with a due time are found by their index.
    await setUntriedFrom(NOW);
    const few = await measureAll();
    const fewOfCalls = await measureCalls(caller, "few");
    for (const rowsRead of Object.values(few)) expect(rowsRead).toBeLessThanOrEqual(60);
    for (const other of [before, after]) await fillOther(other, MANY, 2);
    for (const own of [application, caller]) await fillMany(own, MANY, 2);
    expect(await measureAll()).toEqual(few);
    expect(await measureCalls(caller, "many")).toEqual(fewOfCalls);
    const limit = 10 * PER_PAGE + 1000;
    for (const path of BOUNDED) expect((await read(application, path)).rowsRead, path).toBeLessThanOrEqual(limit);
    // A page that ends early goes on.
    expect(await read(application, "/v1/badges?q=nobody")).toMatchObject({ items: 0, hasNext: true });
    await sweepsReadTheirLimit(before);
  });

  /** What the sweep looks for in all applications: at most its limit of each, and one look where nothing is. */
  async function sweepsReadTheirLimit(crowded: TestApplication): Promise<void> {
    const cost = async (work: (db: Database) => Promise<unknown>) => {
      const bills: number[] = [];
      await work(new Database(aroundD1(homeDatabase(), billing(bills))));
      return sumOf(bills);
    };
    await runSql("UPDATE webhook_event SET due_at = 0 WHERE state = 'pending'");
    const due = { now: NOW, createdBefore: NOW, perApplication: 10, limit: 100 };
    expect(await cost((db) => findDueEvents(db, due))).toBeLessThan(100);
    expect(await cost((db) => releaseHeldEvents(db, 10))).toBeLessThan(200);
    expect(await cost((db) => findRecipients(db))).toBeLessThan(20);
    // Of a list that has no badge, beside the expiries of others that nobody has recorded.
    const list = { applicationId: crowded.id, list: 9 };
    expect(await cost((db) => readStatusRows(db, list, NOW, 100))).toBeLessThan(10);
  }
});

it("statistics read at most 60,000 rows of an application of any size (contract section 19)", async () => {
  const [size, isNew] = [100_000, "n >= 99970"];
  const application = await createApplication({ size, reuseAfterSeconds: 86_400 });
  const { id } = application;
  const metadata = "json_object('os', 'OS ' || (n % 20))";
  await badges(application, size, 0, { metadata, ended_at: "iif(n % 7, NULL, 1000)" });
  await runSql("UPDATE application_head SET last_ordinal = ?2 WHERE application_id = ?1", id, size);
  // A fifth of each kind, and the newest 30 never tried.
  const row = {
    ...{ id: "'evt_' || printf('%026d', n)", event: "'badge:created'", payload: "'{}'", created_at: 1 },
    state: `iif(${isNew}, 'pending', json_array('pending', 'held', 'exhausted', 'delivered', 'delivered') ->> (n % 5))`,
    due_at: `iif(${isNew} OR n % 5, NULL, 1)`,
    last_outcome: `iif(${isNew}, NULL, iif(n % 2, 'answered', 'timeout'))`,
  };
  await fill("webhook_event", application, size, row, 0);
  for (const coolingDown of [0, 20_000]) {
    await fill("freed_number", application, coolingDown, { number: "5 + n", freed_at: NOW });
    const bills: number[] = [];
    const counts = await readCounts(new Database(aroundD1(homeDatabase(), billing(bills))), id, NOW);
    expect(sumOf(bills)).toBeLessThanOrEqual(60_000);
    const limit = coolingDown === 0 ? 9975 : 7475;
    const eventsIn = (state: string) =>
      sumOf((counts?.deliveries ?? []).filter((each) => each.state === state).map((each) => each.events));
    expect(["exhausted", "held", "pending"].map(eventsIn)).toEqual([limit, limit, limit + 30]);
    expect(counts?.deliveries).toContainEqual({ state: "pending", outcome: null, events: 30 });
    expect(counts?.deliveries.map(({ outcome }) => outcome)).toContain("timeout");
    expect(sumOf((counts?.metadata ?? []).map((each) => each.badges))).toBe(20_000);
    expect(counts?.application.coolingDown).toBe(coolingDown === 0 ? 0 : 10_000);
  }
});
