import type { BadgeState } from "../../../../src/shared/badge-life/states.ts";
import { applicationId } from "../../../../src/shared/identifiers.ts";
import type { EventName } from "../../../../src/shared/schema.ts";
import { Member } from "../member.ts";
import type { Change } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";
import type { UserDevice } from "../service/door.ts";
import { REBIND_MILLISECONDS } from "./bindings.ts";
import type { Attempt } from "./book.ts";
import { type IssuedRow, spansDuring } from "./rows.ts";

/** What may become of a stored state (contract section 12); what is not here is final. */
const NEXT_STATES: Readonly<Record<string, readonly string[]>> = {
  active: ["active", "suspended", "revoked", "replaced"],
  suspended: ["active", "suspended", "revoked"],
  revoked: ["revoked"],
  replaced: ["replaced"],
};

const STATE_OF_STEP = { suspend: "suspended", resume: "active", revoke: "revoked" } as const;
const EVENT_OF_STATE: Readonly<Record<string, EventName>> = {
  active: "badge:resumed",
  suspended: "badge:suspended",
  revoked: "badge:revoked",
  expired: "badge:expired",
  replaced: "badge:replaced",
};
/** Refusals that name a state of the caller's badge. One that was replaced while the call was under way is told as revoked. */
const STATES_OF_REASON: Readonly<Record<string, readonly BadgeState[]>> = {
  SUSPENDED_BADGE: ["suspended"],
  REVOKED_BADGE: ["revoked", "replaced"],
  EXPIRED_BADGE: ["expired"],
};
/** What callers see of a badge, apart from its number. */
const SEEN_COLUMNS = ["position", "state", "expires_at", "ended_at", "metadata", "key_thumbprint"];
const ENDED: readonly BadgeState[] = ["revoked", "expired", "replaced"];

type Ended = Pick<Attempt<"badge">, "from" | "to">;

/** The life of badges (contract sections 12, 13 and 18): each transaction of D1, and what callers were told, against it. */
export class Life extends Member {
  /** By application: the highest position and change number that there ever were. */
  readonly #highest = new Map<string, { position: number; change: number }>();
  /** By application and user: since when the user is blocked or not. */
  readonly #blocks = new Map<string, { from: number; isBlocked: boolean }[]>();

  see(changes: readonly Change[]): void {
    const ofTable = (name: string) => changes.filter(({ table }) => table === name);
    for (const { before, after } of ofTable("blocked_user")) {
      if (before === null || after === null) this.#noteBlock(after ?? before ?? {}, after !== null);
    }
    const badges = ofTable("badge").filter(({ after }) => after !== null && after.position !== null);
    for (const change of badges) this.#checkTransition(change);
    this.#checkNumbers(badges);
    this.#checkEvents(changes);
  }

  /** A home's D1 was restored, which has these rows now. Positions that an object has seen, and change numbers of D1 itself, do not come again. */
  restored(badges: readonly Row[], blocks: readonly Row[], seenPosition: (applicationId: string) => number): void {
    const isRestored = (id: string | undefined) => this.world.isRestored(applicationId.parse(id));
    for (const [id, highest] of this.#highest) {
      if (!isRestored(id)) continue;
      const own = badges.filter(({ application_id: owner }) => owner === id);
      const most = (column: string) => Math.max(0, ...own.map((badge) => Number(badge[column])));
      highest.position = Math.max(most("position"), seenPosition(id));
      highest.change = most("change");
    }
    for (const key of this.#blocks.keys()) if (isRestored(key.split(" ")[0])) this.#blocks.delete(key);
    for (const block of blocks) this.#noteBlock(block, true);
  }

  /** Whether the user was blocked at some moment of a time, or was not. */
  wasBlocked({ applicationId, userId }: Omit<UserDevice, "udid">, { from, to }: Ended, isBlocked = true): boolean {
    const known = this.#blocks.get(`${applicationId} ${userId}`) ?? [];
    const spans = [{ from: 0, isBlocked: false }, ...known];
    return spans.some((span, place) => {
      const end = spans[place + 1]?.from ?? Number.POSITIVE_INFINITY;
      return span.isBlocked === isBlocked && span.from <= to && end >= from;
    });
  }

  /** Device calls are for active badges only, and for users who are not blocked. */
  checkBadge(attempt: Attempt<"badge">): void {
    const { request, outcome } = attempt;
    if (outcome?.kind === "granted") {
      const { kind, number } = outcome.granted;
      // A claim is decided before its badge is there, and takes its end from the invitation.
      const decidedFrom = kind === "created" ? attempt.from : undefined;
      const accepted = { ...attempt, readFrom: this.world.book.acceptedSince(attempt) };
      this.#expectState(
        accepted,
        number,
        ["active"],
        "a login is answered only while its badge is active",
        decidedFrom,
      );
      const isAllowed = kind === "existing" || this.wasBlocked(request, attempt, false);
      this.world.verdict.expect(isAllowed, "a blocked user gets no badge", request);
    }
    const isTrue =
      outcome?.kind !== "refused" || outcome.reason !== "BLOCKED_USER" || this.wasBlocked(request, attempt);
    this.world.verdict.expect(isTrue, "only a blocked user is told so", request);
    this.#checkRefusal(attempt, new Set([request.userId]));
  }

