import type { InvitationTerms } from "../service/door.ts";
import type { World } from "../world.ts";
import { type Attempt, type BadgeAttempt, describe, grantedNumber, isUntold } from "./book.ts";

/** A request that lost so many races against others of its user device is told to come back. */
const MAX_LOST_RACES = 5;

const POSSIBLE_REASONS: ReadonlySet<string> = new Set([
  ...["UNKNOWN_BADGE", "INVALID_CREDENTIALS", "NUMBERS_EXHAUSTED", "UNAVAILABLE", "INTERNAL_ERROR"],
  ...["CLAIMED_INVITATION", "EXPIRED_INVITATION", "REVOKED_INVITATION", "UNKNOWN_INVITATION"],
  ...["SUSPENDED_BADGE", "REVOKED_BADGE", "EXPIRED_BADGE", "BLOCKED_USER", "ENDED_BADGE", "INVALID_IDEMPOTENCYKEY"],
]);

/** Nobody is turned away without need (contract section 6). */
export function checkAvailability(
  { verdict, faults, book, plan, isRestored }: World,
  attempt: Attempt<{ applicationId: string } & Partial<InvitationTerms>, unknown>,
  what: string,
): void {
  const { request, outcome, struckBefore } = attempt;
  const hasStruck = faults.struck > struckBefore;
  verdict.expect(outcome?.kind !== "lost" || hasStruck, "a request is answered", what);
  if (outcome?.kind !== "refused") return;
  const { reason, fault } = outcome;
  verdict.expect(reason !== "INTERNAL_ERROR", "no request ends in 500", what, explain(fault));
  const isExcused = reason !== "UNAVAILABLE" || hasStruck || book.rivalsOf(attempt) >= MAX_LOST_RACES;
  verdict.expect(isExcused, "503 only where the platform failed", what);
  // An invitation whose end comes before its request reaches an isolate, by the clock of that one.
  const isLate = (time: number | null | undefined) => (time ?? Infinity) <= attempt.to + plan.clockErrorMilliseconds;
  const isPossibleReason =
    POSSIBLE_REASONS.has(reason) ||
    (reason === "INVALID_EXPIRESAT" && isLate(request.expiresAtTime)) ||
    (reason === "INVALID_BADGEEXPIRESAT" && isLate(request.badgeExpiresAtTime)) ||
    // Only after a restoration of D1 does a reader of the feed have to start again.
    (reason === "EXPIRED_CURSOR" && isRestored);
  verdict.expect(isPossibleReason, "a request is refused for a documented reason", what, reason);
  // After a restoration the object keeps numbers for those whom D1 has forgotten.
  if (reason !== "NUMBERS_EXHAUSTED" || isRestored) return;
  const application = plan.applications.find(({ id }) => id === request.applicationId);
  const isPossible = book.demandOf(request.applicationId) >= (application?.numbersAtFirst ?? 0);
  verdict.expect(isPossible, "numbers run out only when all were asked for", what);
}

function explain(fault: unknown): string {
  if (!(fault instanceof Error)) return String(fault);
  return `${fault.stack}${fault.cause === undefined ? "" : ` < ${explain(fault.cause)}`}`;
}

/** Holds the response to a badge request against all that its user device was answered before (contract section 1). */
export function checkBadge({ book, verdict }: World, attempt: BadgeAttempt): void {
  const number = grantedNumber(attempt);
  if (number === null) return;
  const others = book.attemptsOf(attempt.request).filter((other) => other !== attempt);
  for (const other of others) {
    const before = grantedNumber(other);
    if (before === null || before === number) continue;
    const claims = book.attemptsOf(attempt.request).filter((claim) => claim.from <= attempt.to);
    const claimsOf = (wanted: number) => claims.filter((claim) => book.claimedNumber(claim) === wanted);
    // A change to this number happened while it was being claimed, so not before the other response was asked for.
    const isExplained =
      other.to < attempt.from
        ? claimsOf(number).some((claim) => claim.to >= other.from)
        : claimsOf(number).length + claimsOf(before).length > 0;
    const invariant = "a user device keeps its number until it claims an invitation";
    verdict.expect(isExplained, invariant, describe(other), "then", describe(attempt));
  }
  const created = [attempt, ...others].filter(({ outcome }) => {
    return outcome?.kind === "granted" && outcome.granted.kind === "created" && outcome.granted.number === number;
  });
  verdict.expect(created.length <= 1, "a badge is answered with 201 at most once", ...created.map(describe));
  const isCreated = created.length > 0 || others.some(isUntold);
  verdict.expect(isCreated, "a badge is answered with 201 before it is answered with 200", describe(attempt));
}
