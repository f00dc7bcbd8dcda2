import { BY_CLOCK } from "../../shared/actor.ts";
import { type ApplicationId, newRandomId } from "../../shared/identifiers.ts";
import {
  JOURNAL_PRUNE_ENTRIES,
  MAX_ENTRY_ATTEMPTS,
  MAX_REPEAT_MILLISECONDS,
  PLATFORM_RETRY_BASE_MILLISECONDS,
} from "../../shared/limits.ts";
import type { Custody } from "../keys/custody.ts";
import { log } from "../log.ts";
import { Unavailable } from "../platform.ts";
import type { Database } from "../storage/database.ts";
import { type GroupRows, NOTHING_READ, readGroup } from "../storage/group-reads.ts";
import type { Position } from "../storage/rows.ts";
import { Answers } from "./answers.ts";
import { applyEntry } from "./apply.ts";
import { catchUp, type Gap } from "./catch-up.ts";
import type { Outcome } from "./commands.ts";
import { Draft } from "./decide/draft.ts";
import { type Decided, decideGroup, toldBy } from "./decide-group.ts";
import { type Entry, isEmpty, toEntry } from "./entry.ts";
import { FreshNumbers } from "./fresh-numbers.ts";
import type { Journal } from "./journal.ts";
import { assumptionsOf, needsOf } from "./needs.ts";
import { type CallQueue, fail, giveUp, splitByDeadline, type Waiting, waitingFor } from "./queue.ts";
import { randomBelow } from "./random.ts";
import { warnIfFilling } from "./range-warnings.ts";

type Step = { kind: "done"; rest: readonly Waiting[] } | { kind: "repeat" | "split" } | { kind: "behind" } | Gap;

interface Platform {
  applicationId: ApplicationId;
  journal: Journal;
  custody: Custody;
  queue: CallQueue;
  openDatabase(): Database;
  now(): number;
  /** Events are recorded and due. */
  wake(eventIds: readonly string[]): void;
}

/**
 * Carries out groups of calls, one group after the other: reads what they need, decides them, keeps the entry and applies it to
 * D1. It never responds before it knows that no other instance of the object is ahead of it.
 */
export class Groups {
  readonly #platform: Platform;
  readonly #freshNumbers: FreshNumbers;
  readonly #answers = new Answers();
  /** Whether this instance has written an entry: until then another one may be ahead. */
  #isProven = false;
  /** Where the last group left the list; null: this instance has not read it yet. */
  #at: Position | null = null;
  #bookmark: string | null = null;
  /** Whether D1 may still apply an entry that nobody waits for. */
  #isUnsettled = false;
  /** The empty entry that is to take its place. */
  #settling: Entry | null = null;

  constructor(platform: Platform) {
    this.#platform = platform;
    this.#freshNumbers = new FreshNumbers(platform.applicationId, platform.custody);
  }

  /** D1's state at the end of the last group, as D1 names it; null: not known. */
  get bookmark(): string | null {
    return this.#bookmark;
  }

  /** Whether D1 may still apply an entry that nobody waits for: a group, even an empty one, settles that. */
  get isUnsettled(): boolean {
    return this.#isUnsettled;
  }

