import { Member } from "../member.ts";
import type { Change } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";
import type { Attempt } from "./book.ts";
import { STALE_MILLISECONDS } from "./credentials.ts";
import { deviceOf, type IssuedRow, type Span, spansDuring } from "./rows.ts";

/** How long `rebind` lets another key take a badge (contract section 15). */
export const REBIND_MILLISECONDS = 24 * 3_600_000;
/** How old the settings may be that a device is refused by, in milliseconds. */
const STALE_REFUSAL_MILLISECONDS = 1000;
/** A write is decided so long before D1 gets it, at most, in milliseconds: D1 calls are tried again for so long. */
const TRYING_MILLISECONDS = 10_000;

/** What an application demands of devices; times are milliseconds. */
export interface ProofSettings {
  requireProof: boolean;
  bindUntil: number | null;
}

/** Clocks differ: what may be thought is later than what must be. */
const isAhead = (until: unknown, time: number): boolean => until !== null && Number(until) > time;

interface Ended {
  from: number;
  to: number;
}

/** Which key may use which badge, and when a badge may be bound (contract section 15). */
export class Bindings extends Member {
  /** By application, oldest first. */
  readonly #settings = new Map<string, (ProofSettings & Ended)[]>();
  readonly #clockError = this.world.plan.clockErrorMilliseconds;

  /** An administrator changes settings. @returns all of them */
  set(applicationId: string, changed: Partial<ProofSettings>): ProofSettings {
    const { now } = this.world.timeline;
    const known = this.#settings.get(applicationId) ?? [];
    const last = known.at(-1);
    if (last) last.to = now;
    const { requireProof = false, bindUntil = null } = { ...last, ...changed };
    this.#settings.set(applicationId, [...known, { requireProof, bindUntil, from: now, to: Infinity }]);
    return { requireProof, bindUntil };
  }

  /** Looks at a transaction of D1. */
  see(changes: readonly Change[], lateMilliseconds: number): void {
    const issued = (row: Row | null): row is Row => row !== null && row.position !== null;
    for (const { table, before, after } of changes) {
      if (table !== "badge" || !issued(after)) continue;
      if (!issued(before)) this.#checkFirstKey(after, changes);
      else if (before.key_thumbprint !== after.key_thumbprint) this.#checkBinding(before, after, lateMilliseconds);
      else if (before.rebind_until !== after.rebind_until) this.#checkWindow(after);
    }
  }

