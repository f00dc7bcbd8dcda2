import type { ApplicationPlan } from "../plan.ts";
import type { Change } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";
import type { Verdict } from "./verdict.ts";

/** A number whose invitation was revoked or expired rests for its application's reuse delay (contract section 5). */
export class ReuseDelay {
  readonly #verdict: Verdict;
  readonly #now: () => number;
  readonly #applications: readonly ApplicationPlan[];
  readonly #toleranceMilliseconds: number;
  /** When the last invitation that had the number ended, in milliseconds. */
  readonly #endedAt = new Map<number, number>();

  /** @param clockErrorMilliseconds by which one machine's clock is off, at most */
  constructor(parts: {
    verdict: Verdict;
    now: () => number;
    applications: readonly ApplicationPlan[];
    clockErrorMilliseconds: number;
  }) {
    this.#verdict = parts.verdict;
    this.#now = parts.now;
    this.#applications = parts.applications;
    // An end that lies ahead of the object's clock counts from that clock, and the next object has another one.
    this.#toleranceMilliseconds = 3 * parts.clockErrorMilliseconds;
  }

  see(changes: readonly Change[]): void {
    for (const { table, before, after } of changes) {
      if (table === "badge" && before === null && after !== null) this.#checkRest(after);
      if (table === "invitation" && after !== null && ["revoked", "expired"].includes(String(after.state))) {
        this.#endedAt.set(Number(after.number), Number(after.ended_at));
      }
    }
  }

  /** @param badge a row that was not there before: an issued or a reserved number */
  #checkRest({ number, application_id: applicationId }: Row): void {
    const endedAt = this.#endedAt.get(Number(number));
    const application = this.#applications.find(({ id }) => id === applicationId);
    if (endedAt === undefined || !application) return;
    const restsUntil = endedAt + application.reuseAfterSeconds * 1000;
    const early = restsUntil - this.#toleranceMilliseconds - this.#now();
    this.#verdict.expect(early <= 0, "a freed number rests for the reuse delay", () => {
      return `${number}, free since ${endedAt}, was given out again ${early} ms before ${restsUntil}`;
    });
  }
}
