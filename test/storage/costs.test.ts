import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DAY } from "../invitations/support/clock.ts";
import { type Cost, MANY } from "../long-runs/scale/cost.ts";
import { createApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { serverHeaders } from "../support/http.ts";
import { Meter } from "../support/meter.ts";

const WITH_WEBHOOK = { webhookUrl: "https://hooks.example/badges" };

beforeEach(async () => {
  answering(204);
  await addLastApplication();
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Comes after every real one: a search by application reads one row more, if there is one, to see that it is done. */
async function addLastApplication(): Promise<void> {
  await homeDatabase().batch([
    homeDatabase().prepare(
      `INSERT OR IGNORE INTO application (id, name, first_number, last_number, sealed_device_key, sealing_version,
         created_at) VALUES ('~', 'Last', 1, 1, '', 1, 0)`,
    ),
    homeDatabase().prepare(
      `INSERT OR IGNORE INTO application_secret (id, application_id, role, digest, sealed, sealing_version, created_at)
       VALUES ('~', '~', 'current', '', '', 1, 0)`,
    ),
  ]);
}

/** What all receivers answer. */
function answering(status: number): void {
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response(null, { status }));
}

const times = (count: number, run: (place: number) => Promise<unknown>) =>
  Promise.all(Array.from({ length: count }, (_, place) => run(place)));

/** An application that this isolate knows, with its keys opened and some hundred badges, and a meter on its calls. */
async function open(columns: Parameters<typeof createApplication>[0] = {}) {
  const application = await createApplication(columns);
  const meter = new Meter(application);
  const call = async (method: string, path: string, headers: Record<string, string>, body?: unknown) => {
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const answer = await meter.request(new Request(`https://badges.example${path}`, init));
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
    return answer.body;
  };
  const device = (udid: string) => ({ applicationid: application.id, udid });
  const server = serverHeaders(application);
  const opened = {
    application,
    meter,
    badge: (udid: string, body: unknown = { userId: "alice" }) => call("POST", "/v1/badge", device(udid), body),
    sign: (udid: string) => call("POST", "/v1/badge/sign", device(udid), { base64: "aGVsbG8=" }),
    page: () => call("GET", "/v1/badges?per_page=100", server),
    suspend: (id: unknown) => call("PATCH", `/v1/badges/${id}/suspend`, server),
    revoke: (id: unknown) => call("PATCH", `/v1/invitation/${id}/revoke`, server),
    async invite(seconds = 600): Promise<unknown> {
      const expiresAt = new Date(Date.now() + seconds * 1000).toISOString();
      return (await call("POST", "/v1/invitation", device("server"), { expiresAt })).id;
    },
    /** The same, without the calls that only prepare what is to be measured. */
    measure: (act: () => Promise<unknown>): Promise<Cost> => meter.measure(act),
  };
  await opened.measure(async () => {
    await opened.badge("known");
    await opened.sign("known");
    await meter.deliver();
  });
  await fill(application);
  return opened;
}

/** Badges of other devices. They come after every real one: a search by device reads one row more, if there is one. */
async function fill({ id, firstNumber }: { id: string; firstNumber: number }, from = 0): Promise<void> {
  await homeDatabase()
    .prepare(
      `WITH RECURSIVE place (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n < 299)
     INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, position, turn)
     SELECT 5000000000 + ?2 + n, ?1, '~' || (?3 + n), 'user-' || (n % 50), '{"os":"iOS"}', 1, 'evt_' || n, ?3 + n + 10, 1
     FROM place`,
    )
    .bind(id, firstNumber, from)
    .run();
}

/** What an operation writes, at most. */
interface Limit {
  /** Rows of D1, index rows included. */
  d1: number;
  /** Rows of the object. */
  object: number;
  /** Calls of the object. */
  calls: number;
}

function expectWithin(name: string, cost: Cost, { d1, object, calls }: Limit): void {
  expect(cost.d1RowsWritten, `${name}: rows of D1`).toBeLessThanOrEqual(d1);
  expect(cost.objectRowsWritten, `${name}: rows of the object`).toBeLessThanOrEqual(object);
  expect(cost.objectCalls, `${name}: calls of the object`).toBe(calls);
  // A queue message is written by whoever sends it; nothing here sends more than one.
  expect(cost.queueOperations, `${name}: messages`).toBeLessThanOrEqual(1);
}

/** Writes nothing, and is one round trip. */
function expectRead(name: string, cost: Cost): void {
  expectWithin(name, cost, { d1: 0, object: 0, calls: 0 });
  expect(cost.d1RoundTrips, name).toBe(1);
}

/** The position of the application's list of changes: one row of every entry. */
const POSITION = 1;
/** The row of a badge with its indexes: by user device, page, page of the user, and change. */
const NEW_BADGE = 5;
/** An event with the index of what is due. */
const EVENT = 2;
/** A history row with the indexes of its badge and its user. */
const HISTORY = 3;
/** Index rows of the status list and of the state. */
const STATE = 2;
/** An entry of the object's journal. */
const ENTRY = 1;

describe("what the sweep costs (contract sections 5 and 8)", () => {
  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + DAY });
    const [publicKey] = env.TEST_SEALING_PUBLIC_KEYS;
    await homeDatabase()
      .prepare("INSERT OR IGNORE INTO sealing_key (version, public_key, created_at) VALUES (1, ?1, 0)")
      .bind(publicKey)
      .run();
  });

  it("one that finds nothing writes nothing, calls no object, and reads no more beside more badges", async () => {
    const { measure, meter, application } = await open();
    const idle = await measure(() => meter.sweep());
    expect(idle).toMatchObject({ d1RowsWritten: 0, objectCalls: 0, objectRowsWritten: 0, queueOperations: 0 });
    await fill({ ...application, firstNumber: application.firstNumber + 1_000_000_000 }, 1000);
    expect(await measure(() => meter.sweep())).toEqual(idle);
  });

  it("numbers of invitations that end together are released in one entry", async () => {
    const { measure, meter, invite } = await open();
    await measure(() => times(MANY, () => invite(60)));
    vi.setSystemTime(Date.now() + 120_000);
    const cost = await measure(() => meter.sweep());
    // An invitation with the indexes of its state; its number's reservation, and the freed number with its index.
    const each = 2 + 1 + 1;
    expectWithin("invitations that end", cost, { d1: POSITION + MANY * (each + HISTORY), object: ENTRY, calls: 1 });
  });
});

