import { inspect } from "node:util";
import type { ErrorCode } from "../../../../src/shared/error-table.ts";
import type { CallName } from "../service/door.ts";
import type { World } from "../world.ts";
import { type Attempt, isOf } from "./book.ts";
import { isClaimOf, type Span } from "./history.ts";

type IsTrue = (world: World, attempt: Attempt<CallName>) => boolean;

const STATE = "a device is refused for a state that its badge has";
const INVITATION = "an invitation is refused for a reason that is true";
const END = "an end is refused when it is over";

/** When a refusal is true, and the promise that is broken if it is not. Nobody is refused for another reason. */
const REASONS: { readonly [Code in ErrorCode]?: readonly [promise: string, isTrue: IsTrue] } = {
  UNAVAILABLE: ["503 only where the platform failed", hasMetFault],
  NUMBERS_EXHAUSTED: ["numbers run out only when all were asked for", mayBeExhausted],
  EXPIRED_CURSOR: [
    "cursors survive restorations",
    ({ replica }, call) => replica.hasNewEpoch(call.request.applicationId),
  ],
  INVALID_CREDENTIALS: ["a live secret authenticates", isWithoutSecret],
  INVALID_PROOF: ["whoever has a badge's key may use it", ({ bindings }, attempt) => bindings.mayRefuse(attempt)],
  INVALID_USERTOKEN: ["whoever has logged in is let in", isOfAnotherUser],
  SUSPENDED_BADGE: [STATE, hasBadgeIn("suspended")],
  // One that was replaced while the call was under way is told as revoked.
  REVOKED_BADGE: [STATE, hasBadgeIn("revoked", "replaced")],
  EXPIRED_BADGE: [STATE, hasBadgeIn("expired")],
  BLOCKED_USER: ["only a blocked user is told so", isBlocked],
  ENDED_BADGE: ["only an ended badge refuses a step", hasEnded],
  UNKNOWN_BADGE: ["an issued badge is known", hasNoBadge],
  WRONG_USER: [INVITATION, isInvitedAsAnother],
  CLAIMED_INVITATION: [INVITATION, hasInvitationIn("claimed")],
  REVOKED_INVITATION: [INVITATION, hasInvitationIn("revoked")],
  EXPIRED_INVITATION: [INVITATION, hasInvitationIn("expired")],
  UNKNOWN_INVITATION: [INVITATION, (...call) => isNotTheirs(...call) || isWhileLacking(...call)],
  INVALID_EXPIRESAT: [END, isLate("expiresAtTime")],
  INVALID_BADGEEXPIRESAT: [END, isLate("badgeExpiresAtTime")],
  INVALID_IDEMPOTENCYKEY: ["one Idempotency-Key and one request have one invitation", hasOtherRequest],
};

/** Nobody is turned away without need (contract section 6). */
export function checkRefusal(world: World, attempt: Attempt<CallName>, what: string): void {
  const { outcome, request } = attempt;
  if (outcome?.kind !== "refused") return;
  const [promise, isTrue] = REASONS[outcome.reason] ?? ["a request is refused for a documented reason", () => false];
  const isKept = isTrue(world, attempt);
  world.verdict.expect(isKept, promise, what, outcome.reason, request, inspect(outcome.fault));
}

/** Whether no such invitation is there, for this caller. The server creates them all. */
export function isNotTheirs(world: World, attempt: Attempt<CallName>): boolean {
  const { request } = attempt;
  if (!("token" in request) || request.token === null) return false;
  const isOfAnother = isOf(attempt, "revoke") && attempt.request.secret === null && attempt.request.udid !== "server";
  return isOfAnother || world.history.invitation(request.applicationId, request.token) === undefined;
}

/** Whether the call names a user whose token it does not have, though users are verified. */
export function isOfAnotherUser({ plan }: World, attempt: Attempt<CallName>): boolean {
  if (!isOf(attempt, "badge")) return false;
  const { applicationId, user, userId } = attempt.request;
  return user !== userId && plan.applications.some(({ id, verifiesUsers }) => id === applicationId && verifiesUsers);
}

function hasMetFault(world: World, attempt: Attempt<CallName>): boolean {
  const { administrator, faults, replica, plan } = world;
  const { applicationId } = attempt.request;
  // Whether a call began before the copy was done is decided by two clocks.
  const began = attempt.from - 2 * plan.clockErrorMilliseconds;
  if (replica.wasWithoutRows(applicationId, began, attempt.to) || replica.mayBeClosed(applicationId)) return true;
  // Its last batch may have opened D1 late: the allocator notices when it repeats the command.
  if (administrator.isRepublishing(applicationId)) return true;
  return faults.struck > attempt.struckBefore || isWhileLacking(world, attempt);
}

function mayBeExhausted({ book, plan, planter }: World, { request }: Attempt<CallName>): boolean {
  const { applicationId } = request;
  const isReserved = "token" in request && request.token !== null;
  const application = plan.applications.find(({ id }) => id === applicationId);
  return (
    !isReserved && book.demandOf(applicationId) >= (application?.numbersAtFirst ?? 0) - planter.countOf(applicationId)
  );
}

