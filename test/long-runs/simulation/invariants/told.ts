import { createPublicKey, verify } from "node:crypto";
import type { ApplicationId } from "../../../../src/shared/identifiers.ts";
import { Member } from "../member.ts";
import { signingPair } from "../platform/globals.ts";
import type { CallName } from "../service/door.ts";
import { STALE_MILLISECONDS } from "./bindings.ts";
import { type Attempt, type Granted, isGranted, positionOfHeader, userDeviceOf } from "./book.ts";
import { isClaimOf, type Span } from "./history.ts";
import { checkRefusal, isNotTheirs, isOfAnotherUser } from "./refusals.ts";

interface Claims {
  sub?: unknown;
  aud?: unknown;
  cnf?: { jwk: { x: string } };
}

const STATE_OF_STEP = { suspend: "suspended", resume: "active", revoke: "revoked" } as const;

/**
 * Holds every response against what D1 had while it was asked for; that D1 itself keeps the promises is what `rows.ts` looks
 * at. So a number belongs to one, because its row does, and each response tells of its caller's own row. While D1
 * lacks what it forgot in a restoration, reads may show the older state.
 */
export class Told extends Member {
  check(attempt: Attempt<CallName>, what: string): void {
    const { verdict, faults, replica, history } = this.world;
    const { request, outcome, from, to } = attempt;
    const hasStruck = faults.struck > attempt.struckBefore;
    verdict.expect(outcome?.kind !== "lost" || hasStruck, "a request is answered", what);
    checkRefusal(this.world, attempt, what);
    if (outcome?.kind === "granted" && "secret" in request && request.secret !== null) {
      const secrets = history.during("application_secret", { sealed: request.secret }, from - STALE_MILLISECONDS, to);
      verdict.expect(secrets.length > 0, "a secret that does not live denies", request);
    }
    if (isGranted(attempt, "badge")) this.#checkBadge(attempt);
    if (isGranted(attempt, "sign")) this.#checkSignature(attempt);
    if (isGranted(attempt, "step") || isGranted(attempt, "rebind")) this.#checkStep(attempt);
    if (replica.lacked(request.applicationId, from, to)) return;
    if (isGranted(attempt, "block")) this.#checkBlock(attempt);
    if (isGranted(attempt, "erase")) this.world.erased.checkTold(attempt);
    if (isGranted(attempt, "invite")) this.#checkInvite(attempt);
    if (isGranted(attempt, "revoke")) this.#checkRevoke(attempt);
    if (isGranted(attempt, "badge") && attempt.request.token !== null) this.#checkClaim(attempt, attempt.request.token);
  }

