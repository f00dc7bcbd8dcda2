import { getTableName } from "drizzle-orm";
import type { ApplicationId } from "../../../shared/identifiers.ts";
import { SEND_ENTRIES } from "../../../shared/limits/allocator-limits.ts";
import { PLATFORM_DEADLINE_MILLISECONDS } from "../../../shared/limits/platform-limits.ts";
import { applicationHead } from "../../../shared/schema.ts";
import { log as logLine } from "../../log.ts";
import { Unavailable, withDeadline } from "../../platform.ts";
import type { Database } from "../../storage/database.ts";
import type { BadgeRow } from "../../storage/rows.ts";
import type { Mark } from "../counters.ts";
import type { Log, LoggedEntry } from "../tables/entry-log.ts";
import type { Tables } from "../tables/tables.ts";
import { type CopyStep, copyStep } from "./copy.ts";
import { closeToReaders, fence, readHead } from "./head.ts";
import { RenderedEntries } from "./render.ts";
import { republish } from "./republish.ts";

/** D1's position in the log. */
export type D1Position =
  /** It has to be asked: nothing was compared yet, or nobody knows whether D1 has the last batch. */
  | { kind: "uncertain" }
  /** D1 has the entries up to this one. */
  | { kind: "following"; at: Mark }
  /** D1's head is no entry of the log, or D1 does not know the application: an administrator decides. */
  | { kind: "not-in-log" };

interface ReplicatorParts {
  applicationId: ApplicationId;
  tables: Tables;
  log: Log;
  openDatabase(): Database;
  now(): number;
  /** Webhook events are recorded in D1, and due. */
  enqueue(eventIds: readonly string[]): void;
  /** D1 has changes of status, or its badges were all replaced. */
  notify(): void;
  /**
   * D1 has another application's rows with these numbers.
   *
   * @param mayHaveBeenSeen whether results that name them may have been returned, and readers may have seen them
   */
  withdraw(numbers: readonly number[], mayHaveBeenSeen: boolean): void;
  /** Logs an entry that changes nothing. */
  appendEmpty(): void;
}

/**
 * Sends the log to D1, entry by entry. Each batch begins with the fence, which moves D1's head from the entry before to the last
 * one of the batch; so after any error the head says what happened. One thing happens after the other.
 */
export class Replicator {
  readonly #parts: ReplicatorParts;
  #position: D1Position = { kind: "uncertain" };
  /** The sequence from which readers may read again: set by a comparison that found D1 behind. */
  #readableFrom = 0;
  /** Whether the next fence overwrites D1's `readable_from` instead of keeping the higher one. */
  #overwritesFlag = false;
  /** Where D1 is unless it was restored: at `from`, or at `to` if the last batch went through. Null: this instance does not know. */
  #expected: { from: string; to: string } | null = null;
  /** Whether D1 refused the last batch. */
  #isRefused = false;
  /** Number of calls of `doubt`. A read that began before the last of them does not settle it. */
  #doubts = 0;
  #bookmark: string | null = null;

  constructor(parts: ReplicatorParts) {
    this.#parts = parts;
  }

  get position(): D1Position {
    return this.#position;
  }

  /** Whether D1 refuses the next entry until something is changed (`entry-refused` in the log). */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** D1's state after the last batch or comparison, as D1 names it; null: not known. */
  get bookmark(): string | null {
    return this.#bookmark;
  }

  /** Sequence of the last entry that D1 is known to have. */
  get sentThrough(): number {
    return this.#position.kind === "following" ? this.#position.at.sequence : 0;
  }

  /** How many entries D1 lacks. */
  get behind(): number {
    const head = this.#parts.log.head();
    return this.#position.kind === "following" && head ? head.sequence - this.#position.at.sequence : 0;
  }

  /** D1 may have been restored since it was compared. */
  doubt(): void {
    this.#doubts++;
    if (this.#position.kind === "following") {
      const { entry } = this.#position.at;
      // A batch that is under way may still move it.
      this.#expected ??= { from: entry, to: entry };
    }
    this.#position = { kind: "uncertain" };
  }

