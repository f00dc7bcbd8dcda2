import { Member } from "../member.ts";
import type { Change } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";
import type { CallName } from "../service/door.ts";
import { type Attempt, type Granted, isOf } from "./book.ts";
import { hashUdid, isIssued, type Span } from "./history.ts";

/** How old settings and secrets may be that a call is accepted by, in milliseconds (contract section 9, and clocks differ). */
export const STALE_MILLISECONDS = 31_000;
/** How old the settings may be that a device is refused by, in milliseconds. */
const STALE_REFUSAL_MILLISECONDS = 1000;
/** How long `rebind` lets another key take a badge (contract section 15). */
const REBIND_MILLISECONDS = 24 * 3_600_000;

/** Clocks differ: what may be thought is later than what must be. */
const isAhead = (until: unknown, time: number): boolean => until !== null && Number(until) > time;

/** Which key may use which badge, and when a badge may be bound (contract section 15). */
export class Bindings extends Member {
  readonly #clockError = this.world.plan.clockErrorMilliseconds;
  /** When what D1 does now was decided, in milliseconds. */
  #decidedAt = 0;

  see(changes: readonly Change[]): void {
    this.#decidedAt = this.world.replica.loggedAt(changes);
    for (const { table, before, after } of changes) {
      if (table !== "badge" || !isIssued(after)) continue;
      if (!isIssued(before)) this.#checkFirstKey(after, changes);
      else if (before.key_thumbprint !== after.key_thumbprint) this.#checkBinding(before, after);
      else if (before.rebind_until !== after.rebind_until) this.#checkWindow(before, after);
    }
  }

