import { type BadgeAttempt, type Book, describe, grantedNumber, isUntold } from "./book.ts";
import type { Verdict } from "./verdict.ts";

/** Holds the answer to a badge request against all that its user device was answered before (contract section 1). */
export function checkBadgeAnswer(book: Book, verdict: Verdict, attempt: BadgeAttempt): void {
  const number = grantedNumber(attempt);
  if (number === null) return;
  const others = book.attemptsOf(attempt.request).filter((other) => other !== attempt);
  for (const other of others) checkSameNumber(book, verdict, { attempt, other, number });
  checkCreatedOnce(verdict, { attempt, others, number });
}

function checkSameNumber(
  book: Book,
  verdict: Verdict,
  { attempt, other, number }: { attempt: BadgeAttempt; other: BadgeAttempt; number: number },
): void {
  const before = grantedNumber(other);
  if (before === null || before === number) return;
  const claims = book.attemptsOf(attempt.request).filter((claim) => claim.from <= attempt.to);
  const isClaimOf = (wanted: number) => (claim: BadgeAttempt) => book.claimedNumber(claim) === wanted;
  const isOver = other.to < attempt.from;
  // A change to this number happened while it was being claimed, so not before the other answer was asked for.
  const isExplained = isOver
    ? claims.filter(isClaimOf(number)).some((claim) => claim.to >= other.from)
    : claims.some((claim) => isClaimOf(number)(claim) || isClaimOf(before)(claim));
  verdict.expect(isExplained, "a user device keeps its number until it claims an invitation", () => {
    return `first ${describe(other)}; then ${describe(attempt)}`;
  });
}

function checkCreatedOnce(
  verdict: Verdict,
  { attempt, others, number }: { attempt: BadgeAttempt; others: readonly BadgeAttempt[]; number: number },
): void {
  const created = [attempt, ...others].filter(
    ({ outcome }) =>
      outcome?.kind === "granted" && outcome.granted.kind === "created" && outcome.granted.number === number,
  );
  verdict.expect(created.length <= 1, "a badge is answered with 201 at most once", () =>
    created.map(describe).join("; "),
  );
  const isCreated = created.length > 0 || others.some(isUntold);
  verdict.expect(isCreated, "a badge is answered with 201 before it is answered with 200", () => describe(attempt));
}
