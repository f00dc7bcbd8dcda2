import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { sweep } from "../support/sweep.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { byEffort } from "../support/effort.ts";
import { homeDatabase } from "../support/home.ts";
import { requestBadge } from "../support/http.ts";
import { invite } from "./support/calls.ts";
import { ahead, MINUTE, moveClock, SECOND, useStandingClock } from "./support/clock.ts";
import { interceptedContext } from "./support/intercepted.ts";
import { expectConsistent } from "./support/invariants.ts";
import { useQuietLog } from "./support/log.ts";
import { RECORDED_EVENTS, readInvitation, readLedger } from "./support/storage.ts";

const log = useQuietLog();
useStandingClock();

const sweepLines = (): Record<string, unknown>[] => log.lines().filter(({ event }) => event === "sweep");

describe("the sweep (contract section 5: expiry needs no request to happen)", () => {
  it("expires what is past its time, frees the numbers, and says so in one log line", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const past = [await invite(application, ahead(SECOND)), await invite(application, ahead(MINUTE))];
    const later = await invite(application, ahead(MINUTE + 1));
    moveClock(MINUTE);
    await sweep([testContext().context]);
    for (const { token } of past) {
      expect(await readInvitation(token)).toMatchObject({ state: "expired", releasedAt: Date.now() });
    }
    expect(await readInvitation(later.token)).toMatchObject({ state: "pending" });
    const { ledger } = await expectConsistent(application);
    expect(ledger.free).toEqual(past.map(({ number }) => number));
    expect(sweepLines()).toMatchObject([{ invitationsExpired: 2, numbersReleased: 2, isFinished: true }]);
  });

  it("says nothing when there is nothing to do", async () => {
    await sweep([testContext().context]);
    const before = sweepLines().length;
    await sweep([testContext().context]);
    expect(sweepLines().slice(before)).toEqual([]);
  });

  it("ends an application's invitations although another's object fails, and later retries that", async () => {
    const applications = [await createApplication(RECORDED_EVENTS), await createApplication(RECORDED_EVENTS)];
    const [failing, sound] = applications.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    if (!failing || !sound) throw new Error("there are two");
    const context = interceptedContext((target, call) => {
      if (target.part === "allocator" && target.applicationId === failing.id) throw new Error("no answer");
      return call();
    });
    const ofSound = await invite(sound, ahead(SECOND));
    const ofFailing = [await invite(failing, ahead(SECOND)), await invite(failing, ahead(SECOND))];
    moveClock(SECOND);
    await sweep([context]);
    expect((await readLedger(sound)).free).toEqual([ofSound.number]);
    expect((await readLedger(failing)).free).toEqual([]);
    await sweep([context]);
    await sweep([testContext().context]);
    const { ledger } = await expectConsistent(failing);
    expect(ledger.free.toSorted()).toEqual(ofFailing.map(({ number }) => number).toSorted());
  });

  it("frees numbers although the queue fails", async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges" });
    const queue = { sendBatch: () => Promise.reject(new Error("no answer")), send: () => Promise.reject(new Error()) };
    const overrides = { queue: { ...testContext().context.queue, ...queue } };
    await homeDatabase()
      .prepare(
        `INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
       VALUES (?1, 'evt_lost', 'badge:created', '{}', 'pending', 0, 0)`,
      )
      .bind(application.id)
      .run();
    const { token } = await invite(application, ahead(SECOND));
    moveClock(SECOND);
    await sweep([testContext(overrides).context]);
    await homeDatabase().prepare("DELETE FROM webhook_event WHERE id = 'evt_lost'").run();
    expect(await readInvitation(token)).toMatchObject({ state: "expired", releasedAt: Date.now() });
    expect(log.lines()).toContainEqual(expect.objectContaining({ event: "sweep-part-failed", part: "wakeEvents" }));
    expect(sweepLines()).toMatchObject([{ isFinished: false }]);
  });
});

const MANY = byEffort(60_000, 100_000);
/** Of these the object knows the lease; for the others it is as if it had been restored to an older state. */
const LEASED = 5_000;

