import { expect } from "vitest";
import { type HolderKey, holderKeySchema } from "../../src/worker/allocator/holder.ts";
import { IS_UNCONFIRMED } from "../../src/worker/allocator/ledger-tables.ts";
import { freedRows, type LedgerObject } from "../support/ledger.ts";
import { fc } from "../support/random.ts";

/**
 * What a ledger is: a range of numbers of which every one is fresh, leased to one holder, free, or taken for ever. The
 * model says which; the commands do the same to the model and to a ledger in a real object and compare.
 */
export interface LedgerModel {
  readonly first: number;
  size: number;
  readonly reuseAfterSeconds: number;
  now: number;
  readonly held: Map<string, { number: number; leasedAt: number; confirmed: boolean }>;
  /** In the order of the numbers. */
  free: { number: number; freedAt: number }[];
  readonly taken: Set<number>;
}

type LedgerCommand = fc.AsyncCommand<LedgerModel, LedgerObject>;

export function createModel(first: number, size: number, reuseAfterSeconds: number): LedgerModel {
  const now = Date.UTC(2026, 8, 1);
  return { first, size, reuseAfterSeconds, now, held: new Map(), free: [], taken: new Set() };
}

const HOLDERS = Array.from({ length: 5 }, (_, place) => holderKeySchema.parse(`holder-${place}`));
const RECLAIM_AFTER = 3_600_000;

export function ledgerCommands(): fc.Arbitrary<Iterable<LedgerCommand>> {
  const holder = fc.constantFrom(...HOLDERS);
  const milliseconds = fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 0, max: 90_000 }) },
    { weight: 2, arbitrary: fc.integer({ min: RECLAIM_AFTER - 1000, max: 2 * RECLAIM_AFTER }) },
    // A clock that jumps, by minutes or by years, ahead or back.
    { weight: 4, arbitrary: fc.oneof(fc.integer({ min: -90_000, max: 0 }), fc.integer({ min: -1e11, max: 1e11 })) },
  );
  return fc.commands(
    [
      // Often enough that several numbers are free at one time, and taken again.
      ...[1, 2, 3].flatMap(() => [holder.map(lease), holder.map(release)]),
      holder.map(confirm),
      ...[1, 2].map(() => fc.subarray(HOLDERS).map(confirmGroup)),
      holder.map(markTaken),
      fc.integer({ min: 1, max: 4 }).map(grow),
      fc.constant(command("reclaim", reclaim)),
      fc.constant(command("evict", (_, object) => object.evict())),
      milliseconds.map(jumpClock),
      milliseconds.map(jumpClock),
    ],
    { maxCommands: 50, size: "max" },
  );
}

function command(
  name: string,
  act: (model: LedgerModel, object: LedgerObject) => Promise<void>,
  check: (model: Readonly<LedgerModel>) => boolean = () => true,
): LedgerCommand {
  return {
    check,
    async run(model, object) {
      await act(model, object);
      await expectInvariants(model, object);
    },
    toString: () => name,
  };
}

function lease(holder: HolderKey): LedgerCommand {
  return command(`lease ${holder}`, async (model, object) => {
    const { first, size, reuseAfterSeconds, now, held } = model;
    const answer = await object.run((ledger) =>
      ledger.lease(holder, { first, last: first + size - 1 }, reuseAfterSeconds, now),
    );
    const mine = held.get(holder);
    if (mine) {
      expect(answer).toEqual({ kind: "leased", number: mine.number, isNew: false });
      if (!mine.confirmed) mine.leasedAt = now;
      return;
    }
    const fresh = countFresh(model);
    await readFreedAt(model, object);
    const rested = model.free.filter(
      ({ freedAt }) => reuseAfterSeconds === 0 || freedAt <= now - reuseAfterSeconds * 1000,
    );
    if (answer.kind === "exhausted") {
      expect({ fresh, rested }).toEqual({ fresh: 0, rested: [] });
      return;
    }
    // Whose it was before is compared with storage afterwards; here, that it is fresh, or if none is, freed and rested.
    if (fresh > 0) expect(isOut(model, answer.number)).toBe(false);
    else expect(rested.map(({ number }) => number)).toContain(answer.number);
    model.free = model.free.filter(({ number }) => number !== answer.number);
    held.set(holder, { number: answer.number, leasedAt: now, confirmed: false });
  });
}

/** A time of release that has not come yet was a wrong clock's: the delay counts from the moment when that is noticed. */
async function readFreedAt({ free, now }: LedgerModel, object: LedgerObject): Promise<void> {
  const stored = new Map(
    (await object.run((_, sql) => freedRows(sql))).map(({ number, freed_at }) => [number, freed_at]),
  );
  for (const entry of free) {
    const freedAt = stored.get(entry.number) ?? entry.freedAt;
    expect([entry.freedAt, Math.min(entry.freedAt, now)]).toContain(freedAt);
    entry.freedAt = freedAt;
  }
}

const isHeld = (holder: HolderKey) => (model: Readonly<LedgerModel>) => model.held.has(holder);

/** What is held; the commands that need it are only tried then. */
function heldBy({ held }: LedgerModel, holder: HolderKey) {
  const mine = held.get(holder);
  if (!mine) throw new Error(`${holder} holds nothing`);
  return mine;
}