  /** @param spans of the badge that the login was granted */
  checkLogin(attempt: Granted<"badge">, spans: readonly Span[]): void {
    const { verdict } = this.world;
    const { request, outcome, from, to } = attempt;
    const isOfKey = spans[0]?.row.key_thumbprint === request.key;
    const isUsed = outcome.granted.kind === "created" ? isOfKey : this.#isUsable(attempt, spans);
    const promise = "nobody gets a bound badge without its key, nor an unbound one where keys are required";
    // A login after it in its entry may have bound it to another key.
    const wasBoundAtOnce =
      this.world.history.wasFolded(request.applicationId, from, to) &&
      outcome.granted.keyThumbprint === request.key &&
      (request.key !== null || this.#mayBeUnbound(request.applicationId, from, to));
    verdict.expect(isUsed || wasBoundAtOnce, promise, request, spans);
    const settings = this.#settings(request.applicationId, from - STALE_MILLISECONDS, to);
    const binds =
      request.key !== null && settings.every(({ bind_until: until }) => isAhead(until, to + this.#clockError));
    // A restored D1 may lack it.
    const since = this.world.replica.decidedSince(request.applicationId, from, to);
    const isBound = spans.some((span) => span.to >= since && span.row.key_thumbprint !== null);
    verdict.expect(!binds || isBound, "while first proofs bind, a login with one binds its badge", request, spans);
  }

  /**
   * A signature that was granted. A door that challenges lets in whoever holds the key that the signature names, and others
   * see every signature.
   *
   * @param spans of the badge that signs
   * @param named by the signature; null: none
   */
  checkSignature(attempt: Granted<"sign">, spans: readonly Span[], named: string | null): void {
    const { request } = attempt;
    const isBound = spans.some(({ row }) => row.key_thumbprint === named);
    const invariant = "a signature names the key of its badge, and nobody else passes a door that challenges";
    this.world.verdict.expect(isBound && (named === null || named === request.key), invariant, request, spans, named);
    const usable = "nobody signs with a bound badge without its key, nor with an unbound one where keys are required";
    this.world.verdict.expect(this.#isUsable(attempt, spans), usable, request, spans);
  }

  mayRefuse(attempt: Attempt<CallName>): boolean {
    if (!isOf(attempt, "badge") && !isOf(attempt, "sign")) return false;
    const { history, replica } = this.world;
    const { request, to } = attempt;
    const { applicationId, key } = request;
    const from = replica.decidedSince(applicationId, attempt.from, to);
    const settings = this.#settings(applicationId, from - STALE_REFUSAL_MILLISECONDS, to);
    const isRequired = settings.some((row) => row.require_proof === 1);
    const named = "badgeNumber" in request ? request.badgeNumber : null;
    const isChosen = isOf(attempt, "sign") && key !== null && named === null && history.hasBadgeOf(request, from, to);
    const mayBind = ({ row }: Span) =>
      isOf(attempt, "badge") && key !== null && isAhead(row.rebind_until, to + this.#clockError);
    const isLocked = history
      .ofDevice(request, from, to)
      .filter(({ row }) => (named === null ? row.superseded_at === null : row.number === named))
      .filter((span) => !mayBind(span))
      .some(({ row }) => (row.key_thumbprint === null ? isRequired : row.key_thumbprint !== key));
    // A restored D1 may lack the badge of this key that would be chosen.
    const isThere = isChosen && !replica.lacked(applicationId, from, to);
    return (isRequired && key === null) || (isLocked && !isThere);
  }

  #isUsable({ request, from, to }: Attempt<"badge"> | Attempt<"sign">, spans: readonly Span[]): boolean {
    const mayBeUnbound = this.#mayBeUnbound(request.applicationId, from, to);
    return spans.some(({ row: { key_thumbprint: key } }) => (key === null ? mayBeUnbound : key === request.key));
  }

  /** A badge is issued: bound to the key of a call that asks for it; in place of a bound one by its key or by the server. */
  #checkFirstKey(badge: Row, changes: readonly Change[]): void {
    const { verdict, d1, timeline } = this.world;
    const askers = this.#askers(badge);
    const isUnbound = badge.key_thumbprint === null;
    const mayAsk = ({ request: { applicationId }, from }: Attempt<"badge">) =>
      !isUnbound || this.#mayBeUnbound(applicationId, from, timeline.now);
    verdict.expect(askers.some(mayAsk), "a badge is bound to the key of the call that creates it", badge);
    const isOfThis = (row: Row | null) =>
      ["application_id", "device", "user_id"].every((column) => row?.[column] === badge[column]);
    const own = changes.filter(({ table, after }) => table === "badge" && isOfThis(after));
    const replaced = own.find(
      ({ before, after }) => isOfThis(before) && before?.superseded_at === null && after?.superseded_at !== null,
    )?.before;
    if (!replaced || replaced.key_thumbprint === null || replaced.key_thumbprint === badge.key_thumbprint) return;
    const isOpen = !isUnbound && askers.some(({ from }) => isAhead(replaced.rebind_until, from - this.#clockError));
    // In the same entry the device may have claimed more than one invitation.
    const isOfServer = own.some(({ before, after }) => {
      const claimed = isIssued(before) ? null : (after?.invitation ?? null);
      return d1.look("SELECT with_secret FROM invitation WHERE digest = ?", claimed)[0]?.with_secret === 1;
    });
    const isAllowed = isOfServer || isOpen;
    verdict.expect(isAllowed, "a bound badge is replaced by its key, or by the server", replaced, "by", badge);
  }

  #checkBinding(before: Row, after: Row): void {
    const { verdict, timeline } = this.world;
    const askers = this.#askers(after);
    const since = this.#decidedAt - this.#clockError;
    const settings = this.#settings(after.application_id, since - STALE_MILLISECONDS, timeline.now);
    const isFirst = before.key_thumbprint === null && settings.some(({ bind_until }) => isAhead(bind_until, since));
    // The server may have asked for it in the same entry.
    const isJustOpened = this.#isRebindAsked(after);
    const isAllowed = isFirst || isJustOpened || isAhead(before.rebind_until, since);
    const isAsked = askers.length > 0 && after.key_thumbprint !== null;
    const invariant = "a badge is bound to another key only while it may be, by a login with that key";
    verdict.expect(isAllowed && isAsked, invariant, before, "became", after);
    const isOver = after.rebind_until === null || isJustOpened;
    verdict.expect(isOver, "only one key takes the place of another", before, "became", after);
  }

  /** In the same entry the badge may end. */
  #checkWindow(before: Row, badge: Row): void {
    const { verdict, timeline } = this.world;
    const isAsked = this.#isRebindAsked(badge);
    const isLive = before.state === "active" || before.state === "suspended";
    const latest = timeline.now + REBIND_MILLISECONDS + this.#clockError;
    const isKept = isAsked && isLive && badge.rebind_until !== null && Number(badge.rebind_until) <= latest;
    verdict.expect(isKept, "a badge that lives may be rebound for 24 hours, when its server asked for it", badge);
  }

  #isRebindAsked({ number }: Row): boolean {
    return this.world.book.since("rebind", { number: Number(number) }, this.#decidedAt).length > 0;
  }

  /** Calls for the badge, with its key, that were under way when the entry was decided, or since. */
  #askers({ application_id, device, user_id, key_thumbprint: key }: Row): Attempt<"badge">[] {
    const wanted = { key: key === null ? null : String(key), userId: String(user_id) };
    return this.world.book
      .since("badge", wanted, this.#decidedAt)
      .filter(({ request }) => request.applicationId === application_id && hashUdid(request) === device);
  }

  /** What the application demanded of devices at some moment of a time. */
  #settings(id: Row[string] | undefined, from: number, to: number): Row[] {
    return this.world.history.during("application", { id: id ?? null }, from, to).map(({ row }) => row);
  }

  #mayBeUnbound(applicationId: string, from: number, to: number): boolean {
    return this.#settings(applicationId, from - STALE_MILLISECONDS, to).some((row) => row.require_proof === 0);
  }
}
