import { MAX_REMEMBERED_CALLS, MAX_REMEMBERED_CHARACTERS, REMEMBERED_CALL_MILLISECONDS } from "../../shared/limits.ts";
import { BoundedCache } from "../bounded-cache.ts";
import type { Call, Outcome } from "./commands.ts";
import type { Entry } from "./entry.ts";
import type { Journal } from "./journal.ts";

/** What callers were told in the last minutes, so that a repeated call gets the same. */
export class Answers {
  /** By the call's ID. */
  readonly #outcomes = new BoundedCache<Outcome>(MAX_REMEMBERED_CALLS);
  /** Users whose block was answered. */
  readonly #blocks = new BoundedCache<true>(MAX_REMEMBERED_CALLS);
  /** Whether those of an earlier instance, and of what was caught up with, are among them. */
  #hasEarlier = false;

  outcomeOf(callId: string): Outcome | undefined {
    return this.#outcomes.get(callId);
  }

  hasBlockOf(userId: string): boolean {
    return this.#blocks.get(userId) === true;
  }

  /** Also what wrote nothing: a copy of the call must not be decided again, after something has changed. */
  add({ id, command, until }: Call, outcome: Outcome, now: number): void {
    if (command.kind === "block" && (until === null || now < until)) this.#blocks.set(command.userId, true);
    if (command.kind === "unblock") this.#blocks.delete(command.userId);
    if (until !== null) this.#outcomes.set(id, outcome);
  }

  addEntry(entry: Entry): void {
    for (const { id, outcome } of entry.calls) this.#outcomes.set(id, outcome);
  }

  /** The journal has entries that this instance did not decide. */
  missEarlier(): void {
    this.#hasEarlier = false;
  }

  /** @returns whether it read the journal: once, unless some are missing again */
  addEarlier(journal: Journal, now: number): boolean {
    if (this.#hasEarlier) return false;
    this.#hasEarlier = true;
    const since = now - REMEMBERED_CALL_MILLISECONDS;
    for (const entry of journal.recent(since, MAX_REMEMBERED_CALLS, MAX_REMEMBERED_CHARACTERS)) this.addEntry(entry);
    return true;
  }
}