  /** Whether the next group writes an entry even if its calls change nothing. */
  get #mustWrite(): boolean {
    return !this.#isProven || this.#isUnsettled;
  }

  outcomeOf(callId: string): Outcome | undefined {
    return this.#answers.outcomeOf(callId);
  }

  /**
   * Carries out one group. Calls that need more groups go back to the queue.
   *
   * @returns undefined: done; otherwise why nothing was changed
   */
  async run(calls: readonly Waiting[]): Promise<Gap | { kind: "behind" | "unavailable" } | undefined> {
    const { queue, now } = this.#platform;
    let waiting = calls;
    try {
      for (let isFirstTry = true; ; isFirstTry = false) {
        const { live, late } = splitByDeadline(waiting, now());
        giveUp(late);
        waiting = live;
        if (live.length === 0 && !this.#isUnsettled) return undefined;
        const step = await this.#attempt(live, isFirstTry);
        switch (step.kind) {
          case "done":
            queue.putBack(step.rest);
            return undefined;
          case "gap":
          case "behind":
            giveUp(waiting);
            return step;
          case "repeat":
            break;
          case "split": {
            const half = Math.ceil(live.length / 2);
            queue.putBack(live.slice(half));
            waiting = live.slice(0, half);
          }
        }
      }
    } catch (error) {
      if (error instanceof EntryRefused) {
        if (!error.isAboutRows) giveUp(waiting);
        fail(waiting);
        return undefined;
      }
      if (!(error instanceof Unavailable)) {
        // Calls that were split off are not told: they are carried out next.
        log("error", { event: "group-broken", application: this.#platform.applicationId, error });
        fail(waiting);
        return { kind: "unavailable" };
      }
      log("warn", { event: "group-failed", application: this.#platform.applicationId, calls: waiting.length, error });
      giveUp(waiting);
      for (const each of waiting) if (each.isBegun) queue.continueLater(each);
      return { kind: "unavailable" };
    }
  }

  async #attempt(calls: readonly Waiting[], isFirstTry: boolean): Promise<Step> {
    const { applicationId, journal, now } = this.#platform;
    const db = this.#platform.openDatabase();
    const startedAt = now();
    const unless = this.#isProven && !this.#isUnsettled && isFirstTry ? assumptionsOf(calls, this.#at) : null;
    const rows = unless ? NOTHING_READ : await readGroup(db, applicationId, needsOf(calls, startedAt, this.#at));
    const position = unless ? this.#at : rows.position;
    if (!position || !this.#isLevel(position)) {
      const level = await catchUp(db, applicationId, journal);
      if (level.kind === "gap") return level;
      this.#at = level.at;
      this.#answers.missEarlier();
      this.#platform.wake(level.events);
      return level.kind === "level" ? { kind: "repeat" } : { kind: "behind" };
    }
    // What an earlier instance has decided, or what was caught up with, counts once D1 has it.
    if (!this.#isUnsettled && this.#answers.addEarlier(journal, now())) this.#bookmark = db.bookmark ?? this.#bookmark;
    this.#at = position;
    // While D1 accepts no write, the entries that it may still apply do not grow in number: an empty one goes first.
    const isCrowded = journal.countAttempts(position.sequence + 1) >= MAX_ENTRY_ATTEMPTS - 1;
    const taken = isCrowded ? [] : calls;
    const draft = await this.#draft(taken, rows, position, startedAt);
    const decided = await decideGroup(draft, taken, rows, { db, applicationId, answers: this.#answers });
    if (decided.length === 0 && taken.length > 0) return { kind: "repeat" };
    const rest = calls.slice(decided.length);
    const entry = toEntry(position, draft, { ...toldBy(decided, rows, startedAt), unless });
    if (isEmpty(entry, position) && !this.#mustWrite) {
      // Only a write proves what was assumed.
      if (unless) return { kind: "repeat" };
      this.#respond(decided, rows, db.bookmark);
      return { kind: "done", rest };
    }
    const kept = decided.length === 0 ? this.#settlingEntry(entry) : this.#keep(entry);
    const written = await this.#write(db, kept, decided, calls.length > 1);
    if (written.kind === "abandoned") {
      // Kept before anybody is told: whoever goes on from here, another instance too, does not repeat what was given up.
      this.#settlingEntry(toEntry(position, await this.#draft([], NOTHING_READ, position, now()), NOTHING_TOLD));
      throw new Unavailable("D1", written.error, true);
    }
    if (written.kind !== "applied") return written;
    warnIfFilling(applicationId, position.fresh, kept.position.fresh);
    this.#at = kept.position;
    this.#respond(decided, rows, written.bookmark);
    return { kind: "done", rest };
  }

  /** Whether D1 is where the list ends, or, while it is unknown whether D1 applied the last entry, right before that. */
  #isLevel(position: Position): boolean {
    const { journal } = this.#platform;
    const last = journal.last();
    if (!last) return false;
    const isAtEnd = position.sequence === last.sequence && journal.has(position);
    // An earlier instance may have left several attempts, too.
    if (isAtEnd && this.#mustWrite) journal.confirm(position);
    if (isAtEnd && this.#isUnsettled) {
      // If D1 has not moved, it refused the unknown entry, and the callers of the last one have their responses.
      if (position.entry !== this.#at?.entry) this.#endUntold(journal.lastEntry());
    }
    if (isAtEnd) this.#isUnsettled = false;
    return isAtEnd || (this.#isUnsettled && position.entry === this.#at?.entry);
  }

  /** D1 has applied an entry whose callers were told 503: invitations whose tokens nobody can ask for again are ended. */
  #endUntold(entry: Entry | undefined): void {
    for (const { op, table, columns, rows } of entry?.writes ?? []) {
      if (op !== "insert" || table !== "invitation") continue;
      for (const row of rows) {
        const id = row[columns.indexOf("number")];
        if (typeof id !== "number" || row[columns.indexOf("isRepeatable")] === true) continue;
        const command = { kind: "revoke-invitation" as const, id, revoker: { kind: "server" as const } };
        this.#platform.queue.add(waitingFor({ id: newRandomId(), until: null, origin: BY_CLOCK, command }));
      }
    }
  }

  #keep(entry: Entry): Entry {
    const { journal, now } = this.#platform;
    // An entry of a lost instance may still come in before the first one of this instance.
    journal.append(entry, now(), !this.#isProven);
    if (entry.position.sequence % JOURNAL_PRUNE_ENTRIES === 0) journal.prune(now());
    return entry;
  }

  /** An empty entry takes the place of one that nobody waits for. There is one for each place in the list. */
  #settlingEntry(entry: Entry): Entry {
    this.#settling = this.#keep(this.#settling?.previous === entry.previous ? this.#settling : entry);
    return this.#settling;
  }

  /** Repeats the write while somebody waits for it. */
  async #write(
    db: Database,
    entry: Entry,
    decided: readonly Decided[],
    isDivisible: boolean,
  ): Promise<
    { kind: "applied"; bookmark: string | null } | { kind: "repeat" | "split" } | { kind: "abandoned"; error: unknown }
  > {
    const { applicationId, journal, now } = this.#platform;
    for (let tries = 0; ; tries++) {
      const applied = await applyEntry(db, applicationId, entry, journal.since());
      switch (applied.kind) {
        case "applied":
          journal.confirm(entry.position);
          this.#isProven = true;
          this.#isUnsettled = false;
          this.#answers.addEntry(entry);
          this.#platform.wake(applied.events);
          return applied;
        case "hindered":
          journal.drop(entry.id);
          return { kind: "repeat" };
        case "elsewhere":
          // Otherwise a later catch-up would apply it, after its callers were told 503.
          if (applied.isRefused && tries === 0) journal.drop(entry.id);
          return { kind: "repeat" };
        case "refused": {
          journal.drop(entry.id);
          if (isDivisible) return { kind: "split" };
          log("error", { event: "entry-refused", application: applicationId, error: applied.error });
          throw new EntryRefused(applied.isAboutRows);
        }
        case "unknown": {
          this.#isUnsettled = true;
          await scheduler.wait(Math.min(PLATFORM_RETRY_BASE_MILLISECONDS * 2 ** tries, MAX_REPEAT_MILLISECONDS));
          const isWaitedFor = decided.some(({ waiting }) => waiting.call.until !== null && now() < waiting.call.until);
          // From here on, another entry takes its place, and D1 applies one of the two.
          if (!isWaitedFor) return { kind: "abandoned", error: applied.error };
        }
      }
    }
  }

  async #draft(calls: readonly Waiting[], rows: GroupRows, position: Position, now: number): Promise<Draft> {
    const numberAt = await this.#freshNumbers.forCommands(calls.map(({ call }) => call.command));
    const draft = new Draft(position, { now, randomBelow, numberAt });
    for (const row of rows.badges) draft.badges.load(row.number, row);
    for (const row of rows.invitations) draft.invitations.load(row.digest, row);
    for (const row of rows.blocks) draft.blocks.load(row.userId, row);
    for (const row of rows.freed) draft.freed.load(row.number, row);
    for (const { device, turn } of rows.turns) draft.turns.set(device, turn);
    return draft;
  }

  #respond(decided: readonly Decided[], { eventsThrough }: GroupRows, bookmark: string | null): void {
    const { queue, now } = this.#platform;
    this.#bookmark = bookmark ?? this.#bookmark;
    for (const { waiting, outcome, erased } of decided) {
      if (outcome.kind === "again") {
        waiting.isBegun = true;
        waiting.erased += erased;
        waiting.eventsAfter = eventsThrough ?? waiting.eventsAfter;
        queue.continueLater(waiting);
        continue;
      }
      this.#answers.add(waiting.call, outcome, now());
      waiting.done.resolve({ outcome, bookmark: this.#bookmark });
    }
  }
}

const NOTHING_TOLD = { calls: [], results: [], erasures: [], unless: null };

/** The one call of this entry is what D1 refuses. */
class EntryRefused extends Error {
  /** Whether its rows are the reason; otherwise D1 cannot store anything like it, as before a migration. */
  readonly isAboutRows: boolean;

  constructor(isAboutRows: boolean) {
    super("D1 refuses an entry");
    this.isAboutRows = isAboutRows;
  }
}
