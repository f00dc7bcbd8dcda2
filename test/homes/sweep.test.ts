import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { databaseBindingOf } from "../../src/shared/homes.ts";
import { type ApplicationId, newEventId } from "../../src/shared/identifiers.ts";
import { type Context, createContext } from "../../src/worker/context.ts";
import { HomeSweep } from "../../src/worker/home-sweep.ts";
import { homesOf } from "../../src/worker/homes.ts";
import { createApplication } from "../support/application.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { boundHome } from "../support/home.ts";
import { linesOf } from "../support/log-lines.ts";
import { KeptQueue } from "../support/outbox.ts";
import { inTurn, sweep } from "../support/sweep.ts";
import { until } from "../support/until.ts";

const lines = { info: vi.fn(), error: vi.fn() };

beforeEach(() => {
  lines.info = vi.spyOn(console, "log").mockImplementation(() => {});
  lines.error = vi.spyOn(console, "error").mockImplementation(() => {});
  for (const line of [lines.info, lines.error]) line.mockClear();
});

const MINUTE = 60_000;
/** A minute in which no rows of an old day are scanned (src/worker/retention.ts), on the 22nd of November 2026. */
const NOON = Date.UTC(2026, 10, 22, 12);

/** What the sweep does in a home once a minute at least, and what can wait, by a statement of each. */
const TICK = "INSERT INTO clock";
const WAKE = "AS rank";
const PURGE = "DELETE FROM webhook_event";

/** Homes with a clock of their own, over the two real D1s in turn; what each is asked goes through `around`. */
class Homes {
  /** Of each home by number, the statements of its round trips. */
  readonly trips = new Map<number, string[][]>();
  readonly deferred: Promise<unknown>[] = [];
  readonly queue = new KeptQueue();
  now = NOON;
  readonly contexts: [Context, ...Context[]];

  constructor(count: number, around: (home: number) => AroundTrip | undefined = () => undefined) {
    const bindings: Record<string, unknown> = {};
    for (let home = 1; home <= count; home++) {
      const through = around(home);
      bindings[databaseBindingOf(home)] = aroundD1(boundHome(1 + ((home + 1) % 2)).d1, (statements, send) => {
        this.trips.set(home, [...(this.trips.get(home) ?? []), statements.map(({ sql }) => sql)]);
        return through ? through(statements, send) : send();
      });
    }
    const [first, ...others] = homesOf({ ...env, ...bindings });
    const context = (home: typeof first): Context => {
      const made = createContext(env, (work) => this.deferred.push(work), home);
      return { ...made, queue: this.queue, now: () => this.now };
    };
    this.contexts = [context(first), ...others.map(context)];
  }

  get statements(): number {
    return [...this.trips.values()].flat(2).length;
  }

  /** Numbers of the homes that were asked this, sorted. */
  asked(text: string): number[] {
    return [...this.trips]
      .filter(([, trips]) => trips.some((trip) => trip.some((sql) => sql.includes(text))))
      .map(([home]) => home)
      .sort((one, other) => one - other);
  }
}

/** A D1 that never responds, until the test is over: what goes on after it would be seen by the next one. */
function hangingD1(): { hang: AroundTrip; giveUp(): void } {
  const calls: (() => void)[] = [];
  return {
    hang: () =>
      new Promise((_, reject) =>
        calls.push(() => reject(new Error("D1 DB is overloaded. Requests queued for too long."))),
      ),
    giveUp() {
      for (const end of calls) end();
    },
  };
}

/** The service's own limits, but for how long it waits for a home: this computer may be busy. */
const PATIENT = { homesAtOnce: 4, patienceMilliseconds: 60_000, milliseconds: 60_000, statements: 900 };

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

/** An event that is due, and whose own wake-up was lost. */
async function addDueEvent(home: number): Promise<string> {
  const { id: applicationId } = await createApplication({ home, webhookUrl: "https://hooks.example/badges" });
  const id = newEventId(NOON - MINUTE);
  await boundHome(home)
    .d1.prepare(
      `INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
       VALUES (?1, ?2, 'badge:created', '{}', 'pending', 0, ?3)`,
    )
    .bind(applicationId, id, NOON - MINUTE)
    .run();
  return id;
}

