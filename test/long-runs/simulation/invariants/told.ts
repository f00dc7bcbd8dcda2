import { createPublicKey, verify } from "node:crypto";
import { Member } from "../member.ts";
import type { Row } from "../platform/sqlite.ts";
import type { CallName, UserDevice } from "../service/door.ts";
import { type Attempt, isOf, positionOfHeader } from "./book.ts";
import { deviceOf, digestOf, type IssuedRow, isOfDevice, spansDuring } from "./rows.ts";

/** A request that lost so many races against others of its user device is told to come back. */
const MAX_LOST_RACES = 5;

const POSSIBLE_REASONS: ReadonlySet<string> = new Set([
  ...["UNKNOWN_BADGE", "INVALID_CREDENTIALS", "NUMBERS_EXHAUSTED", "UNAVAILABLE", "INTERNAL_ERROR"],
  ...["CLAIMED_INVITATION", "EXPIRED_INVITATION", "REVOKED_INVITATION", "UNKNOWN_INVITATION", "INVALID_PROOF"],
  ...["SUSPENDED_BADGE", "REVOKED_BADGE", "EXPIRED_BADGE", "BLOCKED_USER", "ENDED_BADGE", "INVALID_IDEMPOTENCYKEY"],
]);

interface Claims {
  sub?: unknown;
  aud?: unknown;
  cnf?: { jwk: { x: string } };
}

/**
 * Holds every response against what D1 had while it was asked for; that D1 itself keeps the promises is what `rows.ts` and
 * `life.ts` look at. So a number belongs to one, because its row does, and each response tells of its caller's own row.
 * After a restoration of D1, what was told before it is excused.
 */
export class Told extends Member {
  /** Numbers that were answered with 201. */
  readonly #created = new Set<number>();
  readonly #publicKeys = new Map<number, string>();

  check(attempt: Attempt<CallName>, what: string): void {
    const { life, credentials } = this.world;
    this.#checkAvailability(attempt, what);
    if ("secret" in attempt.request) credentials.check(attempt.request.secret, attempt);
    if (isOf(attempt, "badge")) this.#checkBadge(attempt);
    if (isOf(attempt, "sign")) this.#checkSignature(attempt);
    if (isOf(attempt, "invite")) this.#checkInvite(attempt);
    if (isOf(attempt, "revoke") && !this.world.isRestored(attempt.request.applicationId)) this.#checkRevoke(attempt);
    if (isOf(attempt, "step")) life.checkStep(attempt);
    if (isOf(attempt, "rebind")) life.checkRebind(attempt);
    if (isOf(attempt, "block")) life.checkBlock(attempt);
  }

  /** D1 was restored: a number that is written again is answered with 201 again, and comes with the key of that time. */
  restored(): void {
    this.#created.clear();
    this.#publicKeys.clear();
  }

