import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { SKIP_CHUNK_NUMBERS } from "../../src/shared/limits.ts";
import { holderKeySchema } from "../../src/worker/allocator/holder.ts";
import { Ledger } from "../../src/worker/allocator/ledger.ts";
import { allocatorOf, aroundObjectD1, leasesOf, withLedger } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { freedNumbers } from "../support/ledger.ts";
import { badgeRows } from "../support/rows.ts";
import { block, unblock } from "./life-support.ts";
import { countStatuses, expectDifferent, inParallel, numberOf, passHours, requestQuietly } from "./support.ts";

beforeEach(() => {
  for (const level of ["log", "warn", "error"] as const) vi.spyOn(console, level).mockImplementation(() => {});
});

const ask = (application: { id: string }, udid: string) => requestQuietly(application, udid, { userId: "alice" });

const askMany = (application: { id: string }, count: number, name: string) =>
  inParallel(count, (place) => ask(application, `${name}-${place}`));

/** Puts badges of somebody else into D1, by hand. */
async function insertForeign(numbers: readonly number[]): Promise<void> {
  await homeDatabase()
    .prepare(
      `INSERT INTO badge (number, application_id, device, user_id, position, turn)
     SELECT value, 'app_foreign', 'device-' || value, 'mallory', value, 1 FROM json_each(?1)`,
    )
    .bind(JSON.stringify(numbers))
    .run();
}

/** A lease whose badge does not come: D1 refuses this one write. */
async function leaseInVain(application: TestApplication, udid: string): Promise<number> {
  await aroundObjectD1(application, () => () => Promise.reject(new Error("D1_ERROR: disk full")));
  expect((await ask(application, udid)).status).toBe(503);
  await evictDurableObject(allocatorOf(application));
  const lease = (await leasesOf(application)).at(-1);
  if (!lease) expect.fail("no lease");
  return lease.number;
}

const PROBE = holderKeySchema.parse("probe");

describe("a leased number that belongs to another holder in D1 (contract section 1)", () => {
  it("is replaced by another and never leased again", async () => {
    const application = await createApplication({ size: 3 });
    const taken = await withLedger(application, (ledger) => {
      const range = { first: application.firstNumber, last: application.lastNumber };
      const probe = ledger.lease(PROBE, range, 0, 0);
      if (probe.kind !== "leased") expect.fail("no number");
      ledger.release(PROBE, probe.number, 0);
      return probe.number;
    });
    await insertForeign([taken]);
    const answers = [await ask(application, "one"), await ask(application, "two")];
    expect(expectDifferent(answers, application)).not.toContain(taken);
    expect(await ask(application, "three")).toMatchObject({ status: 503, body: { error: "NUMBERS_EXHAUSTED" } });
    const owner = homeDatabase().prepare("SELECT user_id FROM badge WHERE number = ?1").bind(taken);
    expect(await owner.first("user_id")).toBe("mallory");
  });

  it("stays its owner's when D1 has forgotten the badge and refuses it to a blocked user", async () => {
    const application = await createApplication({ size: 3 });
    const number = numberOf(await ask(application, "phone"));
    await homeDatabase().prepare("DELETE FROM badge WHERE number = ?1").bind(number).run();
    await block(application, "alice");
    expect(await ask(application, "phone")).toMatchObject({ status: 403, body: { error: "BLOCKED_USER" } });
    const others = await inParallel(3, (place) => requestQuietly(application, `other-${place}`, { userId: "bob" }));
    expect(countStatuses(others)).toEqual({ 201: 2, 503: 1 });
    await unblock(application, "alice");
    const again = await ask(application, "phone");
    expect([again.status, numberOf(again)]).toEqual([201, number]);
  });

  it.each([
    { isTaken: true, free: 0, fate: "is never leased again" },
    { isTaken: false, free: 1, fate: "is freed" },
  ])("$fate when D1 has another number for the device (leased number taken: $isTaken)", async ({ isTaken, free }) => {
    const application = await createApplication({ size: 3 });
    const { firstNumber: first, lastNumber: last } = application;
    await ask(application, "device");
    const [badge] = await badgeRows(application);
    if (!badge?.device) expect.fail("no badge");
    // The object is restored to before it leased that number.
    const [next] = await withLedger(application, (ledger, { sql }) => {
      sql.exec("DELETE FROM lease");
      return ledger.peekFresh(1);
    });
    if (next === undefined) expect.fail("no number");
    if (isTaken) await insertForeign([next]);
    const request = {
      device: badge.device,
      userId: "alice",
      metadata: null,
      signingKeyId: 1,
      eventId: "evt_0",
      issuedAt: 0,
    };
    const rules = { range: { first, last }, reuseAfterSeconds: 0 };
    expect(await allocatorOf(application).issue(rules, request)).toEqual({ kind: "existing", number: badge.number });
    expect(await leasesOf(application)).toEqual([]);
    expect(await withLedger(application, (_, { sql }) => freedNumbers(sql))).toHaveLength(free);
  });

  it("is skipped with all taken numbers that follow: the second try succeeds, however many there are", async () => {
    const application = await createApplication({ size: 2 * SKIP_CHUNK_NUMBERS });
    expect((await ask(application, "first")).status).toBe(201);
    const next = await withLedger(application, (ledger) => ledger.peekFresh(SKIP_CHUNK_NUMBERS + 10));
    await insertForeign(next.slice(0, -1));
    let writes = 0;
    await aroundObjectD1(application, () => (statements, send) => {
      if (statements.some(({ sql }) => sql.includes("INSERT INTO badge"))) writes++;
      return send();
    });
    expect(numberOf(await ask(application, "device"))).toBe(next.at(-1));
    expect(writes).toBe(2);
  });

  it("is skipped by fifty concurrent devices, and the free numbers in between are used", async () => {
    const application = await createApplication({ size: 2 * SKIP_CHUNK_NUMBERS });
    expect((await ask(application, "first")).status).toBe(201);
    const next = await withLedger(application, (ledger) => ledger.peekFresh(SKIP_CHUNK_NUMBERS + 20));
    const taken = next.filter((_, place) => place !== SKIP_CHUNK_NUMBERS + 10);
    await insertForeign(taken);
    const numbers = expectDifferent(await askMany(application, 50, "device"), application);
    expect(numbers.filter((number) => taken.includes(number))).toEqual([]);
    expect(numbers).toContain(next[SKIP_CHUNK_NUMBERS + 10]);
  });
});