/** Blocked users whose badges were not all revoked when their request ended; `user-1` first. */
async function addUnfinishedBlocks(count: number): Promise<ApplicationId> {
  const { id } = await createApplication({ home: 1 });
  await boundHome(1)
    .d1.prepare(
      `WITH RECURSIVE user (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM user WHERE number < ?2)
       INSERT INTO blocked_user (application_id, user_id, blocked_at, is_revoking)
       SELECT ?1, 'user-' || number, ?3 + number, 1 FROM user`,
    )
    .bind(id, count, NOON - 10 * MINUTE)
    .run();
  return id;
}

const unfinishedBlocks = (application: ApplicationId) =>
  boundHome(1)
    .d1.prepare("SELECT COUNT(*) AS count FROM blocked_user WHERE application_id = ? AND is_revoking = 1")
    .bind(application)
    .first("count");

const errors = () => linesOf(lines.error).filter(({ event }) => event === "sweep-part-failed");

describe("the sweep of several homes (contract section 17)", () => {
  it("does what is urgent in every one of a hundred in every minute, within the 1,000 statements of one invocation", async () => {
    const homes = new Homes(100);
    await sweep(homes.contexts, PATIENT);
    expect(homes.statements).toBeLessThan(1000);
    expect(homes.asked(TICK)).toEqual(numbers(100));
    expect(homes.asked(WAKE)).toEqual(numbers(100));
    expect(homes.asked(PURGE).length).toBeGreaterThan(10);
    expect(errors()).toEqual([]);
  });

  it("does the rest in every home within as many minutes as there are homes, when there is too much for one", async () => {
    const served: number[][] = [];
    const homes = new Homes(12);
    for (const _ of numbers(12)) {
      homes.trips.clear();
      await sweep(homes.contexts, { ...PATIENT, statements: 110 });
      expect(homes.asked(WAKE)).toEqual(numbers(12));
      served.push(homes.asked(PURGE));
      homes.now += MINUTE;
    }
    expect(new Set(served.flat()).size).toBe(12);
    for (const inOneMinute of served) expect(inOneMinute.length).toBeLessThan(8);
  });

  it("wakes due events of every other home while four never respond, and does not wait for these", async () => {
    const events = [await addDueEvent(1), await addDueEvent(2)];
    const hanging = [3, 4, 7, 8];
    const { hang, giveUp } = hangingD1();
    const homes = new Homes(12, (home) => (hanging.includes(home) ? hang : undefined));
    await sweep(homes.contexts, { ...PATIENT, patienceMilliseconds: 50 });
    expect(errors(), "it waited until the calls were given up").toEqual([]);
    const others = numbers(12).filter((home) => !hanging.includes(home));
    await until(() => expect(homes.asked(WAKE)).toEqual(others));
    expect(new Set(homes.queue.sent.map(({ body }) => body.eventId))).toEqual(new Set(events));
    for (const home of hanging) expect(homes.trips.get(home)).toHaveLength(1);
    giveUp();
    await Promise.all(homes.deferred);
  });

  it.each(numbers(4))("does everything in two of four homes while the other two hang, in minute %i", async (minute) => {
    const { hang, giveUp } = hangingD1();
    const homes = new Homes(4, (home) => (home <= 2 ? hang : undefined));
    homes.now += minute * MINUTE;
    const swept = sweep(homes.contexts, PATIENT);
    await until(() => expect(homes.asked(PURGE)).toEqual([3, 4]));
    expect(errors(), "it waited until the calls were given up").toEqual([]);
    giveUp();
    await swept;
    expect(homes.asked(PURGE)).toEqual([3, 4]);
  });

  it("asks a home that is down once, and all others as ever", async () => {
    const overloaded: AroundTrip = () =>
      Promise.reject(new Error("D1 DB is overloaded. Requests queued for too long."));
    const homes = new Homes(12, (home) => (home % 4 === 2 ? overloaded : undefined));
    await sweep(homes.contexts, PATIENT);
    for (const home of numbers(12)) {
      const trips = homes.trips.get(home) ?? [];
      if (home % 4 === 2) expect(trips).toHaveLength(1);
      else expect(trips.length).toBeGreaterThan(10);
    }
    expect(errors().map(({ home, part }) => [home, part])).toEqual([
      [2, "checkClock"],
      [6, "checkClock"],
      [10, "checkClock"],
    ]);
  });

  it("keeps six statements for what is urgent in a home that was not visited yet", async () => {
    const [context] = new Homes(1).contexts;
    const visit = new HomeSweep(context);
    expect([visit.urgentStatements, visit.reservedStatements]).toEqual([0, 6]);
    await visit.doUrgent(() => false, null);
    expect([visit.urgentStatements, visit.reservedStatements]).toEqual([6, 6]);
    await visit.doRest(() => false);
    expect(visit.urgentStatements).toBe(6);
    expect(visit.reservedStatements).toBeGreaterThan(15);
  });

  it("goes on with a home's other work when one statement fails", async () => {
    const failing: AroundTrip = (statements, send) =>
      isAbout(statements, TICK) ? Promise.reject(new Error("D1_ERROR: no such table: clock: SQLITE_ERROR")) : send();
    const homes = new Homes(2, (home) => (home === 2 ? failing : undefined));
    await sweep(homes.contexts);
    expect(homes.asked(PURGE)).toEqual([1, 2]);
    expect(errors()).toMatchObject([{ home: 2, part: "checkClock" }]);
  });

  it("finishes a thousand blocks that a crash left, within the 1,000 statements of each minute's invocation", async () => {
    const application = await addUnfinishedBlocks(1000);
    const homes = new Homes(1);
    for (const _ of numbers(4)) {
      await sweep(homes.contexts, PATIENT);
      expect(homes.statements).toBeLessThan(1000);
      homes.trips.clear();
      homes.now += MINUTE;
    }
    expect(await unfinishedBlocks(application)).toBe(0);
  });

  it("finishes every other block while the oldest thirty cannot be", async () => {
    vi.spyOn(console, "warn").mockImplementation(() => {});
    const application = await addUnfinishedBlocks(60);
    const isOldest = ([, userId]: readonly unknown[]) => Number(String(userId).slice("user-".length)) <= 30;
    const refusing: AroundTrip = ([statement], send) =>
      statement?.sql.startsWith("UPDATE blocked_user") && isOldest(statement.parameters)
        ? Promise.reject(new Error("D1_ERROR: statement too long: SQLITE_TOOBIG"))
        : send();
    await sweep(new Homes(1, () => refusing).contexts, PATIENT);
    expect(await unfinishedBlocks(application)).toBe(30);
  });

  it("every line of its log names the home", async () => {
    await addDueEvent(2);
    const homes = new Homes(2);
    await sweep(homes.contexts);
    expect(linesOf(lines.info)).toContainEqual(expect.objectContaining({ event: "sweep", home: 2, isFinished: true }));
  });
});

describe("the order of homes (contract section 17)", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 12, 31, 62, 93, 100, 400])(
    "of %i: each is the first one once in as many minutes, and none is left out",
    (count) => {
      const homes = numbers(count);
      const firsts = homes.map((_, minute) => inTurn(homes, 29_000_000 + minute)[0]);
      expect(new Set(firsts).size).toBe(count);
      expect(inTurn(homes, 29_000_007).toSorted((one, other) => one - other)).toEqual(homes);
    },
  );

  it("of a hundred: in four minutes no two of the first ones are close together", () => {
    const homes = numbers(100);
    for (let minute = 29_000_000; minute < 29_000_100; minute++) {
      const firsts = [0, 1, 2, 3].map((later) => inTurn(homes, minute + later)[0] ?? 0);
      for (const [index, one] of firsts.entries()) {
        for (const other of firsts.slice(index + 1)) {
          const distance = Math.abs(one - other);
          expect(Math.min(distance, 100 - distance)).toBeGreaterThan(10);
        }
      }
    }
  });
});
