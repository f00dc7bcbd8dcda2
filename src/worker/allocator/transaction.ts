import { eq } from "drizzle-orm";
import type { AuditContext } from "../../shared/actor.ts";
import type { EventName } from "../../shared/events.ts";
import { type HistoryAction, historyId } from "../../shared/history.ts";
import { eventIdPrefix, newEventId, newRandomId } from "../../shared/identifiers.ts";
import { MAX_ENTRY_CHARACTERS, MAX_PIECE_CHARACTERS } from "../../shared/limits/allocator-limits.ts";
import type { RangeSegment } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import type { BadgeRow, BlockRow, FreedRow, InvitationRow } from "../storage/rows.ts";
import { isIssued } from "../storage/rows.ts";
import type { Rules } from "./commands.ts";
import type { Counters } from "./counters.ts";
import {
  type EntryChanges,
  type Erasure,
  type EventPayload,
  type NewEvent,
  type NewHistory,
  NO_CHANGES,
  type RowTable,
} from "./log-entry.ts";
import { NetChanges } from "./net-changes.ts";
import { countBadge, countInvitation, countNewBadge, uncountNewBadge } from "./statistics.ts";
import { badge, blockedUser, freedNumber, invitation } from "./tables/schema.ts";
import type { Tables } from "./tables/tables.ts";
import { withoutUser } from "./text-without-user.ts";

/** What decisions need besides rows. */
export interface Sources {
  /** Milliseconds. */
  now: number;
  /** The latest time at which anything was logged, in milliseconds. */
  latestAt?: number;
  /** The number at an index of a range segment (permutation.ts); without it no number can be taken. */
  numberAt?(segment: RangeSegment, index: number): number;
  /** A whole number from 0 to `limit - 1`, each equally likely. */
  randomBelow(limit: number): number;
}

/** What one entry is to store, and the counters as it leaves them. */
export interface DraftedEntry {
  counters: Counters;
  changes: EntryChanges;
}

interface Draft {
  rows: NetChanges;
  history: NewHistory[];
  events: NewEvent[];
  erasures: Erasure[];
  results: EntryChanges["results"];
  keys: EntryChanges["keys"];
  endedDay: EntryChanges["endedDay"];
  withdrawn: number[];
  /** Whether the entry is needed for its counters alone. */
  isForced: boolean;
  /** Characters, roughly. */
  size: number;
}

/**
 * The local transaction in which a group of calls is decided. Every change is made in the allocator's own tables at once, so
 * each call sees what the one before left; each change is recorded for D1, too. Nothing here waits.
 */
export class Transaction {
  readonly tables: Tables;
  readonly now: number;
  readonly sources: Sources;
  readonly counters: Counters;
  /** The earliest end of a badge or an invitation that was written, in milliseconds; null: there was none. */
  nextEnd: number | null = null;
  readonly #rangeBefore: number;
  readonly #full: DraftedEntry[] = [];
  #draft = newDraft();
  #historyRows = 0;

  constructor(tables: Tables, counters: Counters, sources: Sources) {
    this.tables = tables;
    this.now = sources.now;
    this.sources = sources;
    this.counters = structuredClone(counters);
    this.#rangeBefore = counters.rangeSegments.length;
  }

  /** Stores a new badge, or a number that is reserved from now on. */
  insertBadge(row: BadgeRow): void {
    this.tables.insertBadge.run({ ...row });
    this.#record("insert", "badge", row.number, row);
    this.#noteEnd(isIssued(row) ? row.expiresAt : null);
    this.#countBadge(undefined, row);
  }

  /**
   * Stores an issued badge, or a reserved number that becomes one, without a change that callers see. Only what differs is written:
   * every column that a statement names is written into every index that has it.
   */
  keepBadge(before: BadgeRow, after: BadgeRow): void {
    const columns = differences(before, after);
    if (columns === null) return;
    this.tables.orm.update(badge).set(columns).where(eq(badge.number, before.number)).run();
    this.#record("update", "badge", before.number, columns);
    if ("expiresAt" in columns) this.#noteEnd(after.expiresAt);
    this.#countBadge(before, after);
  }

  deleteBadge(row: BadgeRow): void {
    this.tables.orm.delete(badge).where(eq(badge.number, row.number)).run();
    this.#record("delete", "badge", row.number, {});
    this.#countBadge(row, undefined);
  }