describe("an object that was restored to an older state (contract section 1)", () => {
  it("leases none of the numbers issued since then, and every device keeps its own number", async () => {
    const application = await createApplication({ size: 150 });
    const before = await askMany(application, 10, "before");
    // Freed numbers of that state, some of them issued since: they must be passed over as well.
    await withLedger(application, (ledger) => {
      const range = { first: application.firstNumber, last: application.lastNumber };
      for (let place = 0; place < 80; place++) ledger.lease(holderKeySchema.parse(`gone-${place}`), range, 0, 0);
      for (let place = 0; place < 80; place++) ledger.release(holderKeySchema.parse(`gone-${place}`), null, 0);
    });
    const restore = await withLedger(application, (_, { sql }) => {
      const free = sql.exec("SELECT number, freed_at FROM free ORDER BY id").toArray();
      const segment = sql.exec("SELECT first, size, used FROM segment").one();
      const lastLease = sql.exec("SELECT max(id) AS id FROM lease").one();
      return () =>
        withLedger(application, (_, { sql }) => {
          sql.exec("DELETE FROM lease WHERE id > ?", lastLease.id ?? 0);
          sql.exec("DELETE FROM free; DELETE FROM ready");
          for (const row of free) sql.exec("INSERT INTO free (number, freed_at) VALUES (?, ?)", row.number ?? 0, 0);
          sql.exec("UPDATE segment SET used = ?", segment.used ?? 0);
        });
    });
    const since = await askMany(application, 100, "since");
    await restore();
    await evictDurableObject(allocatorOf(application));
    const after = await askMany(application, 30, "after");
    expectDifferent([...before, ...since, ...after], application);
    const again = await Promise.all([askMany(application, 10, "before"), askMany(application, 100, "since")]);
    expect(again.flat().map(({ status, body }) => [status, body.badgeId])).toEqual(
      [...before, ...since].map(({ body }) => [200, body.badgeId]),
    );
  });

  it("leases the rest of its range to the last number after it has lost everything", async () => {
    const application = await createApplication({ size: 60 });
    const before = await askMany(application, 45, "before");
    await runInDurableObject(allocatorOf(application), (_, { storage }) => storage.deleteAll());
    await evictDurableObject(allocatorOf(application));
    const after = await askMany(application, 15, "after");
    expectDifferent([...before, ...after], application);
    expect(await ask(application, "one-more")).toMatchObject({ status: 503, body: { error: "NUMBERS_EXHAUSTED" } });
  });
});