describe("what a request costs (contract sections 2 to 5, 12 and 23)", () => {
  it("a badge: new, requested again, with new metadata, signing, listed, suspended", async () => {
    const { badge, sign, page, suspend, measure } = await open(WITH_WEBHOOK);
    let id: unknown;
    const issue = async () => {
      id = (await badge("new")).badgeId;
    };
    expectWithin("new badge", await measure(issue), { d1: POSITION + NEW_BADGE + EVENT, object: ENTRY, calls: 1 });
    expectRead("login", await measure(() => badge("new")));
    const metadata = { os: "iOS" };
    // The badge's row, and its index of changes.
    const changed = { d1: POSITION + 2, object: ENTRY, calls: 1 };
    expectWithin("login with metadata", await measure(() => badge("new", { userId: "alice", metadata })), changed);
    expectRead("signature", await measure(() => sign("new")));
    expectRead("page of 100", await measure(() => page()));
    // The badge's row, and the old and the new row of its index of changes.
    const suspended = { d1: POSITION + 3 + HISTORY + STATE, object: ENTRY, calls: 1 };
    expectWithin("suspended", await measure(() => suspend(id)), suspended);
  });

  it("a new badge of an application that does not subscribe to events", async () => {
    const { badge, measure } = await open();
    expectWithin("new badge", await measure(() => badge("new")), { d1: POSITION + NEW_BADGE, object: ENTRY, calls: 1 });
  });

  it("badges issued together write as many D1 rows each, and fewer rows of the object", async () => {
    const { badge, measure } = await open();
    const together = await measure(() => times(MANY, (place) => badge(`device-${place}`)));
    expect(together.objectCalls).toBe(MANY);
    expect(together.d1RowsWritten).toBeLessThan(MANY * (POSITION + NEW_BADGE));
    expect(together.objectRowsWritten).toBeLessThan(MANY * ENTRY);
  });

  it("an invitation: created, claimed, revoked", async () => {
    const { badge, invite, revoke, measure } = await open(WITH_WEBHOOK);
    let id: unknown;
    const create = async () => {
      id = await invite();
    };
    // An invitation with the indexes of its page, its state and what is due; the number's reservation.
    const created = { d1: POSITION + 4 + 1 + HISTORY, object: ENTRY, calls: 1 };
    expectWithin("invitation created", await measure(create), created);
    const claim = () => badge("guest", { userId: "guest", invitationToken: id });
    const claimed = { d1: 9 + HISTORY + STATE, object: ENTRY, calls: 1 };
    expectWithin("invitation claimed", await measure(claim), claimed);
    await measure(create);
    // The invitation's row and its index of states; the reservation, and the freed number.
    const revoked = { d1: POSITION + 2 + 1 + 1 + HISTORY, object: ENTRY, calls: 1 };
    expectWithin("invitation revoked", await measure(() => revoke(id)), revoked);
  });
});

describe("what a webhook costs (contract section 8)", () => {
  it.each([
    // The event's row, and the index of its state.
    { status: 204, rows: 2, operations: 2 },
    // The first failure of an endpoint that was well is noted, and the wake-up of the next attempt is sent.
    { status: 500, rows: 4, operations: 3 },
  ])("answered with $status: one in a batch, and some in a batch", async ({ status, rows, operations }) => {
    for (const count of [1, MANY]) {
      const { badge, meter, measure } = await open(WITH_WEBHOOK);
      await measure(() => times(count, (place) => badge(`device-${place}`)));
      answering(status);
      // What ended together is written together, however late a busy machine lets the last sender finish.
      const wait = vi.spyOn(scheduler, "wait").mockImplementation(() => new Promise(() => {}));
      const cost = await measure(() => meter.deliver());
      wait.mockRestore();
      answering(204);
      expect(cost).toMatchObject({ d1RoundTrips: 2, queueOperations: count * operations, objectCalls: 0 });
      expect(cost.d1RowsWritten).toBeLessThanOrEqual(count * rows);
    }
  });
});
