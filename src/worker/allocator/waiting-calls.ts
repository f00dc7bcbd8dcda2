import { MAX_GROUP_CALLS, MAX_RECENT_ENTRIES, MAX_WAITING_CALLS } from "../../shared/limits/allocator-limits.ts";
import type { Call, CallOutcome, Result } from "./commands.ts";
import type { Log } from "./tables/entry-log.ts";

/** What the allocator sends back for a call. */
export interface Reply {
  outcome: CallOutcome;
  /** D1's state after the call, as D1 names it; null: not known. */
  bookmark: string | null;
}

/** A call that waits to be decided. */
export interface WaitingCall {
  call: Call;
  /** ID of the script command it carries out; null: none. */
  scriptId: string | null;
  done: PromiseWithResolvers<Reply>;
}

/** Calls that wait, and results of those that may still be repeated. */
export class Calls {
  readonly #log: Log;
  #waiting: WaitingCall[] = [];
  /** Calls without a reply yet, by ID: one that is repeated meanwhile gets the same reply. */
  readonly #open = new Map<string, Promise<Reply>>();
  /** Outcomes of recent calls that may still be repeated, decided by this instance or an earlier one. */
  readonly #results = new Map<string, { until: number; outcome: CallOutcome }>();
  #hasEarlier = false;

  constructor(log: Log) {
    this.#log = log;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** @returns the reply, when there is one */
  add(call: Call, scriptId: string | null): Promise<Reply> {
    const open = this.#open.get(call.id);
    if (open) return open;
    if (this.#waiting.length >= MAX_WAITING_CALLS) return Promise.resolve(UNAVAILABLE);
    const done = Promise.withResolvers<Reply>();
    this.#open.set(call.id, done.promise);
    this.#waiting.push({ call, scriptId, done });
    return done.promise;
  }

  /** The calls of the next group, in their order. */
  take(): WaitingCall[] {
    return this.#waiting.splice(0, MAX_GROUP_CALLS);
  }

  /** Calls that did not fit into the group, or that are decided again. */
  putBack(calls: readonly WaitingCall[]): void {
    this.#waiting.unshift(...calls);
  }

  /** Nothing is decided after the caller's deadline: it has its 503 by then. @param now milliseconds */
  giveUpLate(now: number): void {
    const late = this.#waiting.filter(({ call }) => now >= call.until);
    this.#waiting = this.#waiting.filter(({ call }) => now < call.until);
    for (const waiting of late) this.reply(waiting, UNAVAILABLE);
  }

  reply({ call, done }: WaitingCall, reply: Reply): void {
    this.#open.delete(call.id);
    this.#results.set(call.id, { until: call.until, outcome: reply.outcome });
    done.resolve(reply);
  }

  fail({ call, done }: WaitingCall, error: unknown): void {
    this.#open.delete(call.id);
    done.reject(error);
  }

  /** The result of a call that was decided before; it is not decided again. @param now milliseconds */
  known(id: string, now: number): CallOutcome | undefined {
    if (!this.#hasEarlier) {
      this.#hasEarlier = true;
      this.#loadEarlier(now);
    }
    // A map keeps the order in which calls came, which is roughly that of their deadlines.
    for (const [old, { until }] of this.#results) {
      if (now < until) break;
      this.#results.delete(old);
    }
    return this.#results.get(id)?.outcome;
  }

  /** If D1 refused a number of a group, the group's refused calls are decided again (`splitByNumbers`), so their stored results do not count. */
  #loadEarlier(now: number): void {
    const withdrawn = this.#log.recentlyWithdrawn(MAX_RECENT_ENTRIES);
    for (const group of this.#log.recentGroups(MAX_RECENT_ENTRIES, withdrawn.length > 0 ? 0 : now)) {
      const isSplit = group.some(({ result }) => mentionsAny(result, withdrawn));
      for (const { id, until, result } of group) {
        if (now >= until || this.#results.has(id) || (isSplit && result.kind === "refused")) continue;
        this.#results.set(id, { until, outcome: result });
      }
    }
    this.forget(withdrawn);
  }

  /** Results that name a number must not be returned any more: it is another application's. */
  forget(numbers: readonly number[]): void {
    for (const [id, { until, outcome }] of this.#results) {
      if (isResult(outcome) && mentionsAny(outcome, numbers)) {
        this.#results.set(id, { until, outcome: { kind: "unavailable" } });
      }
    }
  }
}

const UNAVAILABLE: Reply = { outcome: { kind: "unavailable" }, bookmark: null };

export const isResult = (outcome: CallOutcome): outcome is Result =>
  outcome.kind !== "unavailable" && outcome.kind !== "failed";

/** Whether a result mentions one of these numbers. */
export function mentionsAny(result: Result, numbers: readonly number[]): boolean {
  switch (result.kind) {
    case "created":
    case "existing":
    case "invitation-revoked":
    case "invitation-erased":
      return numbers.includes(result.number);
    case "badge":
      return numbers.includes(result.badge.number);
    case "user":
      return result.numbers.some((number) => numbers.includes(number));
    case "invitations":
      return result.results.some((one) => "number" in one && numbers.includes(one.number));
    case "erased":
    case "reconciled":
    case "recorded":
    case "refused":
      return false;
  }
}
