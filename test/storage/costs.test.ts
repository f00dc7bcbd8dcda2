import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BACKGROUND_COSTS, COSTS, type Cost, MANY } from "../long-runs/scale/cost.ts";
import { createApplication } from "../support/application.ts";
import { DAY, HOUR, MINUTE } from "../support/clock.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { serverHeaders } from "../support/http.ts";
import { Meter } from "../support/meter.ts";

const WITH_WEBHOOK = { webhookUrl: "https://hooks.example/badges" };

beforeEach(async () => {
  answering(204);
  await addLastApplication();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Comes after every real one: a search by application reads one row more, if there is one, to see that it is done. */
async function addLastApplication(): Promise<void> {
  await homeDatabase().batch([
    homeDatabase().prepare(
      `INSERT OR IGNORE INTO application (id, name, first_number, last_number, sealed_root_key, sealing_version,
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

/** How the calls before were grouped makes some rows of difference to what the allocator reads of its own. */
const near = (cost: Cost) => ({ ...cost, objectRowsRead: expect.closeTo(cost.objectRowsRead, -2) });

/** An application that this isolate knows, with its keys opened and some hundred badges, and a meter on its calls. */
async function open(columns: Parameters<typeof createApplication>[0] = {}) {
  const application = await createApplication(columns);
  const meter = new Meter(application);
  const call = async (method: string, path: string, headers: Record<string, string>, body?: unknown) => {
    const answer = await meter.request(method, path, { headers, body });
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
async function fill({ id, firstNumber }: { id: string; firstNumber: number }): Promise<void> {
  await runSql(
    `WITH RECURSIVE place (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n < 299)
     INSERT INTO badge (number, application_id, device, user_id, metadata, signing_key_id, event_id, ordinal, login_sequence)
     SELECT 5000000000 + ?2 + n, ?1, '~' || n, 'user-' || (n % 50), '{"os":"iOS"}', 1, 'evt_' || n, n + 10, 1 FROM place`,
    id,
    firstNumber,
  );
}

/**
 * Tomorrow at 04:45 UTC: ahead of the platform's own clock, which rings an alarm of the past by itself; and until December 2029
 * the clock scans no rows of an old day in the next eight minutes of a day (src/worker/scheduling/old-rows.ts).
 */
function quietMinute(): number {
  const today = new Date().setUTCHours(0, 0, 0, 0);
  return today + DAY + 4 * HOUR + 45 * MINUTE;
}

describe("what clocks and alarms cost (contract sections 5 and 8)", () => {
  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: quietMinute() });
    const [publicKey] = env.TEST_SEALING_PUBLIC_KEYS;
    await runSql("INSERT OR IGNORE INTO sealing_key (version, public_key, created_at) VALUES (1, ?1, 0)", publicKey);
  });

  const countApplications = async (): Promise<number> =>
    (await homeDatabase().prepare("SELECT id FROM application").all()).results.length;

  it("a tick of the scheduler that finds nothing reads a few rows, and a few of each application", async () => {
    const { measure, meter } = await open();
    const { idleTick, idleTickOfApplication } = BACKGROUND_COSTS;
    for (let ticks = 0; ticks < 2; ticks++) {
      const { d1RoundTrips, d1RowsRead, ...others } = await measure(() => meter.tick());
      const { d1RoundTrips: trips, d1RowsRead: rows, ...expected } = idleTick;
      expect(others).toEqual(expected);
      expect(d1RoundTrips).toBeLessThanOrEqual(trips);
      expect(d1RowsRead).toBeLessThanOrEqual(rows + idleTickOfApplication.d1RowsRead * (await countApplications()));
      await times(5, () => createApplication());
    }
  });

  it("numbers of invitations that end together are released by one alarm", async () => {
    const { measure, meter, invite } = await open();
    await measure(() => times(MANY, () => invite(60)));
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 120_000 });
    expect(await measure(() => meter.ring())).toEqual(near(COSTS["invitation expired, 20 at once"]));
  });

  it("the alarm after changes asks D1 once where its head is, however many changes there were", async () => {
    const { measure, meter, badge } = await open();
    await measure(() => times(MANY, (place) => badge(`device-${place}`)));
    expect(await measure(() => meter.ring())).toEqual(near(BACKGROUND_COSTS.alarm));
  });
});

describe("what a request or a webhook costs (contract sections 2 to 5 and 8)", () => {
  it("a badge: new, requested again, with new metadata, signing, listed", async () => {
    const { badge, sign, page, measure } = await open(WITH_WEBHOOK);
    expect(await measure(() => badge("new"))).toEqual(near(COSTS["new badge, webhook URL set"]));
    expect(await measure(() => badge("new"))).toEqual(near(COSTS["login (existing badge)"]));
    expect(await measure(() => badge("new", { userId: "alice", metadata: { os: "iOS" } }))).toEqual(
      near(COSTS["login with newer metadata"]),
    );
    expect(await measure(() => sign("new"))).toEqual(near(COSTS.signature));
    expect(await measure(() => page())).toEqual(near(COSTS["page of 100"]));
  });

  it("a new badge of an application without a webhook; those issued together write fewer rows each", async () => {
    const { badge, measure } = await open();
    expect(await measure(() => badge("new"))).toEqual(near(COSTS["new badge, none set"]));
    const { d1RowsWritten, objectRowsWritten, objectCalls } = COSTS["new badge, none set"];
    const together = await measure(() => times(MANY, (place) => badge(`device-${place}`)));
    expect(together.objectCalls).toBe(MANY * objectCalls);
    // The head is one row a group, and so is the entry.
    expect(together.d1RowsWritten).toBeGreaterThan(MANY * (d1RowsWritten - 1));
    expect(together.d1RowsWritten).toBeLessThan(MANY * d1RowsWritten);
    expect(together.objectRowsWritten).toBeLessThan(MANY * objectRowsWritten);
  });

  it("an invitation: created, claimed, revoked", async () => {
    const { badge, invite, revoke, measure } = await open(WITH_WEBHOOK);
    let id: unknown;
    const create = async () => {
      id = await invite();
    };
    expect(await measure(create)).toEqual(near(COSTS["invitation created"]));
    const claim = () => badge("guest", { userId: "guest", invitationToken: id });
    expect(await measure(claim)).toEqual(near(COSTS["invitation claimed"]));
    await measure(create);
    expect(await measure(() => revoke(id))).toEqual(near(COSTS["invitation revoked"]));
  });

  it.each([
    { status: 204, one: COSTS["delivery, alone in its batch"], many: COSTS["delivery, 20 a batch"] },
    { status: 500, one: COSTS["failed attempt, alone"], many: COSTS["failed attempt, 20 a batch"] },
  ])("webhooks answered with $status: one in a batch, and some in a batch", async ({ status, one, many }) => {
    for (const [count, cost] of [[1, one] as const, [MANY, many] as const]) {
      const { badge, meter, measure } = await open(WITH_WEBHOOK);
      await measure(() => times(count, (place) => badge(`device-${place}`)));
      answering(status);
      expect(await measure(() => meter.deliver())).toEqual(near(cost));
      answering(204);
    }
  });
});