  /** @param doubts as they were when D1 was asked */
  #follow(at: Mark, doubts: number): void {
    this.#position = { kind: "following", at };
    if (doubts !== this.#doubts) this.doubt();
  }

  /** Makes the allocator's rows from D1's, one step. @throws Unavailable */
  async copy(): Promise<CopyStep> {
    const { openDatabase, applicationId, tables, log, now } = this.#parts;
    const db = openDatabase();
    const doubts = this.#doubts;
    const step = await copyStep({ db, applicationId, tables, log, now });
    this.#bookmark = db.bookmark ?? this.#bookmark;
    if (step === "unknown") this.#position = { kind: "not-in-log" };
    // The last page was read together with D1's head, so both sides have been compared.
    const head = log.head();
    if (step === "done" && head) this.#follow(head, doubts);
    return step;
  }

  /** Finds out where D1 is. @throws Unavailable */
  async compare(): Promise<void> {
    const { openDatabase, applicationId, tables, log, now, withdraw, appendEmpty } = this.#parts;
    const db = openDatabase();
    const doubts = this.#doubts;
    const head = await readHead(db, applicationId);
    if (doubts !== this.#doubts) return;
    this.#bookmark = db.bookmark ?? this.#bookmark;
    const newest = log.head();
    if (!newest) throw new Error("an allocator without rows has nothing to compare");
    if (!head || !log.has(head)) {
      // A write, which fails in a superseded instance.
      tables.touch();
      // If this fails, both sides are compared again at once: readers must not read what nobody knows.
      if (head && head.readableFrom <= head.sequence) await closeToReaders(db, applicationId, head.entry);
      this.#position = { kind: "not-in-log" };
      logLine("error", {
        event: "database-unknown",
        application: applicationId,
        d1: head?.sequence ?? null,
        allocator: newest.sequence,
      });
      return;
    }
    const isAfterBatch = head.entry === this.#expected?.to;
    const isBeforeBatch = head.entry === this.#expected?.from;
    // D1 has left the entry at which the batch began; if it is found there again, it was restored.
    if (!isBeforeBatch) this.#expected = null;
    // After the batch, D1 lacks only entries that were never sent.
    if (head.sequence < newest.sequence && !isAfterBatch) {
      // If D1 is where the batch began, it may never have had the later entries, so they are not marked as resent.
      if (!isBeforeBatch) {
        log.renewAfter(head.sequence, now());
        // D1 has lost what searches for erased users changed: they are repeated.
        tables.restartErasures();
        for (const erasure of log.erasuresAfter(head.sequence)) tables.addErasure(erasure);
      }
      this.#readableFrom = newest.sequence;
      if (newest.sequence - head.sequence > 1) {
        logLine("warn", { event: "catching-up", application: applicationId, at: head.sequence, to: newest.sequence });
      }
    }
    // Readers were stopped for good while D1's head was unknown, and D1 was restored since.
    this.#overwritesFlag = head.readableFrom > newest.sequence;
    if (this.#overwritesFlag) appendEmpty();
    if (head.refused.length > 0) withdraw(head.refused, true);
    this.#position = { kind: "following", at: head };
  }

  /**
   * Sends the next entries, as many as fit into a batch.
   *
   * @param maxCharacters of their changes; one entry is sent at any size
   * @returns false when it is not known whether D1 has them: then it has to be compared
   */
  async send(maxCharacters: number): Promise<boolean> {
    const { openDatabase, applicationId, tables, now, enqueue, notify, withdraw } = this.#parts;
    if (this.#position.kind !== "following") return false;
    const { at } = this.#position;
    const entries = this.#nextEntries(at, maxCharacters);
    if (!entries) return false;
    const last = entries.at(-1);
    if (!last) return true;
    const session = openDatabase().d1.withSession("first-primary");
    const to = { sequence: last.sequence, entry: last.id, counters: last.counters };
    const hadUrl = tables.self()?.hasRecordedEvents ?? false;
    const rendered = new RenderedEntries(session, applicationId, entries, { now: now(), hadUrl });
    this.#expected = { from: at.entry, to: last.id };
    const doubts = this.#doubts;
    try {
      const move = fence(session, applicationId, at.entry, {
        ...to,
        readableFrom: { keep: !this.#overwritesFlag, sequence: this.#readableFrom },
      });
      const [, ...results] = await withDeadline("D1", PLATFORM_DEADLINE_MILLISECONDS, () =>
        session.batch([move, ...rendered.statements]),
      );
      const refused = rendered.refusedNumbers(results);
      if (refused.length > 0)
        withdraw(
          refused,
          entries.some(({ isResent }) => isResent),
        );
      this.#expected = null;
      this.#isRefused = false;
      this.#follow(to, doubts);
      this.#overwritesFlag = false;
      this.#bookmark = session.getBookmark();
      const events = rendered.newEvents(results);
      if (events.length > 0 && !hadUrl) tables.changeSelf({ hasRecordedEvents: true });
      enqueue(events);
      if (entries.some(changesStatus)) notify();
      return true;
    } catch (error) {
      this.#position = { kind: "uncertain" };
      const fields = { application: applicationId, sequence: last.sequence, error };
      this.#isRefused = isRefusal(error);
      if (!this.#isRefused) {
        logLine("warn", { event: "entry-unknown", ...fields });
        return false;
      }
      logLine("error", { event: "entry-refused", ...fields });
      // D1 was restored, and this batch was to keep readers from its older rows.
      if (this.#readableFrom > at.sequence) {
        await closeToReaders(openDatabase(), applicationId, at.entry, this.#readableFrom);
      }
      return false;
    }
  }

  /** @returns null where a later release wrote one of them: they wait until it is deployed again */
  #nextEntries({ sequence }: Mark, maxCharacters: number): LoggedEntry[] | null {
    const { log, applicationId } = this.#parts;
    try {
      return nextBatch(log.after(sequence, SEND_ENTRIES), maxCharacters);
    } catch (error) {
      this.#position = { kind: "uncertain" };
      logLine("error", { event: "entry-refused", application: applicationId, sequence: sequence + 1, error });
      return null;
    }
  }

  /** Replaces D1's rows with the allocator's (contract section 21). @throws Unavailable */
  async republish(): Promise<void> {
    const { openDatabase, applicationId, tables, log, now, notify, appendEmpty } = this.#parts;
    // Rows that are not copied yet would be lost.
    if (tables.self()?.copiedAt == null)
      throw new Unavailable("D1", new Error("the copy of D1's rows is not complete"));
    // If it fails before its first batch, D1 is where it was, and lacks nothing.
    this.doubt();
    try {
      await republish({ db: openDatabase(), applicationId, tables, log, now });
      this.#isRefused = false;
    } catch (error) {
      // Its first batch may still arrive. One more entry makes that batch's fence fail.
      appendEmpty();
      throw error;
    }
    notify();
  }
}

/** Whether an entry changes what doors know of badges. A badge that is only issued has no change of status yet. */
const changesStatus = ({ changes }: LoggedEntry): boolean =>
  changes.rows.some(({ table, columns, rows }) => {
    const index = table === "badge" ? columns.indexOf("statusChange" satisfies keyof BadgeRow) : -1;
    return index >= 0 && rows.some((row) => row[index] !== null);
  });

/** As many entries as one batch takes. There is always one. */
function nextBatch(entries: readonly LoggedEntry[], maxCharacters: number): LoggedEntry[] {
  let characters = 0;
  return entries.filter(({ changes }, index) => {
    characters += JSON.stringify(changes).length;
    return index === 0 || characters <= maxCharacters;
  });
}

/** The fence's own failure, which says that D1 is elsewhere. */
const FENCED = `NOT NULL constraint failed: ${getTableName(applicationHead)}.${applicationHead.sequence.name}`;

/** Whether D1 refuses the batch until something is changed. After other errors it may be applied, even later. */
function isRefusal(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause.message.includes(FENCED)) return false;
    if (
      /SQLITE_(CONSTRAINT|TOOBIG|MISMATCH)|constraint failed|no such (table|column)|has no column/.test(cause.message)
    ) {
      return true;
    }
  }
  return false;
}