  /** Stores a badge as it is after a change that callers see. */
  changeBadge<Row extends BadgeRow>(before: BadgeRow, after: Row): Row {
    const change = ++this.counters.lastChange;
    const isOfStatus =
      isIssued(before) &&
      (before.state !== after.state || before.endedAt !== after.endedAt || before.expiresAt !== after.expiresAt);
    const changed = { ...after, change, changedAt: this.now, ...(isOfStatus && { statusChange: change }) };
    this.keepBadge(before, changed);
    return changed;
  }

  insertInvitation(row: InvitationRow): void {
    this.tables.orm.insert(invitation).values(row).run();
    this.#record("insert", "invitation", row.digest, row);
    this.#noteEnd(row.expiresAtTime);
    countInvitation(this.counters, undefined, row);
  }

  updateInvitation(before: InvitationRow, after: InvitationRow): void {
    const columns = differences(before, after);
    if (columns === null) return;
    this.tables.orm.update(invitation).set(columns).where(eq(invitation.digest, before.digest)).run();
    this.#record("update", "invitation", before.digest, columns);
    countInvitation(this.counters, before, after);
  }

  deleteInvitation(row: InvitationRow): void {
    this.tables.orm.delete(invitation).where(eq(invitation.digest, row.digest)).run();
    this.#record("delete", "invitation", row.digest, {});
    countInvitation(this.counters, row, undefined);
  }

  insertBlock(row: BlockRow): void {
    this.tables.orm.insert(blockedUser).values(row).run();
    this.#record("insert", "blockedUser", row.userId, row);
  }

  deleteBlock({ userId }: BlockRow): void {
    this.tables.orm.delete(blockedUser).where(eq(blockedUser.userId, userId)).run();
    this.#record("delete", "blockedUser", userId, {});
  }

  insertFreed(row: FreedRow): void {
    this.tables.orm.insert(freedNumber).values(row).run();
    this.#record("insert", "freedNumber", row.number, row);
    this.counters.statistics.freed++;
  }

  deleteFreed({ number }: FreedRow): void {
    this.tables.orm.delete(freedNumber).where(eq(freedNumber.number, number)).run();
    this.#record("delete", "freedNumber", number, {});
    this.counters.statistics.freed--;
  }

  /**
   * Records a webhook event, which is sent if the application subscribes to it.
   *
   * @param data what it says about the badge
   * @returns its ID
   */
  addEvent(event: EventName, data: EventPayload["data"]): string {
    const id = newEventId(this.now);
    this.#draft.events.push({ payload: { id, event, createdAt: isoTime(this.now), data }, createdAt: this.now });
    this.#draft.size += 200 + JSON.stringify(data).length;
    return id;
  }