  #expect(isKept: boolean, promise: string, attempt: Attempt<CallName>, ...details: unknown[]): void {
    this.world.verdict.expect(isKept, promise, attempt.request, attempt.outcome, ...details);
  }

  #checkBadge(attempt: Granted<"badge">): void {
    const { book, history, bindings, replica } = this.world;
    const { request, outcome, from, to } = attempt;
    const { kind, number } = outcome.granted;
    const invitation = request.token === null ? undefined : history.invitation(request.applicationId, request.token);
    const isVouched = invitation?.with_secret === 1 || replica.lacked(request.applicationId, from, to);
    const isOwn = isVouched || !isOfAnotherUser(this.world, attempt);
    this.#expect(isOwn, "nobody gets a badge in the name of a user who has not logged in", attempt);
    const readFrom = replica.decidedSince(request.applicationId, book.acceptedSince(attempt), to);
    const spans = history.ofDevice(request, readFrom, to).filter(({ row }) => row.number === number);
    this.#expect(spans.length > 0, "a number belongs to the user device that it was issued to", attempt);
    // A claim, and a login after it in its entry, is decided before the badge is there; its end is the invitation's.
    const isNew = spans.every((span) => span.from >= from);
    const states = history.statesOf(spans, attempt, isNew ? from : undefined);
    const wasActive = states.includes("active") || history.wasFolded(request.applicationId, readFrom, to);
    this.#expect(wasActive, "a login is answered only while its badge is active", attempt, spans);
    bindings.checkLogin(attempt, spans);
    // A claim may have superseded it meanwhile. And a republication brings rows in the order of their numbers.
    const mayBeBehind =
      replica.lacked(request.applicationId, from, to) ||
      spans.some((span) => span.to >= from && span.row.superseded_at !== null);
    const bookmarkedAt = Math.min(to, this.#checkBookmark(attempt));
    const isCurrent = mayBeBehind || history.wasCurrent(request, number, readFrom, bookmarkedAt);
    this.#expect(isCurrent, "a login makes its badge the device's current one, as its bookmark shows", attempt, spans);
    if (replica.lacked(request.applicationId, from, to)) return;
    // Whether a call began before a copy was done, and may have been decided before, is said by two clocks.
    const hasTwoClocks = this.world.plan.clockErrorMilliseconds > 0;
    if (hasTwoClocks && replica.wasWithoutRows(request.applicationId, from, to)) return;
    const issuedAt = history.issuedAt(number);
    const userDevice = userDeviceOf(request);
    const isNews = (other: Attempt<"badge">) =>
      isGranted(other, "badge") && other.outcome.granted.kind === "created" && other.outcome.granted.number === number;
    const isTrue =
      kind === "created"
        ? issuedAt >= from && book.of("badge", userDevice).filter(isNews).length === 1
        : book.since("badge", userDevice, issuedAt).some((other) => other !== attempt && other.from <= issuedAt);
    this.#expect(isTrue, "a badge is answered with 201 once, when it is issued", attempt, spans);
    const isKey = kind === "existing" || outcome.granted.publicKey === this.#publicKeyOf(number);
    this.#expect(isKey, "a badge comes with the public key of its signatures", attempt);
  }

  #publicKeyOf(number: number): string {
    // Also while D1 lacks it after a restoration.
    const [issued] = this.world.history.during("badge", { number });
    return signingPair(Number(issued?.row.signing_key_id) - 1).publicKey;
  }

  /** A signature is of the device's current badge, and verifies with the key that came with it (contract sections 1, 3). */
  #checkSignature(attempt: Granted<"sign">): void {
    const { book, history, bindings, replica } = this.world;
    const { request, outcome, to } = attempt;
    const { applicationId, badgeNumber, key } = request;
    const readFrom = replica.decidedSince(applicationId, book.acceptedSince(attempt), to);
    const claims = this.#verify(outcome.granted);
    const number = Number(claims.sub);
    this.#expect(claims.aud === applicationId, "a signature names its application", attempt, claims);
    this.#checkBookmark(attempt);
    const spans = history.ofDevice(request, readFrom, to).filter(({ row }) => row.number === number);
    const isTheirs = spans.length > 0 && (badgeNumber === null || badgeNumber === number);
    this.#expect(isTheirs, "a device signs with a badge of its own, the one that it names", attempt, claims);
    const isActive = history.statesOf(spans, attempt).includes("active");
    this.#expect(isActive, "nothing ended signs", attempt, spans);
    bindings.checkSignature(attempt, spans, claims.cnf?.jwk.x ?? null);
    // With a key, those that are bound to it come first (contract section 15), unless a restored D1 lacks them.
    const isFirst =
      replica.lacked(applicationId, attempt.from, to) ||
      !history.hasBadgeOf(request, readFrom, to) ||
      spans.some(({ row }) => row.key_thumbprint === key);
    const isCurrent = badgeNumber !== null || (isFirst && history.wasCurrent(request, number, readFrom, to, key));
    this.#expect(isCurrent, "a device signs with the badge that it was answered last", attempt, spans);
  }

  #verify(jws: string): Claims {
    const [header = "", payload = "", signature = ""] = jws.split(".");
    const claims: Claims = JSON.parse(Buffer.from(payload, "base64url").toString());
    const spki = Buffer.from(this.#publicKeyOf(Number(claims.sub)), "base64");
    const key = createPublicKey({ key: spki, type: "spki", format: "der" });
    const bytes = Buffer.from(`${header}.${payload}`);
    const isValid = verify("sha256", bytes, { key, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url"));
    this.world.verdict.expect(isValid, "a signature verifies with the badge's public key", claims);
    return claims;
  }

  /** @returns when D1 was at the bookmark of the response, in milliseconds */
  #checkBookmark(attempt: Granted<"badge"> | Granted<"sign">): number {
    const { applicationId, bookmark } = attempt.request;
    const d1 = this.world.d1.of(applicationId);
    const told = positionOfHeader(applicationId, attempt.outcome.bookmark);
    const sent = positionOfHeader(applicationId, bookmark) ?? 0;
    const isForged = sent > d1.position;
    // The allocator's is as old as the application's last change, though others may have moved D1 on.
    const [from, to] = [d1.since(told ?? 0), d1.since(sent)];
    const badges = this.world.history.during("badge", { application_id: applicationId }, from, to);
    const isOlder = badges.some((span) => span.from > from && span.from <= to);
    // While nobody has noticed a restoration, the allocator goes by what D1 had before it.
    const isUnnoticed = this.world.replica.lacked(applicationId, attempt.from, attempt.to);
    const isKept = told !== null && (isForged || isUnnoticed || (told <= d1.position && !isOlder));
    this.#expect(isKept, "a badge call is answered with a bookmark, as new as what its own shows", attempt);
    return d1.since(told ?? 0);
  }

  #checkStep(attempt: Granted<"step"> | Granted<"rebind">): void {
    const { request, outcome, to } = attempt;
    const { state, expiresAt } = outcome.granted;
    const from = this.world.replica.decidedSince(request.applicationId, attempt.from, to);
    const spans = this.world.history.during("badge", { number: request.number }, from, to);
    const states = this.world.history.statesOf(spans, attempt, from);
    const isState = states.includes(state) || this.world.history.wasFolded(request.applicationId, from, to);
    this.#expect(isState, "a step is answered with the state that the badge has", attempt, spans);
    // A step that is decided just before the badge's end is answered after it.
    const isOver = state === "expired" && Date.parse(String(expiresAt)) <= to + this.world.plan.clockErrorMilliseconds;
    this.#expect(hasHappened(), "a step that is granted has happened", attempt, spans);

    // A login with another key may follow in the same entry.
    function isRebound({ from: since, row }: Span, index: number): boolean {
      const before = spans[index - 1]?.row.key_thumbprint;
      return since >= from && (row.rebind_until !== null || (before !== undefined && row.key_thumbprint !== before));
    }

    function hasHappened(): boolean {
      if (!("step" in request)) return spans.some(isRebound);
      const { step } = request;
      if (step.kind !== "reschedule")
        return step.kind === "expire" || step.kind === "rebind" || state === STATE_OF_STEP[step.kind] || isOver;
      return expiresAt === (step.expiresAt == null ? undefined : new Date(step.expiresAt).toISOString());
    }
  }

  /** Once a block is acknowledged, every badge that was there when it was asked for has ended for good. */
  #checkBlock(attempt: Granted<"block">): void {
    const { history, timeline } = this.world;
    const { applicationId, userId } = attempt.request;
    const badges = { application_id: applicationId, user_id: userId };
    const isLive = ({ to, row: { number, state } }: Span) =>
      to > timeline.now && (state === "active" || state === "suspended") && history.issuedAt(number) < attempt.from;
    const live = history.during("badge", badges, timeline.now).filter(isLive);
    this.#expect(live.length === 0, "a block leaves no badge of its user", attempt, live);
  }

  #checkInvite(attempt: Granted<"invite">): void {
    const { request, outcome } = attempt;
    const { id: token, number } = outcome.granted;
    const { secret, udid: _, ...terms } = request;
    const same = terms.idempotencyKey === null ? [] : this.world.book.granted("invite", terms);
    const isOther = (other: Granted<"invite">) =>
      other.outcome.granted.id !== token && (other.request.secret === null) === (secret === null);
    this.#expect(!same.some(isOther), "one Idempotency-Key and one request have one invitation", attempt, same);
    const stored = this.world.history.invitation(request.applicationId, token);
    const isStored = stored?.number === number && stored.expires_at === new Date(request.expiresAtTime).toISOString();
    this.#expect(isStored, "an invitation is as it was asked for, with its number", attempt, stored);
  }

  #checkClaim(attempt: Granted<"badge">, token: string): void {
    const { request, outcome, from } = attempt;
    const { kind, number } = outcome.granted;
    const invitation = this.world.history.invitation(request.applicationId, token);
    // Another invitation that the user device claimed later may have replaced it.
    const isReserved = invitation?.number === number || kind === "existing";
    const isTheirs = invitation !== undefined && isReserved && isClaimOf(invitation, request);
    this.#expect(isTheirs, "a claim is answered with the number that was reserved", attempt, invitation);
    // Two clocks may differ by twice the error of one.
    const inTime = Number(invitation?.expires_at_time) > from - 2 * this.world.plan.clockErrorMilliseconds;
    this.#expect(kind === "existing" || inTime, "nobody claims an invitation past its time", attempt, invitation);
  }

  #checkRevoke(attempt: Granted<"revoke">): void {
    const { request, outcome } = attempt;
    const invitation = this.world.history.invitation(request.applicationId, request.token);
    const { number, expiresAt, revokedAt } = outcome.granted;
    const isSame =
      invitation?.state === "revoked" &&
      invitation.number === number &&
      invitation.expires_at === expiresAt &&
      invitation.ended_at === revokedAt;
    this.#expect(isSame, "a revoked invitation is answered as it was created", attempt, invitation);
    this.#expect(!isNotTheirs(this.world, attempt), "nobody uses an invitation of somebody else", attempt);
  }

  /**
   * All pages of a list (of one user, or null), read one after the other: a badge that exists all the time appears exactly
   * once, whatever comes and goes meanwhile (contract section 4).
   */
  checkWalk(applicationId: ApplicationId, userId: string | null, from: number, numbers: readonly number[]): void {
    const { verdict, timeline, history, replica, plan } = this.world;
    if (replica.lacked(applicationId, from, timeline.now)) return;
    // By the clock of the isolate that lists it.
    const ended = timeline.now + plan.clockErrorMilliseconds;
    const listed = new Set(numbers);
    verdict.expect(listed.size === numbers.length, "no badge appears twice", numbers);
    const values = { application_id: applicationId, ...(userId !== null && { user_id: userId }) };
    const badges = Map.groupBy(history.during("badge", values, from, timeline.now), ({ row }) => Number(row.number));
    for (const [number, spans] of badges) {
      const hasNotEnded = ({ row }: Span) =>
        row.ended_at === null && (row.expires_at === null || Number(row.expires_at) > ended);
      const isOwed = spans.some((span) => span.from < from) && spans.every(hasNotEnded);
      verdict.expect(!isOwed || listed.has(number), "a badge that exists all the time is listed", spans);
    }
    const isLive = (number: number) => badges.get(number)?.some(({ row }) => row.ended_at === null);
    verdict.expect(numbers.every(isLive), "only live badges are listed", numbers);
  }
}
