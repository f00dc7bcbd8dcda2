import type { World } from "../world.ts";
import { type BadgeAttempt, describe, type KnownInvitation, keyOf, type RevokeAttempt } from "./book.ts";

/** How an invitation ended, by what somebody was told. */
type End = { state: "claimed"; by: string | null } | { state: "revoked"; at: number | null } | { state: "expired" };

/**
 * An invitation ends once (contract section 5): every response that tells of an end must tell of the same one, and of one
 * that was possible at that moment.
 */
export class Invitations {
  readonly #world: World;
  readonly #ends = new Map<string, End>();

  constructor(world: World) {
    this.#world = world;
  }

  checkClaim(attempt: BadgeAttempt): void {
    const { request, outcome } = attempt;
    const invitation = this.#invitation(request.applicationId, request.token);
    if (!invitation) this.#expectUnknown(attempt, request.token);
    if (!invitation) return;
    if (outcome?.kind === "granted") this.#checkGranted(attempt, invitation);
    if (outcome?.kind === "refused") this.#checkRefused(attempt, invitation, keyOf(request));
  }

  checkRevoke(attempt: RevokeAttempt): void {
    const { request, outcome } = attempt;
    const invitation = this.#invitation(request.applicationId, request.token);
    const isForeign = request.secret === null && request.udid !== invitation?.creatorUdid;
    if (!invitation || isForeign) this.#expectUnknown(attempt, request.token);
    if (!invitation || isForeign) return;
    if (outcome?.kind === "refused") this.#checkRefused(attempt, invitation, null);
    if (outcome?.kind !== "granted") return;
    const { number, expiresAt, revokedAt } = outcome.granted;
    this.#end(invitation, { state: "revoked", at: revokedAt });
    const isSame = number === invitation.number && Date.parse(expiresAt) === invitation.sentExpiresAtTime;
    this.#world.verdict.expect(isSame, "a revoked invitation is answered as it was created", outcome);
  }

  #invitation(applicationId: string, token: string | null): KnownInvitation | undefined {
    const invitation = this.#world.book.invitations.get(token ?? "");
    return invitation?.applicationId === applicationId ? invitation : undefined;
  }

  #expectUnknown({ outcome }: BadgeAttempt | RevokeAttempt, token: string | null): void {
    const isToldUnknown = outcome?.kind === "refused" && ["UNKNOWN_INVITATION", "UNAVAILABLE"].includes(outcome.reason);
    const isKept = isToldUnknown || outcome?.kind === "lost";
    this.#world.verdict.expect(isKept, "nobody uses an invitation of somebody else", token, outcome);
  }

  #checkGranted(attempt: BadgeAttempt, invitation: KnownInvitation): void {
    if (attempt.outcome?.kind !== "granted") return;
    const { number, kind } = attempt.outcome.granted;
    this.#end(invitation, { state: "claimed", by: keyOf(attempt.request) });
    const claims = this.#world.book.attemptsOf(attempt.request);
    const isOurs = number === invitation.number;
    // Another invitation that the user device claimed later has replaced it.
    const isReplaced = kind === "existing" && claims.some((claim) => this.#world.book.claimedNumber(claim) === number);
    const [told, reserved] = [describe(attempt), `reserved ${invitation.number}`];
    const { verdict } = this.#world;
    verdict.expect(isOurs || isReplaced, "a claim is answered with the number that was reserved", told, reserved);
    const inTime = kind === "existing" || invitation.expiresAtTime > attempt.from - this.#clockDifference;
    verdict.expect(inTime, "nobody claims an invitation past its time", told);
  }

  /** Two clocks may differ by twice the error of one. */
  get #clockDifference(): number {
    return 2 * this.#world.plan.clockErrorMilliseconds;
  }

  #checkRefused(attempt: BadgeAttempt | RevokeAttempt, invitation: KnownInvitation, claimer: string | null): void {
    const { outcome, to } = attempt;
    if (outcome?.kind !== "refused") return;
    const { token, expiresAtTime } = invitation;
    const possible = (isPossible: boolean) => {
      const invariant = "an invitation is refused for a reason that is true";
      this.#world.verdict.expect(isPossible, invariant, token, outcome.reason);
    };
    switch (outcome.reason) {
      case "CLAIMED_INVITATION": {
        const claims = this.#world.book.claimsOf(token).filter(({ from }) => from <= to);
        possible(claims.some(({ request }) => keyOf(request) !== claimer));
        this.#end(invitation, { state: "claimed", by: null });
        break;
      }
      case "REVOKED_INVITATION":
        possible(this.#world.book.revokesOf(token).some(({ from }) => from <= to));
        this.#end(invitation, { state: "revoked", at: null });
        break;
      case "EXPIRED_INVITATION":
        possible(expiresAtTime <= to + this.#clockDifference);
        this.#end(invitation, { state: "expired" });
        break;
      // Whether those are true, `life.ts` knows.
      case "SUSPENDED_BADGE":
      case "REVOKED_BADGE":
      case "EXPIRED_BADGE":
      case "BLOCKED_USER":
      case "UNAVAILABLE":
      case "INTERNAL_ERROR":
      case "INVALID_CREDENTIALS":
        break;
      default:
        possible(false);
    }
  }

  #end({ token }: KnownInvitation, end: End): void {
    const known = this.#ends.get(token);
    const isOnce = !known || isCompatible(known, end);
    this.#world.verdict.expect(isOnce, "an invitation ends once and in one way", token, known, end);
    if (!known || isVague(known)) this.#ends.set(token, end);
  }
}

/** Whoever did it, or when, is not known yet. */
function isVague(end: End): boolean {
  return (end.state === "claimed" && end.by === null) || (end.state === "revoked" && end.at === null);
}

function isCompatible(one: End, other: End): boolean {
  if (isVague(one) || isVague(other)) return one.state === other.state;
  if (one.state === "claimed" && other.state === "claimed") return one.by === other.by;
  if (one.state === "revoked" && other.state === "revoked") return one.at === other.at;
  return one.state === other.state;
}
