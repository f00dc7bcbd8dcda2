import type { World } from "../world.ts";
import type { Attempt } from "./book.ts";

/** A request that lost so many races against others of its user device is told to come back. */
const MAX_LOST_RACES = 5;

/** Nobody is turned away without need (contract section 6). */
export function checkAvailability(
  world: World,
  attempt: Attempt<{ applicationId: string }, unknown>,
  what: string,
): void {
  const { verdict, faults, book, plan } = world;
  const { request, outcome, struckBefore } = attempt;
  const hasStruck = faults.struck > struckBefore;
  const detail = () => `${what}: ${JSON.stringify(outcome)}`;
  verdict.expect(outcome?.kind !== "lost" || hasStruck, "a request is answered", detail);
  if (outcome?.kind !== "refused") return;
  const { reason, fault } = outcome;
  verdict.expect(reason !== "INTERNAL_ERROR", "no request ends in 500", () => `${what}: ${explain(fault)}`);
  const isExcused = reason !== "UNAVAILABLE" || hasStruck || book.rivalsOf(attempt) >= MAX_LOST_RACES;
  verdict.expect(isExcused, "503 only where the platform failed", detail);
  verdict.expect(POSSIBLE_REASONS.has(reason), "a request is refused for a documented reason", detail);
  if (reason !== "NUMBERS_EXHAUSTED") return;
  const application = plan.applications.find(({ id }) => id === request.applicationId);
  const isPossible = book.demandOf(request.applicationId) >= (application?.numbersAtFirst ?? 0);
  verdict.expect(isPossible, "numbers run out only when all were asked for", detail);
}

const POSSIBLE_REASONS: ReadonlySet<string> = new Set([
  "UNKNOWN_BADGE",
  "INVALID_CREDENTIALS",
  "CLAIMED_INVITATION",
  "EXPIRED_INVITATION",
  "REVOKED_INVITATION",
  "UNKNOWN_INVITATION",
  "NUMBERS_EXHAUSTED",
  "UNAVAILABLE",
  "INTERNAL_ERROR",
]);

function explain(fault: unknown): string {
  return fault instanceof Error
    ? `${fault.stack}${fault.cause === undefined ? "" : ` < ${explain(fault.cause)}`}`
    : String(fault);
}
