import { MAX_GROUP_CALLS, MAX_WAITING_CALLS } from "../../shared/limits.ts";
import type { Call, Outcome } from "./commands.ts";

export interface Response {
  outcome: Outcome;
  /** D1's state after the call, as D1 names it; null: not known. */
  bookmark: string | null;
}

/** A call that waits for its turn, or for the rest of it. */
export interface Waiting {
  call: Call;
  done: PromiseWithResolvers<Response>;
  /** ID of the inbox command that it carries out; null: a program waits for the response. */
  inboxId: string | null;
  /** Whether a part of it is done: then the rest is done too, whoever waits. */
  isBegun: boolean;
  /** What an erasure has done so far. */
  erased: number;
  eventsAfter: string;
}

/** A call that waits from now on. */
export const waitingFor = (call: Call, inboxId: string | null = null): Waiting => ({
  call,
  done: Promise.withResolvers<Response>(),
  inboxId,
  isBegun: false,
  erased: 0,
  eventsAfter: "",
});

/** Whether a call is about everything of one user, and so may take several groups. */
export function userOf({ command }: Call): string | null {
  switch (command.kind) {
    case "block":
    case "unblock":
    case "erase":
    case "finish-block":
      return command.userId;
    default:
      return null;
  }
}

/**
 * Calls that wait to be decided, in two lanes: what somebody waits for, and what takes several groups or was made due by the
 * clock. The lanes alternate, so neither delays the other by more than one group.
 */
export class CallQueue {
  #first: Waiting[] = [];
  #second: Waiting[] = [];
  #isSecondNext = false;
  /** Whether the second lane waits although it has calls. */
  isResting = false;

  get size(): number {
    return this.#first.length + this.#second.length;
  }

  /** Whether there is a next group. */
  get isReady(): boolean {
    return this.#first.length > 0 || (this.#second.length > 0 && !this.isResting);
  }

  /** Adds a call at the end. @returns false if too many are waiting: then it is not added */
  add(waiting: Waiting): boolean {
    if (this.size >= MAX_WAITING_CALLS) return false;
    const user = userOf(waiting.call);
    // A user's calls stay in order: the next one waits for the whole of the one before.
    const isBehind = user !== null && this.#second.some(({ call }) => userOf(call) === user);
    const isOfClock = waiting.call.command.kind === "record-due" || waiting.call.command.kind === "finish-block";
    (isBehind || isOfClock ? this.#second : this.#first).push(waiting);
    return true;
  }

  /** Puts calls back that were not decided, at their old places. */
  putBack(calls: readonly Waiting[]): void {
    this.#first.unshift(...calls);
  }

  /** The rest of a call that takes several groups. What the clock made due lets others go first. */
  continueLater(waiting: Waiting): void {
    const user = userOf(waiting.call);
    if (user === null) {
      this.#second.push(waiting);
      return;
    }
    // Calls about the user that came in the meantime wait for the whole of it, too.
    const isOfUser = ({ call }: Waiting) => userOf(call) === user;
    this.#second.unshift(waiting, ...this.#first.filter(isOfUser));
    this.#first = this.#first.filter((each) => !isOfUser(each));
  }

  /** The calls of the next group: of the second lane one, of the first as many as go together. */
  take(): Waiting[] {
    const isSecond = this.#second.length > 0 && !this.isResting && (this.#isSecondNext || this.#first.length === 0);
    this.#isSecondNext = !isSecond;
    if (isSecond) return this.#second.splice(0, 1);
    const users = this.#first.flatMap(({ call }, index) => (userOf(call) === null ? [] : [index]));
    // A group has one call that is about everything of a user.
    return this.#first.splice(0, Math.min(MAX_GROUP_CALLS, users[1] ?? MAX_GROUP_CALLS));
  }
}

/** Tells those who wait that nothing was changed, or that nobody knows. */
export function giveUp(calls: readonly Waiting[]): void {
  for (const { done } of calls) done.resolve({ outcome: { kind: "unavailable" }, bookmark: null });
}

/** Tells those who wait that D1 refuses what was decided, or that something is wrong with it. */
export function fail(calls: readonly Waiting[]): void {
  for (const { done } of calls) done.resolve({ outcome: { kind: "failed" }, bookmark: null });
}

/** Splits calls by whether their callers still wait; what has begun goes on in any case. */
export function splitByDeadline(calls: readonly Waiting[], now: number): { live: Waiting[]; late: Waiting[] } {
  const isLive = ({ call, isBegun }: Waiting) => isBegun || call.until === null || now < call.until;
  return { live: calls.filter(isLive), late: calls.filter((waiting) => !isLive(waiting)) };
}