function release(holder: HolderKey): LedgerCommand {
  const act: Parameters<typeof command>[1] = async (model, object) => {
    const { number } = heldBy(model, holder);
    const { now } = model;
    const released = await object.run((ledger) => [
      ledger.release(holder, number + 1, now),
      ledger.release(holder, number, now),
      ledger.release(holder, number, now + 1),
    ]);
    expect(released).toEqual([false, true, false]);
    model.held.delete(holder);
    model.free.push({ number, freedAt: now });
  };
  return command(`release ${holder}`, act, isHeld(holder));
}

function confirm(holder: HolderKey): LedgerCommand {
  const act: Parameters<typeof command>[1] = async (model, object) => {
    const mine = heldBy(model, holder);
    await object.run((ledger) => ledger.confirm(holder, mine.number));
    mine.confirmed = true;
  };
  return command(`confirm ${holder}`, act, isHeld(holder));
}

/** The leases of those holders that have one, as a group; of the last one with another number than it has. */
function confirmGroup(holders: readonly HolderKey[]): LedgerCommand {
  return command(`confirmGroup ${holders}`, async (model, object) => {
    const group = holders.flatMap((holder) => {
      const mine = model.held.get(holder);
      return mine ? [{ holder, mine }] : [];
    });
    const others = group.splice(-1);
    const asked = [
      ...group.map(({ holder, mine }) => ({ holder, number: mine.number })),
      ...others.map(({ holder, mine }) => ({ holder, number: mine.number + 1 })),
    ];
    await object.run((ledger) => ledger.confirmGroup(asked));
    for (const { mine } of group) mine.confirmed = true;
  });
}

function markTaken(holder: HolderKey): LedgerCommand {
  const act: Parameters<typeof command>[1] = async (model, object) => {
    const { number } = heldBy(model, holder);
    await object.run((ledger) => ledger.markTaken(holder, number));
    model.held.delete(holder);
    model.taken.add(number);
  };
  return command(`markTaken ${holder}`, act, isHeld(holder));
}

/** Takes effect with the next lease, as in the service. */
function grow(by: number): LedgerCommand {
  return command(`grow ${by}`, async (model) => {
    model.size += by;
  });
}

function jumpClock(milliseconds: number): LedgerCommand {
  return command(`clock ${milliseconds}`, async (model) => {
    model.now += milliseconds;
  });
}

/** What the alarm does, with a D1 that knows none of the numbers. */
async function reclaim(model: LedgerModel, object: LedgerObject): Promise<void> {
  const { now } = model;
  const before = now - RECLAIM_AFTER;
  const found = await object.run((ledger) => {
    const leases = ledger.unconfirmed(before, 100);
    for (const { id } of leases) ledger.reclaim(id, before, now);
    return { leases, isOpen: ledger.finishScan() };
  });
  const lost = [...model.held].filter(([, { confirmed, leasedAt }]) => !confirmed && leasedAt <= before);
  const byHolder = (left: { holder: string }, right: { holder: string }) => (left.holder < right.holder ? -1 : 1);
  expect(found.leases.map(({ holder, number }) => ({ holder, number })).sort(byHolder)).toEqual(
    lost.map(([holder, { number }]) => ({ holder, number })).sort(byHolder),
  );
  for (const { holder, number } of found.leases) {
    model.held.delete(holder);
    model.free.push({ number, freedAt: now });
  }
  expect(found.isOpen).toBe([...model.held.values()].some(({ confirmed }) => !confirmed));
}

function isOut({ held, free, taken }: LedgerModel, number: number): boolean {
  return (
    taken.has(number) ||
    free.some((entry) => entry.number === number) ||
    [...held.values()].some((entry) => entry.number === number)
  );
}

function countFresh({ size, held, free, taken }: LedgerModel): number {
  return size - held.size - free.length - taken.size;
}

/** After every step: storage holds what the model says, every number is one thing only, and none is outside the range. */
async function expectInvariants(model: LedgerModel, object: LedgerObject): Promise<void> {
  const { first, size, held, free, taken } = model;
  const stored = await object.run((_, sql) => ({
    held: sql
      .exec(`SELECT holder, number, leased_at, NOT ${IS_UNCONFIRMED} AS confirmed FROM lease ORDER BY holder`)
      .toArray(),
    free: freedRows(sql).sort((one, other) => one.number - other.number),
    slots: sql.exec("SELECT slot FROM ready ORDER BY slot").toArray(),
  }));
  const expected = [...held].sort(([left], [right]) => (left < right ? -1 : 1));
  expect(stored.held).toEqual(
    expected.map(([holder, { number, leasedAt, confirmed }]) => ({
      holder,
      number,
      leased_at: leasedAt,
      confirmed: confirmed ? 1 : 0,
    })),
  );
  free.sort((one, other) => one.number - other.number);
  expect(stored.slots.map(({ slot }) => slot)).toEqual(stored.slots.map((_, place) => place + 1));
  expect(stored.free).toEqual(free.map(({ number, freedAt }) => ({ number, freed_at: freedAt })));
  const numbers = [...held.values(), ...free].map(({ number }) => number).concat(...taken);
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(numbers.every((number) => number >= first && number < first + size)).toBe(true);
}