  checkSignature(attempt: Attempt<"sign">, number: number | null, userIds: ReadonlySet<string>): void {
    const accepted = { ...attempt, readFrom: this.world.book.acceptedSince(attempt) };
    if (number !== null) this.#expectState(accepted, number, ["active"], "nothing ended signs");
    this.#checkRefusal(attempt, userIds);
  }

  checkStep(attempt: Attempt<"step">): void {
    const { request, outcome } = attempt;
    const { number, step } = request;
    if (outcome?.kind === "granted") {
      const { state, expiresAt } = outcome.granted;
      this.#expectState(attempt, number, [state], "a step is answered with the state that the badge has", attempt.from);
      const end = step.kind === "set-end" ? step.expiresAt : null;
      const isAsAsked =
        step.kind === "set-end"
          ? expiresAt === (end === null ? undefined : new Date(end).toISOString())
          : step.kind === "note-expiry" || state === STATE_OF_STEP[step.kind];
      this.world.verdict.expect(isAsAsked, "a step that is granted has happened", request, outcome.granted);
    }
    this.#checkRefusedStep(attempt, ENDED);
  }

  checkRebind(attempt: Attempt<"rebind">): void {
    const { request, outcome, from, to } = attempt;
    if (outcome?.kind === "granted") {
      const { state, keyThumbprint: key = null } = outcome.granted;
      const { spans = [] } = this.world.rows.issued.get(request.number) ?? {};
      const isFinal = state === "revoked" || state === "replaced";
      this.#expectState(attempt, request.number, isFinal ? [] : [state], "a badge that lives may be rebound", from);
      const until = from + REBIND_MILLISECONDS - this.world.plan.clockErrorMilliseconds;
      const hasHappened = spans.some(
        (span) => span.from >= from && span.from <= to && Number(span.rebindUntil) >= until,
      );
      const isIts = spans.some((span) => span.from <= to && span.to >= from && span.key === key);
      this.world.verdict.expect(hasHappened && isIts, "a rebind that is granted has happened", request, outcome, spans);
    }
    this.#checkRefusedStep(attempt, ["revoked", "replaced"]);
  }

