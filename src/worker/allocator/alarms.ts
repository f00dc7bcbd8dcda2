import {
  COMPARE_AFTER_MILLISECONDS,
  LAST_COMPARISON_MILLISECONDS,
  LOG_DAYS,
  MAX_LOG_BYTES,
  MAX_STORED_BYTES,
  NOT_IN_LOG_ALARM_MILLISECONDS,
  PRUNE_ENTRIES,
  RETRY_ALARM_MILLISECONDS,
} from "../../shared/limits/allocator-limits.ts";
import { DAY_MILLISECONDS, HOUR_MILLISECONDS, happenedWithin } from "../../shared/time.ts";
import { log as logLine } from "../log.ts";
import { readRetention } from "../scheduling/retention-days.ts";
import type { Command } from "./commands.ts";
import type { Log } from "./tables/entry-log.ts";
import type { Tables } from "./tables/tables.ts";
import type { Reply } from "./waiting-calls.ts";

/** Submits a command on behalf of the alarm, not of a caller. */
type Submit = (command: Command) => Promise<Reply>;

/** In milliseconds: workerd takes no alarm for a time after 2189. */
const LATEST_ALARM = Date.UTC(2189, 0);

/**
 * The allocator's alarm. It is set for the next end of a badge or an invitation, for comparisons with D1 a minute after a
 * change and 110 seconds after the last one, and once a day to delete what is too old.
 */
export class Alarms {
  readonly #storage: DurableObjectStorage;
  readonly #tables: Tables;
  readonly #log: Log;
  readonly #env: Env;
  /** Time of the alarm in milliseconds; null if it is not set; undefined until it is read. */
  #at: number | null | undefined;
  /** Whether something has been changed since the last comparison. */
  #isChanged = false;
  /** Whether the last alarm left something undone. */
  #isUnfinished = false;
  /** When `log-shortened` was last logged, in milliseconds. */
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(storage: DurableObjectStorage, tables: Tables, log: Log, env: Env) {
    this.#storage = storage;
    this.#tables = tables;
    this.#log = log;
    this.#env = env;
  }