  /** A login that was granted; `isNew`: with 201. */
  checkLogin(attempt: Attempt<"badge">, row: IssuedRow, isNew: boolean): void {
    const { verdict } = this.world;
    const { request, from, to } = attempt;
    const isUsed = isNew ? row.spans[0]?.key === request.key : this.#isUsable(row, attempt);
    verdict.expect(
      isUsed,
      "nobody gets a bound badge without its key, nor an unbound one where keys are required",
      row,
    );
    const settings = this.#during(row.applicationId, from - STALE_MILLISECONDS, to);
    const binds = request.key !== null && settings.every(({ bindUntil }) => isAhead(bindUntil, to + this.#clockError));
    const isBound = spansDuring(row, from, to).some(({ key }) => key !== null);
    verdict.expect(!binds || isBound, "while first proofs bind, a login with one binds its badge", request, row);
  }

  /**
   * A signature that was granted. A door that challenges lets in whoever holds the key that the signature names, and others
   * see every signature.
   *
   * @param named by the signature; null: none
   */
  checkSignature(attempt: Attempt<"sign">, row: IssuedRow, named: string | null): void {
    const { request, to } = attempt;
    const isBound = spansDuring(row, this.world.book.acceptedSince(attempt), to).some(({ key }) => key === named);
    const invariant = "a signature names the key of its badge, and nobody else passes a door that challenges";
    this.world.verdict.expect(isBound && (named === null || named === request.key), invariant, request, row, named);
    const isUsable = this.#isUsable(row, attempt);
    const usable = "nobody signs with a bound badge without its key, nor with an unbound one where keys are required";
    this.world.verdict.expect(isUsable, usable, request, row);
  }

  /** @param rows of the badges that the device asked for */
  checkRefusal({ name, request, outcome, from, to }: Attempt<"badge" | "sign">, rows: readonly IssuedRow[]): void {
    if (outcome?.kind !== "refused" || outcome.reason !== "INVALID_PROOF") return;
    const settings = this.#during(request.applicationId, from - STALE_REFUSAL_MILLISECONDS, to);
    const isRequired = settings.some(({ requireProof }) => requireProof);
    const mayBind = ({ rebindUntil }: Span) =>
      name === "badge" && request.key !== null && isAhead(rebindUntil, to + this.#clockError);
    const isNamed = "badgeNumber" in request && request.badgeNumber !== null;
    const isLocked = rows
      .flatMap((row) => spansDuring(row, from, to))
      .filter((span) => (isNamed || !span.isRetired) && !mayBind(span))
      .some(({ key }) => (key === null ? isRequired : key !== request.key));
    const isWithout = isRequired && request.key === null;
    this.world.verdict.expect(isLocked || isWithout, "whoever has a badge's key may use it", request, rows);
  }

  #isUsable(row: IssuedRow, attempt: Attempt<"badge" | "sign">): boolean {
    const { request, from, to } = attempt;
    const settings = this.#during(row.applicationId, from - STALE_MILLISECONDS, to);
    const mayBeUnbound = settings.some(({ requireProof }) => !requireProof);
    const spans = spansDuring(row, this.world.book.acceptedSince(attempt), to);
    return spans.some(({ key }) => (key === null ? mayBeUnbound : key === request.key));
  }

  /** A badge is issued: bound to the key of a call that asks for it; in place of a bound one by its key or by the server. */
  #checkFirstKey(badge: Row, changes: readonly Change[]): void {
    const { verdict, d1, timeline } = this.world;
    const askers = this.#askers(badge);
    const isUnbound = badge.key_thumbprint === null;
    const mayBeUnbound = askers.some(({ from }) =>
      this.#during(String(badge.application_id), from - STALE_MILLISECONDS, timeline.now).some(
        (set) => !set.requireProof,
      ),
    );
    const isAsked = askers.length > 0 && (!isUnbound || mayBeUnbound);
    verdict.expect(isAsked, "a badge is bound to the key of the call that creates it", badge);
    const isSame = (row: Row | null, column: string) => row?.[column] === badge[column];
    const replaced = changes.find(
      ({ table, before, after }) =>
        ["application_id", "device", "user_id"].every((column) => isSame(before, column)) &&
        table === "badge" &&
        before?.retired_at === null &&
        after?.retired_at !== null &&
        before.key_thumbprint !== null,
    )?.before;
    if (!replaced || isSame(replaced, "key_thumbprint")) return;
    const [invitation] = d1.look("SELECT with_secret FROM invitation WHERE digest = ?", badge.invitation);
    const isOpen = !isUnbound && askers.some(({ from }) => isAhead(replaced.rebind_until, from - this.#clockError));
    const isAllowed = invitation?.with_secret === 1 || isOpen;
    verdict.expect(isAllowed, "a bound badge is replaced by its key, or by the server", replaced, "by", badge);
  }

  #checkBinding(before: Row, after: Row, lateMilliseconds: number): void {
    const { verdict, timeline } = this.world;
    const askers = this.#askers(after);
    const asked = Math.min(...askers.map(({ from }) => from));
    const since = Math.max(asked, timeline.now - lateMilliseconds - TRYING_MILLISECONDS) - this.#clockError;
    const settings = this.#during(String(after.application_id), since - STALE_MILLISECONDS, timeline.now);
    const isFirst = before.key_thumbprint === null && settings.some(({ bindUntil }) => isAhead(bindUntil, since));
    const isAllowed = isFirst || isAhead(before.rebind_until, since);
    const isAsked = askers.length > 0 && after.key_thumbprint !== null;
    const invariant = "a badge is bound to another key only while it may be, by a login with that key";
    verdict.expect(isAllowed && isAsked, invariant, before, "became", after);
    verdict.expect(after.rebind_until === null, "only one key takes the place of another", before, "became", after);
  }

  #checkWindow(badge: Row): void {
    const { verdict, timeline, book } = this.world;
    const isAsked = book.isRebound(Number(badge.number), timeline.now);
    const latest = timeline.now + REBIND_MILLISECONDS + this.#clockError;
    const isKept = isAsked && badge.rebind_until !== null && Number(badge.rebind_until) <= latest;
    verdict.expect(isKept, "a badge may be rebound for 24 hours, when its server asked for it", badge);
  }

  /** Calls that are under way for the badge, with its key. */
  #askers({ application_id: id, device, user_id: userId, key_thumbprint: key }: Row): Attempt<"badge">[] {
    const { book, timeline } = this.world;
    const applicationId = String(id);
    return book
      .attemptsOfApplication(applicationId)
      .filter(({ request }) => request.userId === userId && request.key === key)
      .filter(({ request }) => deviceOf(applicationId, request.udid) === device)
      .filter(({ from, to }) => from <= timeline.now && to >= timeline.now);
  }

  #during(applicationId: string, from: number, to: number): ProofSettings[] {
    return (this.#settings.get(applicationId) ?? []).filter((set) => set.from <= to && set.to >= from);
  }
}