describe("D1 that was restored to an older state (contract section 1)", () => {
  it("gives a device that lost its badge the same number again, and no other device that number", async () => {
    const application = await createApplication({ size: 20 });
    const answers = await askMany(application, 10, "device");
    const numbers = expectDifferent(answers, application);
    await homeDatabase().prepare("DELETE FROM badge WHERE application_id = ?").bind(application.id).run();
    await passHours(application, 2);
    const others = expectDifferent(await askMany(application, 10, "other"), application);
    expect(new Set([...numbers, ...others]).size).toBe(20);
    expect(await ask(application, "one-more")).toMatchObject({ status: 503, body: { error: "NUMBERS_EXHAUSTED" } });
    expect((await askMany(application, 10, "device")).map(numberOf)).toEqual(numbers);
  });
});

describe("a lease whose badge was never written (contract section 1)", () => {
  it("is settled after an hour, and its number is leased again once no fresh ones are left", async () => {
    const application = await createApplication({ size: 2 });
    const number = await leaseInVain(application, "gone");
    expect(numberOf(await ask(application, "fresh"))).not.toBe(number);
    await passHours(application, 0.9);
    expect(await leasesOf(application)).toHaveLength(2);
    await passHours(application, 1);
    expect(await leasesOf(application)).toHaveLength(1);
    expect(numberOf(await ask(application, "next"))).toBe(number);
    expect(await ask(application, "gone")).toMatchObject({ status: 503, body: { error: "NUMBERS_EXHAUSTED" } });
  });

  it("is settled by a later alarm if it is too young at the first", async () => {
    const application = await createApplication();
    const number = numberOf(await ask(application, "device"));
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 1_800_000 });
    const young = await leaseInVain(application, "gone");
    vi.useRealTimers();
    await passHours(application, 1);
    expect(await leasesOf(application)).toMatchObject([{ number }, { number: young }]);
    await passHours(application, 2.1);
    expect(await leasesOf(application)).toMatchObject([{ number }]);
  });

  it("is confirmed if D1 has its badge: the object crashed before it got the response", async () => {
    const application = await createApplication();
    const number = numberOf(await ask(application, "device"));
    await withLedger(application, (_, { sql }) => sql.exec("UPDATE lease SET confirmed = 0").toArray());
    await passHours(application, 1);
    expect(await leasesOf(application)).toMatchObject([{ number, confirmed: true }]);
  });

  it("ends without freeing the number if that belongs to another holder in D1", async () => {
    const application = await createApplication({ size: 2 });
    const number = await leaseInVain(application, "gone");
    await insertForeign([number]);
    await passHours(application, 1);
    expect(await leasesOf(application)).toEqual([]);
    expect(await withLedger(application, (_, { sql }) => freedNumbers(sql))).toEqual([]);
    expect(numberOf(await ask(application, "next"))).not.toBe(number);
    expect(countStatuses([await ask(application, "one-more")])).toEqual({ 503: 1 });
  });

  it("stays when its holder requests it while the alarm runs", async () => {
    const application = await createApplication();
    const number = await leaseInVain(application, "device");
    const [lease] = await leasesOf(application);
    const range = { first: application.firstNumber, last: application.lastNumber };
    await aroundObjectD1(application, ({ storage }) => async (_, send) => {
      const seen = await send();
      new Ledger(storage.sql).lease(holderKeySchema.parse(lease?.holder), range, 0, Date.now());
      return seen;
    });
    await passHours(application, 1);
    expect(await leasesOf(application)).toMatchObject([{ number, confirmed: false }]);
    expect(numberOf(await ask(application, "device"))).toBe(number);
  });

  it("is settled later if D1 is down for longer than the platform retries an alarm", async () => {
    const application = await createApplication();
    await leaseInVain(application, "gone");
    await aroundObjectD1(application, () => () => Promise.reject(new Error("D1_ERROR: D1 is away")));
    await passHours(application, 1);
    expect(await leasesOf(application)).toHaveLength(1);
    await evictDurableObject(allocatorOf(application));
    await passHours(application, 2.1);
    expect(await leasesOf(application)).toEqual([]);
  });

  it("is found among many confirmed ones, and no alarm is set once all are confirmed", async () => {
    const application = await createApplication();
    const answers = await askMany(application, 5, "device");
    await leaseInVain(application, "gone");
    const later = await askMany(application, 5, "later");
    await passHours(application, 1);
    expect((await leasesOf(application)).map(({ number }) => number).sort()).toEqual(
      [...answers, ...later].map(numberOf).sort(),
    );
    await passHours(application, 2.1);
    expect(await withLedger(application, (_, storage) => storage.getAlarm())).toBeNull();
  });
});
