import { newRandomId } from "../../shared/identifiers.ts";
import type { CallOutcome, Result } from "./commands.ts";
import { decide } from "./decide/decide.ts";
import { NO_CHANGES } from "./log-entry.ts";
import type { SearchStep } from "./replica/erasures.ts";
import { scriptResultOf } from "./script-result.ts";
import type { Log } from "./tables/entry-log.ts";
import type { PendingErasure, Tables } from "./tables/tables.ts";
import { type DraftedEntry, type Sources, Transaction } from "./transaction.ts";
import { type Calls, isResult, mentionsAny, type WaitingCall } from "./waiting-calls.ts";

export interface DecidedCall {
  waiting: WaitingCall;
  outcome: CallOutcome;
}

/** Calls that were decided together. */
export interface Group {
  decided: DecidedCall[];
  /** Calls that did not fit into the entry. */
  rest: readonly WaitingCall[];
  /** The last entry that stores what they changed; null: they have changed nothing. */
  sequence: number | null;
  /** The earliest end that was written, in milliseconds; null: none was. */
  nextEnd: number | null;
}

/** A call cannot be decided: something is wrong with it. Nothing of its group was changed. */
export class UndecidableCall extends Error {
  readonly waiting: WaitingCall;

  constructor(waiting: WaitingCall, cause: unknown) {
    super("a call cannot be decided", { cause });
    this.waiting = waiting;
  }
}

/**
 * Decides calls in their order, in one local transaction, and logs what they change. A call that was decided before gets the same
 * result.
 *
 * @throws UndecidableCall
 */
export function decideGroup(
  tables: Tables,
  log: Log,
  queue: Calls,
  calls: readonly WaitingCall[],
  sources: Sources,
): Group {
  return tables.orm.transaction(() => {
    const head = requireHead(log);
    const transaction = new Transaction(tables, head.counters, sources);
    const decided: DecidedCall[] = [];
    for (const waiting of calls) {
      if (transaction.isFull) break;
      decided.push({ waiting, outcome: decideCall(transaction, queue, waiting) });
    }
    const results = decided.flatMap(({ waiting: { call }, outcome }) =>
      isResult(outcome) ? [{ id: call.id, until: call.until, result: outcome }] : [],
    );
    const sequence = append(log, transaction.finish(), results, sources.now);
    // Fails in a superseded instance, whose results must not be returned.
    if (sequence === null) tables.touch();
    return { decided, rest: calls.slice(decided.length), sequence, nextEnd: transaction.nextEnd };
  });
}

function decideCall(transaction: Transaction, queue: Calls, waiting: WaitingCall): CallOutcome {
  const { call, scriptId } = waiting;
  const known = queue.known(call.id, transaction.now);
  if (known) return known;
  const result = decideOrThrow(transaction, waiting);
  const isPart = result.kind === "erased" && !result.isDone;
  if (scriptId !== null && !isPart) {
    transaction.addScriptResult(scriptId, JSON.stringify(scriptResultOf(result, transaction.now)));
  }
  return result;
}

function decideOrThrow(transaction: Transaction, waiting: WaitingCall): Result {
  try {
    return decide(transaction, waiting.call);
  } catch (error) {
    throw new UndecidableCall(waiting, error);
  }
}

/**
 * D1 has another application's rows with these numbers: the allocator deletes what it has stored for them, and never
 * draws them again.
 *
 * @param mayHaveBeenSeen whether readers may have seen them; the feed's cursors then expire
 */
export function withdrawNumbers(
  tables: Tables,
  log: Log,
  numbers: readonly number[],
  mayHaveBeenSeen: boolean,
  sources: Sources,
): void {
  tables.orm.transaction(() => {
    const transaction = new Transaction(tables, requireHead(log).counters, sources);
    if (mayHaveBeenSeen) transaction.renewEpoch();
    for (const number of numbers) {
      const row = tables.badge(number);
      const invitation = row?.invitation == null ? undefined : tables.invitation(row.invitation);
      if (invitation?.number === number) transaction.deleteInvitation(invitation);
      const freed = tables.freed(number);
      if (freed) transaction.deleteFreed(freed);
      if (row) transaction.deleteBadge(row);
      transaction.addWithdrawn(number);
    }
    append(log, transaction.finish(), [], sources.now);
  });
}

/** Logs an entry that changes nothing. @param now milliseconds */
export function appendEmpty(log: Log, now: number): void {
  append(log, [{ counters: requireHead(log).counters, changes: NO_CHANGES }], [], now);
}

/** Logs what a step of a search has found. @param now milliseconds */
export function appendSearch(
  tables: Tables,
  log: Log,
  erasure: PendingErasure,
  { changes, next }: SearchStep,
  now: number,
): void {
  tables.orm.transaction(() => {
    tables.moveErasure(erasure, next);
    const { counters } = requireHead(log);
    // The newest entry is kept for good: it must not name the user.
    const last = next === null ? [{ counters, changes: NO_CHANGES }] : [];
    append(log, [...(changes ? [{ counters, changes }] : []), ...last], [], now);
  });
}

/** @returns the last entry's sequence number; null if there is none */
function append(
  log: Log,
  drafted: readonly DraftedEntry[],
  calls: readonly { id: string; until: number; result: Result }[],
  now: number,
): number | null {
  let { sequence } = requireHead(log);
  if (drafted.length === 0) return null;
  for (const [index, { counters, changes }] of drafted.entries()) {
    sequence++;
    const isLast = index === drafted.length - 1;
    log.append({ sequence, id: newRandomId(), counters, changes, calls: isLast ? [...calls] : [], keptAt: now });
  }
  return sequence;
}

function requireHead(log: Log) {
  const head = log.head();
  if (!head) throw new Error("an allocator without rows decides nothing");
  return head;
}

/**
 * Splits a group's calls into those that name one of these numbers, those that were refused, and the others. A refused script
 * command counts as one of the others, because D1 already has its result, which the administrator may have read.
 */
export function splitByNumbers(
  decided: readonly DecidedCall[],
  numbers: readonly number[],
): Record<"naming" | "refused" | "others", DecidedCall[]> {
  const parts = Object.groupBy(decided, ({ waiting, outcome }) => {
    if (outcome.kind === "refused") return waiting.scriptId === null ? "refused" : "others";
    return isResult(outcome) && mentionsAny(outcome, numbers) ? "naming" : "others";
  });
  return { naming: [], refused: [], others: [], ...parts };
}