describe("many invitations that expire in one minute (contract section 5)", () => {
  it(`${MANY} are ended by a few sweeps, each within its time, while badges go on being issued`, async () => {
    // What other tests left pending.
    moveClock(2 * MINUTE);
    await sweep([testContext().context]);
    const before = sweepLines().length;
    const [crowded, other] = [await createApplication(), await createApplication()];
    const notYet = await invite(crowded);
    await fillWithPending(crowded);
    moveClock(MINUTE);
    let issued = 0;
    let sweeps = 0;
    for (; (await countDue(crowded)) > 0; sweeps++) {
      expect(sweeps).toBeLessThan(10);
      // Each look at the clock takes 60 ms, so that a sweep's 20 s are over before it is through.
      const startedAt = Date.now();
      let looks = 0;
      const { context } = testContext({ now: () => startedAt + 60 * looks++ });
      let isSwept = false;
      const swept = sweep([context]).finally(() => {
        isSwept = true;
      });
      while (!isSwept) {
        const application = issued % 2 === 0 ? crowded : other;
        expect((await requestBadge(application, `device ${issued}`, { userId: "alice" })).status).toBe(201);
        issued++;
      }
      await swept;
      moveClock(MINUTE);
    }
    expect(sweeps).toBeGreaterThan(1);
    expect(issued).toBeGreaterThan(sweeps);

    const lines = sweepLines().slice(before);
    const sum = (field: string) => lines.reduce((total, line) => total + Number(line[field]), 0);
    expect(sum("invitationsExpired")).toBe(MANY);
    expect(sum("numbersReleased")).toBe(MANY);
    expect(lines.map(({ isFinished }) => isFinished)).toEqual([...lines.slice(1).map(() => false), true]);
    for (const line of lines) expect(Number(line.milliseconds)).toBeLessThan(21 * SECOND);

    expect(await readInvitation(notYet.token)).toMatchObject({ state: "pending" });
    const { leases, free } = await readLedger(crowded);
    expect(leases.filter(({ holder }) => holder.startsWith("invitation:"))).toHaveLength(1);
    const cameBack = [...free, ...leases.map(({ number }) => number)].filter((number) => number >= FIRST_FILLED);
    expect(cameBack).toHaveLength(LEASED);
    expect(new Set(cameBack).size).toBe(LEASED);
  }, 60_000);
});

/** Far from every range of this file. */
const FIRST_FILLED = 7_000_000_000;

/** Pending invitations that expire within the next minute, as D1 and the object have them. */
async function fillWithPending({ id }: TestApplication): Promise<void> {
  const each = "WITH RECURSIVE each (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM each WHERE n + 1 < ?2)";
  const prepare = (sql: string, ...more: number[]) =>
    homeDatabase()
      .prepare(`${each} ${sql}`)
      .bind(id, MANY, FIRST_FILLED, ...more);
  await homeDatabase().batch([
    prepare("INSERT INTO badge (number, application_id, invitation) SELECT ?3 + n, ?1, ?1 || n FROM each"),
    prepare(
      `INSERT INTO invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time,
         created_at)
       SELECT ?1 || n, ?1, ?3 + n, 'pending', 'creator', 'in a minute', ?4 + n * 7 % ${MINUTE}, ?4 FROM each`,
      Date.now(),
    ),
  ]);
  await runInDurableObject(env.ALLOCATOR.getByName(id), (_, { storage: { sql } }) => {
    sql.exec(
      `${each} INSERT INTO lease (holder, number, leased_at, confirmed)
       SELECT 'invitation:' || ?1 || n, ?3 + n, 0, 1 FROM each`,
      id,
      LEASED,
      FIRST_FILLED,
    );
  });
}

async function countDue({ id }: TestApplication): Promise<number> {
  const count = await homeDatabase()
    .prepare(
      "SELECT count(*) AS due FROM invitation WHERE application_id = ?1 AND state = 'pending' AND expires_at_time <= ?2",
    )
    .bind(id, Date.now())
    .first<{ due: number }>();
  return count?.due ?? 0;
}