  addHistory(
    action: HistoryAction,
    { actor, requestId, reason }: AuditContext,
    about: { badge?: number; userId?: string | null; detail?: Record<string, unknown> },
  ): void {
    this.#draft.history.push({
      id: historyId(this.now, this.#historyRows++),
      at: this.now,
      action,
      actorKind: actor.kind,
      actorName: actor.name ?? null,
      badge: about.badge ?? null,
      userId: about.userId ?? null,
      requestId: requestId ?? null,
      reason: reason ?? null,
      detail: about.detail ? JSON.stringify(about.detail) : null,
    });
    this.#draft.size += 300;
  }

  /** The result of a command of the script, which is stored with what the command changed. */
  addScriptResult(id: string, result: string): void {
    this.#draft.results.push({ id, result });
  }

  /** A badge is issued with this key; the first such entry carries the key, so that a restore does not lose it. */
  useSigningKey(key: Rules["signingKey"]): void {
    if (this.counters.lastSigningKey === key.id) return;
    this.#draft.keys.push(key);
    this.tables.keepKey(key);
    this.counters.lastSigningKey = key.id;
  }

  /**
   * Replaces a user with an alias in what only D1 has: history and events. Those of this group are changed here,
   * because they are not in D1 yet; D1 is searched afterwards (replica/erasures.ts).
   *
   * @param withoutPerson changes what an event that names the user says
   * @param isSearching whether D1 is already being searched for this erasure
   */
  eraseFromD1(
    userId: string,
    alias: string,
    withoutPerson: (data: EventPayload["data"]) => EventPayload["data"],
    isSearching: boolean,
  ): void {
    for (const { changes } of [...this.#full, { changes: this.#draft }]) {
      for (const { payload } of changes.events) payload.data = withoutPerson(payload.data);
      eraseFromHistory(changes.history, userId, alias);
    }
    // If the clock went back, earlier events have later IDs than this moment's.
    const through = Math.max(this.now, this.sources.latestAt ?? 0) + 1;
    const done = { userId, alias, throughEvent: eventIdPrefix(through) };
    this.#draft.erasures.push(done);
    if (isSearching) this.tables.extendErasure(done);
    else this.tables.addErasure(done);
  }

  /** D1 has another application's row with this number, so it is never drawn again. */
  addWithdrawn(number: number): void {
    this.#draft.withdrawn.push(number);
  }

  /** Skips fresh numbers, ordinals and change numbers that may have been used. */
  skip(rangeSegments: RangeSegment[], { ordinals, changes }: { ordinals: number; changes: number }): void {
    this.counters.rangeSegments = rangeSegments;
    this.counters.lastOrdinal += ordinals;
    this.counters.lastChange += changes;
    this.#draft.isForced = true;
  }

  /** The feed's cursors expire. No badge has this change number, so no connected door is up to date. */
  renewEpoch(): void {
    this.counters.epoch = newRandomId();
    this.counters.lastChange++;
    this.#draft.isForced = true;
  }

  /**
   * A large command may be split into several entries here, where no change is half done. While D1 has only some
   * of the entries, that is what readers see.
   */
  allowSplit(): void {
    if (this.#draft.size > MAX_PIECE_CHARACTERS) this.#close();
  }

  /**
   * Whether the group takes no further call: it has as much as one entry may store, or it has erased a user. If the user comes
   * back, the next entry adds the new badge, because the erased one must first free its slot in D1's unique index.
   */
  get isFull(): boolean {
    const { size, erasures } = this.#draft;
    return this.#full.length > 0 || size > MAX_ENTRY_CHARACTERS || erasures.length > 0;
  }

  /** What has been decided, as the entries that store it; none if nothing has changed. */
  finish(): DraftedEntry[] {
    if (!isEmpty(this.#draft)) this.#close();
    return this.#full;
  }

  #close(): void {
    const { rows, size: _size, isForced: _isForced, ...others } = this.#draft;
    const last = this.counters.rangeSegments.at(-1);
    const isGrown = this.#full.length === 0 && this.counters.rangeSegments.length > this.#rangeBefore;
    const lastNumber = isGrown && last ? last.first + last.size - 1 : null;
    const changes = { ...NO_CHANGES, ...others, rows: rows.toWrites(), lastNumber };
    this.#full.push({ counters: structuredClone(this.counters), changes });
    this.#draft = newDraft();
  }

  #record(op: "insert" | "update" | "delete", table: RowTable, key: string | number, columns: object): void {
    this.#draft.size += this.#draft.rows.add(op, table, key, columns);
  }

  #countBadge(before: BadgeRow | undefined, after: BadgeRow | undefined): void {
    countBadge(this.counters, before, after);
    if (!isIssued(before) && isIssued(after)) {
      const ended = countNewBadge(this.counters, this.now);
      this.#draft.endedDay ??= ended;
    } else if (isIssued(before) && !isIssued(after)) {
      uncountNewBadge(this.counters, before.issuedAt);
    }
  }

  #noteEnd(time: number | null): void {
    if (time !== null) this.nextEnd = Math.min(this.nextEnd ?? time, time);
  }
}

const newDraft = (): Draft => ({
  rows: new NetChanges(),
  history: [],
  events: [],
  erasures: [],
  results: [],
  keys: [],
  endedDay: null,
  withdrawn: [],
  isForced: false,
  size: 0,
});

const isEmpty = ({ rows, history, events, erasures, results, keys, withdrawn, isForced }: Draft): boolean =>
  !isForced && rows.isEmpty && [history, events, erasures, results, keys, withdrawn].every((list) => list.length === 0);

function eraseFromHistory(history: NewHistory[], userId: string, alias: string): void {
  const erase = withoutUser(userId, alias);
  for (const [index, row] of history.entries()) {
    const actorName = row.actorName && erase(row.actorName);
    const isBy = row.actorName === userId;
    history[index] =
      row.userId === userId
        ? { ...row, actorName, userId: alias, reason: null, detail: null }
        : { ...row, actorName, reason: isBy ? null : row.reason && erase(row.reason) };
  }
}

/** The columns that have other values than before; null: all are equal. */
function differences<Row extends object>(before: Row, after: Row): Partial<Row> | null {
  const columns: Partial<Row> = {};
  let isChanged = false;
  for (const name in after) {
    if (after[name] === before[name]) continue;
    columns[name] = after[name];
    isChanged = true;
  }
  return isChanged ? columns : null;
}