  /** Must be called before `ensure`, which then writes at once. */
  async load(): Promise<void> {
    if (this.#at === undefined) this.#at = await this.#storage.getAlarm();
  }

  /** The alarm fires at this time at the latest. @param at milliseconds; null: none is needed */
  async ensure(at: number | null): Promise<void> {
    if (this.#at === undefined) await this.load();
    if (at === null || (this.#at != null && this.#at <= at)) return;
    this.#at = at;
    // An end may have been set to 1970, which the platform takes for no alarm, or to a year that it does not know.
    try {
      await this.#storage.setAlarm(Math.min(Math.max(1, at), LATEST_ALARM));
    } catch (error) {
      [this.#at, this.#isChanged] = [undefined, false];
      throw error;
    }
  }

  /** Something has been changed: D1 is compared a minute after the first change. */
  async ensureComparison(now: number): Promise<void> {
    if (this.#isChanged) return;
    this.#isChanged = true;
    await this.ensure(now + COMPARE_AFTER_MILLISECONDS);
  }

  /** The alarm has fired. */
  begin(): void {
    this.#at = null;
    this.#isChanged = false;
    this.#isUnfinished = true;
  }

  /**
   * Records what has ended, and deletes what is too old.
   *
   * @param sentThrough sequence of the last entry that D1 has
   * @param noteLogSince gets the time of the oldest entry, in milliseconds, when the log had no room for 31 days of entries
   */
  async work(submit: Submit, sentThrough: () => number, noteLogSince: (since: number) => Promise<void>): Promise<void> {
    const { purgedAt = 0, purgeAfter = "" } = this.#tables.self() ?? {};
    const now = Date.now();
    const retention = this.#retention();
    const isDone = await this.#recordEnds(submit);
    const isPurgeDue = now - purgedAt >= this.#purgePause();
    const isPurged = !isPurgeDue || (await this.#purge(submit, purgeAfter, now - retention));
    const isErased = this.#tables.pendingErasure() === undefined;
    const isPruned = !(await this.#prune(now, sentThrough(), noteLogSince));
    this.#isUnfinished = !(isDone && isPurged && isErased && isPruned);
  }

  async #recordEnds(submit: Submit): Promise<boolean> {
    for (;;) {
      const end = this.#tables.nextEnd();
      if (end === null || end > Date.now()) return true;
      const { outcome } = await submit({ kind: "record-ends" });
      if (outcome.kind !== "recorded") return false;
      if (outcome.isDone) return true;
    }
  }

  /** One step of the walk over all invitations. @returns whether it is at its end */
  async #purge(submit: Submit, after: string, endedUntil: number): Promise<boolean> {
    const { outcome } = await submit({ kind: "purge", after, endedUntil });
    if (outcome.kind !== "recorded") return false;
    if (outcome.isDone) this.#tables.changeSelf({ purgedAt: Date.now(), purgeAfter: "" });
    else this.#tables.changeSelf({ purgeAfter: outcome.after ?? "" });
    return outcome.isDone;
  }

  /** @returns whether there is more */
  async #prune(now: number, through: number, noteLogSince: (since: number) => Promise<void>): Promise<boolean> {
    const keptBefore = now - LOG_DAYS * DAY_MILLISECONDS;
    if (!this.#isFull()) return this.#log.prune(keptBefore, through, PRUNE_ENTRIES);
    const hasMore = this.#log.prune(null, through, PRUNE_ENTRIES);
    const since = this.#log.oldestKeptAt() ?? now;
    if (since > keptBefore) {
      this.#warn(since, now);
      await noteLogSince(since);
    }
    return hasMore && this.#isFull();
  }

  /** Whether the log has no room for 31 days of entries. */
  #isFull(): boolean {
    return this.#log.bytes() > MAX_LOG_BYTES || this.#storage.sql.databaseSize > MAX_STORED_BYTES;
  }

  #warn(since: number, now: number): void {
    if (happenedWithin(this.#warnedAt, now, HOUR_MILLISECONDS)) return;
    this.#warnedAt = now;
    const application = this.#tables.self()?.applicationId;
    logLine("warn", { event: "log-shortened", application, days: Math.floor((now - since) / DAY_MILLISECONDS) });
  }

  /**
   * Sets the alarm for what comes next; leaves it unset if nothing does.
   *
   * @param needsAdministrator whether an administrator has to decide first
   */
  async setNext(needsAdministrator: boolean): Promise<void> {
    const now = Date.now();
    if (needsAdministrator) return this.ensure(now + NOT_IN_LOG_ALARM_MILLISECONDS);
    const endOfOldest = this.#log.endOfOldest();
    const hasInvitations = this.#tables.hasInvitations();
    // An end that could not be recorded is past: it must not bring the next alarm at once.
    if (this.#isUnfinished) return this.ensure(now + RETRY_ALARM_MILLISECONDS);
    const comparison = (this.#log.newestKeptAt() ?? 0) + LAST_COMPARISON_MILLISECONDS;
    const times = [
      // This alarm may have come too early to see a restore that the tick does not notice.
      comparison > now ? comparison : null,
      this.#tables.nextEnd(),
      endOfOldest === null ? null : endOfOldest + LOG_DAYS * DAY_MILLISECONDS,
      hasInvitations ? (this.#tables.self()?.purgedAt ?? 0) + this.#purgePause() : null,
    ].filter((time) => time !== null);
    if (times.length > 0) await this.ensure(Math.max(now + 1, Math.min(...times)));
  }

  /** Time between two walks over all invitations, in milliseconds. */
  #purgePause(): number {
    return Math.min(DAY_MILLISECONDS, Math.max(HOUR_MILLISECONDS, this.#retention()));
  }

  /** How long ended invitations are kept, in milliseconds. A malformed variable deletes nothing. */
  #retention(): number {
    return (readRetention(this.#env).invitationDays ?? Number.POSITIVE_INFINITY) * DAY_MILLISECONDS;
  }
}