  #checkRefusedStep(attempt: Attempt<"step"> | Attempt<"rebind">, ended: readonly BadgeState[]): void {
    const { outcome, request } = attempt;
    if (outcome?.kind !== "refused") return;
    const { applicationId, number } = request;
    if (outcome.reason === "ENDED_BADGE") {
      this.#expectState(attempt, number, ended, "only an ended badge refuses a step");
    }
    if (outcome.reason === "UNKNOWN_BADGE") {
      const row = this.#rowOf(applicationId, number);
      const isUnknown = (row?.spans[0]?.from ?? Number.POSITIVE_INFINITY) >= attempt.from;
      this.world.verdict.expect(isUnknown, "an issued badge is known", number);
    }
  }

  /** Once a block is acknowledged, every badge that was there when it was asked for has ended for good. */
  checkBlock(attempt: Attempt<"block">): void {
    const { request, outcome, from } = attempt;
    const { applicationId, userId } = request;
    if (outcome?.kind !== "granted") return;
    const own = [...this.world.rows.issued.values()].filter(
      (row) => row.applicationId === applicationId && row.userId === userId,
    );
    const live = own.filter(({ spans }) => {
      const state = spans.at(-1)?.state;
      return (spans[0]?.from ?? 0) < from && (state === "active" || state === "suspended");
    });
    this.world.verdict.expect(live.length === 0, "a block leaves no badge of its user", live);
    for (const id of outcome.granted.revoked) {
      const spans = own.find(({ number }) => String(number) === id)?.spans ?? [];
      const revokedAt = spans.find(({ state }) => state === "revoked")?.from ?? 0;
      this.world.verdict.expect(revokedAt >= from, "a block tells which badges it revoked", id, own);
    }
  }

  /** At rest: every block is finished, and no badge of a blocked user lives. */
  checkAtRest(): void {
    const sql = `SELECT badge.number, badge.state, is_revoking FROM blocked_user LEFT JOIN badge
      ON badge.application_id = blocked_user.application_id AND badge.user_id = blocked_user.user_id
      AND badge.position IS NOT NULL AND badge.state IN ('active', 'suspended')
      WHERE is_revoking = 1 OR badge.number IS NOT NULL`;
    const live = this.world.d1.look(sql);
    this.world.verdict.expect(live.length === 0, "a blocked user has no live badge", live);
  }

  #noteBlock({ application_id: applicationId, user_id: userId }: Row, isBlocked: boolean): void {
    const key = `${applicationId} ${userId}`;
    const spans = this.#blocks.get(key) ?? [];
    spans.push({ from: this.world.timeline.now, isBlocked });
    this.#blocks.set(key, spans);
  }

  #checkTransition({ before, after }: Change): void {
    const { verdict, timeline, plan } = this.world;
    if (after === null) return;
    if (before === null || before.position === null) {
      const user = { applicationId: applicationId.parse(after.application_id), userId: String(after.user_id) };
      const now = { from: timeline.now, to: timeline.now };
      verdict.expect(this.wasBlocked(user, now, false), "no transaction issues a badge to a blocked user", after);
      return;
    }
    const isExpired =
      before.expires_at !== null && Number(before.expires_at) <= timeline.now + plan.clockErrorMilliseconds;
    const isPossible =
      (NEXT_STATES[String(before.state)]?.includes(String(after.state)) ?? false) ||
      (before.state === "suspended" && isExpired && after.state === "replaced");
    verdict.expect(isPossible, "a badge's state takes only the steps there are", before, "became", after);
  }

  /** Positions and change numbers grow from commit to commit; a change that callers see has a number, and no other has. */
  #checkNumbers(changes: readonly Change[]): void {
    const { verdict } = this.world;
    for (const [applicationId, ofOne] of Map.groupBy(changes, ({ after }) => String(after?.application_id))) {
      const highest = this.#highest.get(applicationId) ?? { position: 0, change: 0 };
      const assigned = { position: [] as number[], change: [] as number[] };
      for (const { before, after } of ofOne) {
        if (after === null) continue;
        if (before === null || before.position === null) assigned.position.push(Number(after.position));
        const isNew = before === null || SEEN_COLUMNS.some(isOther);
        const supersedesRevoked =
          before?.state === "revoked" && before.retired_at === null && after.retired_at !== null;
        if (isNew && !supersedesRevoked) assigned.change.push(Number(after.change));
        else verdict.expect(!isOther("change"), "a change that nobody sees has no number", before, "became", after);
        function isOther(column: string): boolean {
          return before?.[column] !== after?.[column];
        }
      }
      for (const kind of ["position", "change"] as const) {
        const isFresh = assigned[kind].every((number) => number > highest[kind]);
        const isOnce = new Set(assigned[kind]).size === assigned[kind].length;
        const detail = `${kind} ${assigned[kind]} after ${highest[kind]} of ${applicationId}`;
        verdict.expect(isFresh && isOnce, "positions and change numbers grow with every commit", detail);
        highest[kind] = Math.max(highest[kind], ...assigned[kind]);
      }
      this.#highest.set(applicationId, highest);
    }
  }

  /** One event a change, in its transaction (contract section 18). */
  #checkEvents(changes: readonly Change[]): void {
    const told = changes.flatMap(({ table, before, after }) => {
      if (table !== "webhook_event" || before !== null || after === null) return [];
      const { data } = JSON.parse(String(after.payload));
      return [`${after.application_id} ${after.event} ${data.id} ${data.change ?? ""}`];
    });
    const owed = changes.flatMap(({ table, before, after }) => {
      const event = after === null ? null : eventOf(table, before, after);
      const application = this.world.plan.applications.find(({ id }) => id === after?.application_id);
      const isWanted = event !== null && application?.webhookUrl != null && application.events.includes(event);
      const hasChange = table === "badge" && event !== "badge:created";
      return isWanted ? [`${application.id} ${event} ${after?.number} ${hasChange ? after?.change : ""}`] : [];
    });
    const isSame = told.toSorted().join() === owed.toSorted().join();
    this.world.verdict.expect(isSame, "each change has one event in its transaction", told, "instead of", owed);
  }

  #checkRefusal(attempt: Attempt<"badge"> | Attempt<"sign">, userIds: ReadonlySet<string>): void {
    const { request, outcome, from, to } = attempt;
    const states = outcome?.kind === "refused" ? STATES_OF_REASON[outcome.reason] : undefined;
    if (states === undefined) return;
    const isTrue = [...this.world.rows.issued.values()].some(
      (row) =>
        row.applicationId === request.applicationId &&
        userIds.has(row.userId) &&
        this.#statesOf(row, from, to).some((state) => states.includes(state)),
    );
    this.world.verdict.expect(isTrue, "a device is refused for a state that its badge has", request, outcome);
  }

  /** @param decidedFrom since when it may have been decided whether the badge has expired; if not given, once it was read */
  #expectState(
    { from, to, readFrom = from }: Ended & { readFrom?: number },
    number: number,
    allowed: readonly BadgeState[],
    invariant: string,
    decidedFrom?: number,
  ): void {
    const row = this.world.rows.issued.get(number);
    const states = row ? this.#statesOf(row, from, to, { decidedFrom, readFrom }) : [];
    const isKept = states.some((state) => allowed.includes(state));
    this.world.verdict.expect(isKept, invariant, number, states, `from ${from} to ${to}`, row?.spans);
  }

  /** States that callers may have seen during a time. Expiry goes by clocks, which differ. */
  #statesOf(row: IssuedRow, from: number, to: number, { decidedFrom = 0, readFrom = from } = {}): BadgeState[] {
    const error = this.world.plan.clockErrorMilliseconds;
    return spansDuring(row, readFrom, to).flatMap(({ state, expiresAt, ...span }): BadgeState[] => {
      if (state === "revoked" || state === "replaced" || expiresAt === null) return [state];
      const isExpired: BadgeState[] = expiresAt <= to + error ? ["expired"] : [];
      const decidedAt = decidedFrom || Math.max(from, span.from);
      return expiresAt > decidedAt - error ? [state, ...isExpired] : isExpired;
    });
  }

  #rowOf(applicationId: string, number: number): IssuedRow | undefined {
    const row = this.world.rows.issued.get(number);
    return row?.applicationId === applicationId ? row : undefined;
  }
}

function eventOf(table: string, before: Row | null, after: Row): EventName | null {
  if (table === "invitation") {
    const isEnd = before?.state === "pending" && after.state !== "pending";
    if (!isEnd || after.state === "claimed") return null;
    return after.state === "revoked" ? "invitation:revoked" : "invitation:expired";
  }
  if (table !== "badge" || after.position === null) return null;
  if (before === null || before.position === null) return "badge:created";
  const [was, is] = [notedState(before), notedState(after)];
  return was === is ? null : (EVENT_OF_STATE[is] ?? null);
}

/** The state that callers see, apart from an expiry that nobody has noted. */
function notedState({ state, ended_at: endedAt }: Row): string {
  const isFinal = state === "revoked" || state === "replaced";
  return !isFinal && endedAt !== null ? "expired" : String(state);
}