  /** Nobody is turned away without need (contract section 6). */
  #checkAvailability(attempt: Attempt<CallName>, what: string): void {
    const { verdict, faults, book, plan, isRestored } = this.world;
    const { request, outcome, struckBefore } = attempt;
    const hasStruck = faults.struck > struckBefore;
    verdict.expect(outcome?.kind !== "lost" || hasStruck, "a request is answered", what);
    if (outcome?.kind !== "refused") return;
    const { reason, fault } = outcome;
    verdict.expect(reason !== "INTERNAL_ERROR", "no request ends in 500", what, explain(fault));
    const rivals = isOf(attempt, "badge")
      ? book.attemptsOf(attempt.request).filter((other) => other !== attempt && other.to >= attempt.from)
      : [];
    const isExcused = reason !== "UNAVAILABLE" || hasStruck || rivals.length >= MAX_LOST_RACES;
    verdict.expect(isExcused, "503 only where the platform failed", what);
    // An invitation whose end comes before its request reaches an isolate, by the clock of that one.
    const isLate = (time: number | null) => (time ?? Infinity) <= attempt.to + plan.clockErrorMilliseconds;
    const terms = isOf(attempt, "invite") ? attempt.request : { expiresAtTime: null, badgeExpiresAtTime: null };
    const isPossibleReason =
      POSSIBLE_REASONS.has(reason) ||
      (reason === "INVALID_EXPIRESAT" && isLate(terms.expiresAtTime)) ||
      (reason === "INVALID_BADGEEXPIRESAT" && isLate(terms.badgeExpiresAtTime)) ||
      // Only after a restoration of its own D1 does a reader of the feed have to start again.
      (reason === "EXPIRED_CURSOR" && isRestored(request.applicationId));
    verdict.expect(isPossibleReason, "a request is refused for a documented reason", what, reason);
    // After a restoration the object keeps numbers for those whom D1 has forgotten.
    if (reason !== "NUMBERS_EXHAUSTED" || isRestored(request.applicationId)) return;
    const application = plan.applications.find(({ id }) => id === request.applicationId);
    const isPossible = book.demandOf(request.applicationId) >= (application?.numbersAtFirst ?? 0);
    verdict.expect(isPossible, "numbers run out only when all were asked for", what);
  }

  #checkBadge(attempt: Attempt<"badge">): void {
    const { life, book, rows, verdict, bindings, isRestored } = this.world;
    const { request, outcome, from, to } = attempt;
    life.checkBadge(attempt);
    if (request.token !== null && !isRestored(request.applicationId)) this.#checkClaim(attempt, request.token);
    const own = this.#rowsOf(request).filter(({ userId }) => userId === request.userId);
    bindings.checkRefusal(attempt, own);
    if (outcome?.kind !== "granted") return;
    const { kind, number } = outcome.granted;
    const row = rows.issued.get(number);
    const since = book.acceptedSince(attempt);
    const bookmarkedAt = this.#checkBookmark(attempt);
    const isTheirs = row?.userId === request.userId && isOfDevice(row, request);
    verdict.expect(isTheirs, "a number belongs to the user device that it was issued to", request, row);
    if (!row) return;
    bindings.checkLogin(attempt, row, kind === "created");
    // A claim may have superseded it meanwhile.
    const isSuperseded = spansDuring(row, from, to).some(({ isRetired }) => isRetired);
    const isCurrent = rows.wasCurrent(row, since, to) || isSuperseded;
    verdict.expect(isCurrent, "a login makes its badge the device's current one", request, row);
    const isKnown = rows.wasCurrent(row, since, Math.min(bookmarkedAt, to)) || isSuperseded;
    verdict.expect(isKnown, "a login's bookmark is as new as what it did", request, outcome, row);
    const issuedAt = row.spans[0]?.from ?? Infinity;
    if (kind === "created") {
      this.#publicKeys.set(number, outcome.granted.publicKey);
      const isNew = issuedAt >= from && !this.#created.has(number);
      verdict.expect(isNew, "a badge is answered with 201 once, when it is issued", request, row);
      this.#created.add(number);
    } else {
      const others = book.attemptsOf(request).filter((other) => other !== attempt);
      const isIssuedBefore = others.some((other) => other.from <= issuedAt && issuedAt <= other.to);
      verdict.expect(
        isRestored(request.applicationId) || isIssuedBefore,
        "a badge is answered with 201 before it is answered with 200",
        request,
        row,
      );
    }
  }

  /** A signature is of the device's current badge, and verifies with the key that came with it (contract sections 1, 3). */
  #checkSignature(attempt: Attempt<"sign">): void {
    const { book, verdict, life, rows, bindings } = this.world;
    const { request, outcome, from, to } = attempt;
    const since = outcome?.kind === "granted" ? book.acceptedSince(attempt) : from;
    const { applicationId, udid, badgeNumber, key } = request;
    const isAsked = ({ number }: IssuedRow) => badgeNumber === null || badgeNumber === number;
    const wasThere = ({ spans: [first] }: IssuedRow) => (first?.from ?? Infinity) < since;
    const users = book.attemptsOfApplication(applicationId).filter((badge) => badge.request.udid === udid);
    const claims = outcome?.kind === "granted" ? this.#verify(outcome.granted) : null;
    life.checkSignature(attempt, claims && Number(claims.sub), new Set(users.map((badge) => badge.request.userId)));
    const own = this.#rowsOf(request);
    // With a key, those that are bound to it come first (contract section 15).
    const isOfKey = (row: IssuedRow) =>
      spansDuring(row, since, to).every((span) => span.key === key && !span.isRetired);
    const hasBound = own.some((row) => wasThere(row) && isOfKey(row));
    const isChosen = key !== null && hasBound && badgeNumber === null;
    bindings.checkRefusal(attempt, isChosen ? [] : own.filter(isAsked));
    const isUnknown = outcome?.kind === "refused" && outcome.reason === "UNKNOWN_BADGE";
    const hasBadge = own.some((row) => isAsked(row) && wasThere(row));
    verdict.expect(!isUnknown || !hasBadge, "a device that was answered a badge can sign", udid);
    if (claims === null) return;
    this.#checkBookmark(attempt);
    verdict.expect(claims.aud === applicationId, "a signature names its application", claims.aud);
    const row = rows.issued.get(Number(claims.sub));
    const isTheirs = row !== undefined && isOfDevice(row, request) && isAsked(row);
    verdict.expect(isTheirs, "a device signs with a badge of its own, the one that it names", request, claims.sub, own);
    if (!row) return;
    bindings.checkSignature(attempt, row, claims.cnf?.jwk.x ?? null);
    const isFirst = !hasBound || spansDuring(row, since, to).some((span) => span.key === key);
    const isCurrent = badgeNumber !== null || (isFirst && rows.wasCurrent(row, since, to, key));
    verdict.expect(isCurrent, "a device signs with the badge that it was answered last", request, row, own);
  }

  /** @returns when D1 was at the bookmark of the response, in milliseconds */
  #checkBookmark({ request, outcome }: Attempt<"badge" | "sign">): number {
    const { applicationId } = request;
    const { copies } = this.world.d1.of(applicationId);
    const told = outcome?.kind === "granted" ? positionOfHeader(applicationId, outcome.bookmark) : null;
    const sent = positionOfHeader(applicationId, request.bookmark) ?? 0;
    const isForged = sent > copies.position;
    const isKept = told !== null && (isForged || (told <= copies.position && told >= sent));
    const invariant = "a badge call is answered with a bookmark, which is not older than its own";
    this.world.verdict.expect(isKept, invariant, request, outcome);
    return copies.since(told ?? 0);
  }

  #rowsOf(device: Omit<UserDevice, "userId">): IssuedRow[] {
    return [...this.world.rows.issued.values()].filter((row) => isOfDevice(row, device));
  }

  #verify(jws: string): Claims {
    const [header = "", payload = "", signature = ""] = jws.split(".");
    const claims: Claims = JSON.parse(Buffer.from(payload, "base64url").toString());
    const spki = this.#publicKeys.get(Number(claims.sub));
    if (spki === undefined) return claims;
    const key = createPublicKey({ key: Buffer.from(spki, "base64"), type: "spki", format: "der" });
    const bytes = Buffer.from(`${header}.${payload}`);
    const isValid = verify("sha256", bytes, { key, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url"));
    this.world.verdict.expect(isValid, "a signature verifies with the badge's public key", claims.sub);
    return claims;
  }

  #checkInvite(attempt: Attempt<"invite">): void {
    const { book, verdict, isRestored } = this.world;
    const { request, outcome } = attempt;
    const invariant = "one Idempotency-Key and one request have one invitation";
    verdict.expect(book.isIdempotent(attempt), invariant, request, outcome);
    if (outcome?.kind !== "granted") return;
    const { id: token, number } = outcome.granted;
    const isSame = book.noteInvitation(request.applicationId, token, number);
    const stored = this.#invitation(request.applicationId, token);
    const isStored = stored?.number === number && stored.expires_at === new Date(request.expiresAtTime).toISOString();
    verdict.expect(
      isRestored(request.applicationId) || (isSame && isStored),
      "an invitation is as it was asked for, with its number",
      request,
      stored,
    );
  }

  #invitation(applicationId: string, token: string): Row | undefined {
    const sql = "SELECT * FROM invitation WHERE digest = ? AND application_id = ?";
    return this.world.d1.look(sql, digestOf(token), applicationId)[0];
  }

  #checkClaim(attempt: Attempt<"badge">, token: string): void {
    const { plan, verdict } = this.world;
    const { request, outcome, from } = attempt;
    const { applicationId, udid, userId } = request;
    const invitation = this.#invitation(applicationId, token);
    if (!invitation) {
      this.#expectUnknown(attempt);
      return;
    }
    const isTheirs = invitation.claim_user_id === userId && invitation.claim_device === deviceOf(applicationId, udid);
    const isOwnClaim = invitation.state === "claimed" && isTheirs;
    if (outcome?.kind === "refused") this.#checkEnd(outcome.reason, invitation, isOwnClaim);
    if (outcome?.kind !== "granted") return;
    const { kind, number } = outcome.granted;
    // Another invitation that the user device claimed later may have replaced it.
    const isReserved = invitation.number === number || kind === "existing";
    verdict.expect(
      isReserved && isOwnClaim,
      "a claim is answered with the number that was reserved",
      request,
      outcome,
      invitation,
    );
    // Two clocks may differ by twice the error of one.
    const inTime = Number(invitation.expires_at_time) > from - 2 * plan.clockErrorMilliseconds;
    verdict.expect(kind === "existing" || inTime, "nobody claims an invitation past its time", request);
  }

  #checkRevoke(attempt: Attempt<"revoke">): void {
    const { request, outcome } = attempt;
    const { applicationId, token, secret, udid } = request;
    const invitation = this.#invitation(applicationId, token);
    // The server is the creator of every invitation.
    if (!invitation || (secret === null && udid !== "server")) {
      this.#expectUnknown(attempt);
      return;
    }
    if (outcome?.kind === "refused") this.#checkEnd(outcome.reason, invitation, false);
    if (outcome?.kind !== "granted") return;
    const { number, expiresAt, revokedAt } = outcome.granted;
    const isSame =
      invitation.state === "revoked" &&
      invitation.number === number &&
      invitation.expires_at === expiresAt &&
      invitation.ended_at === revokedAt;
    this.world.verdict.expect(isSame, "a revoked invitation is answered as it was created", outcome, invitation);
  }

  #expectUnknown({ request, outcome }: Attempt<"badge" | "revoke">): void {
    const refusals = ["UNKNOWN_INVITATION", "UNAVAILABLE", "INVALID_PROOF"];
    const isToldUnknown = outcome?.kind === "refused" && refusals.includes(outcome.reason);
    const isKept = isToldUnknown || outcome?.kind === "lost";
    this.world.verdict.expect(isKept, "nobody uses an invitation of somebody else", request, outcome);
  }

  /** An invitation ends once, and every response tells of that end (contract section 5). */
  #checkEnd(reason: string, invitation: Row, isOwnClaim: boolean): void {
    const state = /^(CLAIMED|REVOKED|EXPIRED)_INVITATION$/.exec(reason)?.[1]?.toLowerCase();
    const isTrue = state === undefined || (invitation.state === state && !isOwnClaim);
    const isKept = isTrue && !["UNKNOWN_INVITATION", "NUMBERS_EXHAUSTED", "UNKNOWN_BADGE"].includes(reason);
    this.world.verdict.expect(isKept, "an invitation is refused for a reason that is true", reason, invitation);
  }
}

function explain(fault: unknown): string {
  if (!(fault instanceof Error)) return String(fault);
  return `${fault.stack}${fault.cause === undefined ? "" : ` < ${explain(fault.cause)}`}`;
}
