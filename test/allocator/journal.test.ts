import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { FIRST_POSITION } from "../../src/shared/first-position.ts";
import { newApplicationId } from "../../src/shared/identifiers.ts";
import { JOURNAL_PRUNE_ENTRIES } from "../../src/shared/limits.ts";
import type { Entry } from "../../src/worker/core/entry.ts";
import { Journal } from "../../src/worker/core/journal.ts";
import { DAY } from "../invitations/support/clock.ts";
import { allocatorOf } from "../support/allocator.ts";

/** An entry that stores nothing. @param id also names the entry before: one less */
function entryOf(sequence: number, id = `entry ${sequence}`): Entry {
  const { lastPosition, lastChange, lastSigningKey, epoch, hourStartedAt, hourUsed } = FIRST_POSITION;
  const counters = { lastPosition, lastChange, lastSigningKey, epoch, hourStartedAt, hourUsed };
  return {
    version: 1,
    id,
    previous: `entry ${sequence - 1}`,
    position: { sequence, entry: id, fresh: [], ...counters },
    ...{ writes: [], events: [], calls: [], results: [], erasures: [] },
    ...{ keys: [], lastNumber: null, unless: null, lossAcceptedAt: null },
  };
}

/** The journal of an object that nobody has called, with entries from 1 on, one a day from day 1 on. */
function withJournal(entries: number, work: (journal: Journal, sql: SqlStorage) => void): Promise<void> {
  const id = newApplicationId(1);
  return runInDurableObject(allocatorOf({ id }), (_, { storage }) => {
    const journal = new Journal(storage.sql);
    journal.begin(id, { sequence: 0, entry: "entry 0" }, 0);
    for (let day = 1; day <= entries; day++) journal.append(entryOf(day), day * DAY, false);
    work(journal, storage.sql);
  });
}

const sequences = (journal: Journal): number[] =>
  journal.after({ sequence: 0 }, 1000).map(({ position }) => position.sequence);

describe("the journal of an object (contract section 21)", () => {
  it("forgets what is older than 31 days, and says how far back it reaches", async () => {
    await withJournal(40, (journal) => {
      expect(journal.since()).toBeNull();
      journal.prune(40 * DAY);
      expect(sequences(journal)).toEqual(Array.from({ length: 32 }, (_, place) => place + 9));
      expect(journal.since()).toBe(8 * DAY);
      expect(journal.has({ sequence: 8, entry: "entry 8" })).toBe(true);
      expect(journal.has({ sequence: 7, entry: "entry 7" })).toBe(false);
    });
  });

  it("forgets a bounded number of entries at a time, and never the last one, which D1 is at", async () => {
    await withJournal(3 * JOURNAL_PRUNE_ENTRIES, (journal) => {
      journal.prune(1000 * DAY);
      expect(sequences(journal)).toHaveLength(JOURNAL_PRUNE_ENTRIES + 1);
      journal.prune(1000 * DAY);
      expect(journal.last()).toEqual({
        sequence: 3 * JOURNAL_PRUNE_ENTRIES,
        entry: `entry ${3 * JOURNAL_PRUNE_ENTRIES}`,
      });
      expect(sequences(journal)).toHaveLength(1);
    });
  });

  it("begins anew without reading what it had, and deletes that in chunks before anything else", async () => {
    const id = newApplicationId(1);
    await withJournal(3 * JOURNAL_PRUNE_ENTRIES, (journal, sql) => {
      const stored = () => Number(sql.exec("SELECT count(*) AS n FROM journal_entry").one().n);
      journal.begin(id, { sequence: 70, entry: "entry 70" }, 70 * DAY);
      expect(stored()).toBe(3 * JOURNAL_PRUNE_ENTRIES);
      expect(journal.last()).toMatchObject({ sequence: 70, entry: "entry 70" });
      expect(journal.has({ sequence: 5, entry: "entry 5" })).toBe(false);
      expect(journal.newest()).toBeNull();
      expect(journal.lastEntry()).toBeUndefined();
      for (const sequence of [71, 72]) journal.append(entryOf(sequence), 70 * DAY, false);
      expect(sequences(journal)).toEqual([71, 72]);
      journal.prune(70 * DAY);
      expect(stored()).toBe(JOURNAL_PRUNE_ENTRIES + 2);
      for (const _ of [1, 2]) journal.prune(1000 * DAY);
      expect(sequences(journal)).toEqual([72]);
    });
  });

  it("keeps what follows a place at which D1 was seen for 31 days from then, with one row for all of it", async () => {
    await withJournal(30, (journal, sql) => {
      const written = () => Number(sql.exec("SELECT total_changes() AS n").one().n);
      const before = written();
      journal.renew({ sequence: 10, entry: "entry 10" }, 30 * DAY);
      expect(written() - before).toBe(1);
      journal.append(entryOf(31), 31 * DAY, false);
      journal.prune(50 * DAY);
      expect(sequences(journal)[0]).toBe(11);
      journal.prune(61 * DAY);
      expect(sequences(journal)[0]).toBe(11);
      journal.prune(62 * DAY);
      expect(sequences(journal)).toEqual([31]);
    });
  });

  it("counts from the last time that D1 was seen before an entry, wherever else it was seen", async () => {
    await withJournal(30, (journal) => {
      journal.renew({ sequence: 5, entry: "entry 5" }, 31 * DAY);
      journal.renew({ sequence: 20, entry: "entry 20" }, 35 * DAY);
      journal.prune(63 * DAY);
      expect(sequences(journal)[0]).toBe(21);
      journal.renew({ sequence: 19, entry: "entry 19" }, 40 * DAY);
      expect(journal.newest()).toBe(40 * DAY);
      journal.prune(71 * DAY);
      expect(sequences(journal)[0]).toBe(21);
    });
  });

  it("has the attempts at one place in the order in which they were kept, and the newest counts", async () => {
    await withJournal(1, (journal) => {
      for (const id of ["one", "two", "three", "one"]) journal.append(entryOf(2, id), 2 * DAY, false);
      expect(journal.countAttempts(2)).toBe(3);
      expect(journal.after({ sequence: 0 }, 10).map(({ id }) => id)).toEqual(["entry 1", "one"]);
      expect(journal.last()).toEqual({ sequence: 2, entry: "one" });
      journal.drop("one");
      expect(journal.last()).toEqual({ sequence: 2, entry: "three" });
      journal.confirm({ sequence: 2, entry: "two" });
      expect(journal.last()).toEqual({ sequence: 2, entry: "two" });
      expect(journal.countAttempts(1)).toBe(1);
    });
  });

  it("is not read by a release that does not know its version", async () => {
    await withJournal(1, (journal) => {
      journal.append(JSON.parse(JSON.stringify({ ...entryOf(2), version: 2 })), 2 * DAY, false);
      expect(() => journal.after({ sequence: 0 }, 10)).toThrow("unknown version");
    });
  });
});