/** Whether D1 lacked something at that time, which reads may show until it is there again. */
function isWhileLacking({ replica }: World, { request, from, to }: Attempt<CallName>): boolean {
  return replica.lacked(request.applicationId, from, to);
}

function isWithoutSecret({ history, plan }: World, { request, from, to }: Attempt<CallName>): boolean {
  if (!("secret" in request)) return false;
  // An application with a user issuer always requires the secret (contract section 5).
  const { verifiesUsers } = plan.applications.find(({ id }) => id === request.applicationId) ?? {};
  if (request.secret === null) return verifiesUsers === true;
  const spans = history.during("application_secret", { sealed: request.secret }, from, to);
  const isLive = spans.some((span) => span.from < from) && spans.some((span) => span.to > to);
  return !isLive;
}

function hasBadgeIn(...states: string[]): IsTrue {
  return (world, attempt) => {
    if (!isOf(attempt, "badge") && !isOf(attempt, "sign")) return false;
    return wasIn(states, world, attempt, (from, to) => world.history.ofDevice(attempt.request, from, to));
  };
}

/** Whether callers may have seen one of some badges in one of these states. */
function wasIn(
  states: string[],
  { history, replica }: World,
  attempt: Attempt<CallName>,
  badges: (from: number, to: number) => Span[],
): boolean {
  const { request, to } = attempt;
  const from = replica.decidedSince(request.applicationId, attempt.from, to);
  const wasFolded = history.wasFolded(request.applicationId, from, to);
  return wasFolded || history.statesOf(badges(from, to), { from, to }).some((state) => states.includes(state));
}
function isBlocked({ history, replica }: World, { request, from, to }: Attempt<CallName>): boolean {
  if (!("userId" in request) || request.userId === null) return false;
  const { applicationId } = request;
  return history.wasBlocked(applicationId, request.userId, replica.decidedSince(applicationId, from, to), to);
}

/** An expired badge refuses steps, but may be rebound: its end may be moved ahead. */
function hasEnded(world: World, attempt: Attempt<CallName>): boolean {
  const { request } = attempt;
  if (!("number" in request)) return false;
  const ended = isOf(attempt, "step") ? ["revoked", "replaced", "expired"] : ["revoked", "replaced"];
  return wasIn(ended, world, attempt, (from, to) =>
    world.history.during("badge", { number: request.number }, from, to),
  );
}
function hasNoBadge(world: World, attempt: Attempt<CallName>): boolean {
  const { history } = world;
  const { request, from } = attempt;
  if (isWhileLacking(world, attempt)) return true;
  const isEarlier = (span: { from: number }) => span.from < from;
  if ("badgeNumber" in request) {
    const { badgeNumber } = request;
    const asked = history.ofDevice(request).filter(({ row }) => badgeNumber === null || row.number === badgeNumber);
    return !asked.some(isEarlier);
  }
  if (!("number" in request)) return false;
  return !history.during("badge", { number: request.number, application_id: request.applicationId }).some(isEarlier);
}

/** An invitation ends once, and every response tells of that end (contract section 5). */
function hasInvitationIn(state: string): IsTrue {
  return (world, attempt) => {
    const { request } = attempt;
    if (!("token" in request) || request.token === null) return false;
    const invitation = world.history.invitation(request.applicationId, request.token);
    const isOwn =
      invitation !== undefined &&
      isOf(attempt, "badge") &&
      isClaimOf(invitation, attempt.request) &&
      !world.erased.has(request.applicationId, attempt.request.userId);
    return isWhileLacking(world, attempt) || (invitation?.state === state && !isOwn);
  };
}

/** Whether the invitation is for another user. */
function isInvitedAsAnother(world: World, attempt: Attempt<CallName>): boolean {
  if (!isOf(attempt, "badge") || attempt.request.token === null) return false;
  const { applicationId, token, userId } = attempt.request;
  const isOther = world.history.invitation(applicationId, token)?.user_id !== userId;
  return isOther || world.erased.has(applicationId, userId) || isWhileLacking(world, attempt);
}

/** By the clock of the isolate that it reaches. */
function isLate(end: "expiresAtTime" | "badgeExpiresAtTime"): IsTrue {
  return ({ plan }, { request, to }) =>
    "expiresAtTime" in request && (request[end] ?? Infinity) <= to + plan.clockErrorMilliseconds;
}

function hasOtherRequest({ book, erased }: World, { request }: Attempt<CallName>): boolean {
  if (!("idempotencyKey" in request)) return false;
  const { applicationId, idempotencyKey, expiresAtTime, badgeExpiresAtTime, userId } = request;
  if (userId !== null && erased.has(applicationId, userId)) return true;
  const isOther = (other: typeof request) =>
    other.expiresAtTime !== expiresAtTime || other.badgeExpiresAtTime !== badgeExpiresAtTime || other.userId !== userId;
  return book.of("invite", { applicationId, idempotencyKey }).some((attempt) => isOther(attempt.request));
}
