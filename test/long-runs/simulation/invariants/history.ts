import { createHash, createHmac } from "node:crypto";
import { type ApplicationId, base64Url } from "../../../../src/shared/identifiers.ts";
import { Member } from "../member.ts";
import type { Change } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";
import type { UserDevice } from "../service/door.ts";

/** What a row of D1 was from one transaction that changed it to the next. Times are milliseconds; Infinity: it still is. */
export interface Span {
  from: number;
  to: number;
  row: Row;
}

type Device = Omit<UserDevice, "userId">;

/** Whose rows the planted ones are (planter.ts): no application of a seed. */
export const STRANGER = "app_stranger";

/** What names a row. */
export const KEYS: Readonly<Record<string, readonly string[]>> = {
  application_head: ["application_id"],
  badge: ["number"],
  invitation: ["digest"],
  freed_number: ["number"],
  blocked_user: ["application_id", "user_id"],
  webhook_event: ["id"],
  application: ["id"],
  application_secret: ["id"],
};

/** Whether a row of `badge` is an issued one. A reserved number is no badge yet. */
export const isIssued = (row: Row | null): row is Row => row !== null && row.ordinal !== null;

export const digestOf = (token: string): string => createHash("sha256").update(token).digest("base64url");

export const rootKeyOf = (applicationId: string): string => `root key of ${applicationId}`;

/** How storage names a device (contract section 9). */
export const hashUdid = ({ applicationId, udid }: Device): string =>
  base64Url(createHmac("sha256", rootKeyOf(applicationId)).update(udid).digest().subarray(0, 16));

export const isClaimOf = ({ state, claim_user_id, claim_device }: Row, request: UserDevice): boolean =>
  state === "claimed" && claim_user_id === request.userId && claim_device === hashUdid(request);

/** Everything that D1 had, and when: what responses are held against. */
export class History extends Member {
  readonly #spans = new Map<string, Span[]>();
  readonly #folded: { applicationId: string; at: number }[] = [];

  see({ table, before, after }: Change): void {
    const { now } = this.world.timeline;
    const key = KEYS[table];
    const known = after ?? before;
    if (!key || !known) return;
    const spans = this.#spans.get(table) ?? [];
    const last = spans.findLast(({ row }) => key.every((column) => row[column] === known[column]));
    if (last && last.to > now) last.to = now;
    if (isIssued(after)) spans.push({ from: now, to: Number.POSITIVE_INFINITY, row: after });
    this.#spans.set(table, spans);
  }

  /** An entry changes a badge more than once: D1 never has what it was in between. */
  noteFolded(applicationId: string): void {
    this.#folded.push({ applicationId, at: this.world.timeline.now });
  }

  wasFolded(applicationId: string, from: number, to: number): boolean {
    return this.#folded.some((entry) => entry.applicationId === applicationId && entry.at >= from && entry.at <= to);
  }

  /** What the rows with these values were at some moment of a time. */
  during(table: string, values: Row, from = 0, to = Number.POSITIVE_INFINITY): Span[] {
    const columns = Object.keys(values);
    return (this.#spans.get(table) ?? []).filter(
      (span) => span.from <= to && span.to >= from && columns.every((column) => span.row[column] === values[column]),
    );
  }

  issuedAt(number: Row[string] | undefined): number {
    return this.during("badge", { number: number ?? null })[0]?.from ?? Number.POSITIVE_INFINITY;
  }

  ofDevice(request: Device & Partial<UserDevice>, from?: number, to?: number): Span[] {
    const { applicationId, userId } = request;
    const values = { application_id: applicationId, device: hashUdid(request) };
    return this.during("badge", userId === undefined ? values : { ...values, user_id: userId }, from, to);
  }

  /** Whether a device has badges that are bound to the key of its request, and were all the time. */
  hasBadgeOf(request: Device & { key: string | null }, from: number, to: number): boolean {
    const { applicationId, udid, key } = request;
    const badges = Map.groupBy(this.ofDevice({ applicationId, udid }, from, to), ({ row }) => row.number);
    return [...badges.values()].some(
      (spans) =>
        spans.some((span) => span.from < from) &&
        spans.every(({ row }) => row.key_thumbprint === key && row.superseded_at === null),
    );
  }

  wasBlocked(applicationId: ApplicationId, userId: string, from: number, to: number): boolean {
    return this.during("blocked_user", { application_id: applicationId, user_id: userId }, from, to).length > 0;
  }

  /** As it is now: it ends once. */
  invitation(applicationId: ApplicationId, token: string): Row | undefined {
    const sql = "SELECT * FROM invitation WHERE digest = ? AND application_id = ?";
    const [row] = this.world.d1.look(sql, digestOf(token), applicationId);
    return row && this.world.erased.known(row);
  }

  /**
   * States that callers may have seen of a badge. Expiry goes by clocks, which differ.
   *
   * @param spans what it was while a call was under way, from when to when
   * @param decidedFrom since when it may have been decided whether it has expired; if not given, once it was read
   */
  statesOf(spans: readonly Span[], { from, to }: { from: number; to: number }, decidedFrom?: number): string[] {
    const error = this.world.plan.clockErrorMilliseconds;
    return spans.flatMap(({ row: { state, expires_at: end }, from: since }) => {
      if (state === "revoked" || state === "replaced" || end === null) return [String(state)];
      const isExpired = Number(end) <= to + error ? ["expired"] : [];
      return Number(end) > (decidedFrom ?? Math.max(from, since)) - error ? [String(state), ...isExpired] : isExpired;
    });
  }

  /**
   * Whether a badge was its device's current one at some moment of a time: the one with the highest login sequence number.
   *
   * @param key of the device's badges, only those count that are bound to the same key as this one; null: all
   */
  wasCurrent({ applicationId, udid }: Device, number: number, from: number, to: number, key: string | null = null) {
    const ofDevice = this.ofDevice({ applicationId, udid });
    // A restoration may end what nothing follows.
    const times = ofDevice.flatMap((span) => [span.from, span.to + 0.5]);
    const changes = times.filter((time) => time > from && time <= to);
    return [from, ...changes].some((time) => {
      const there = Map.groupBy(
        ofDevice.filter((span) => span.from <= time && span.to >= time),
        ({ row }) => row.number,
      );
      const own = there.get(number) ?? [];
      const isRival = ({ row }: Span) =>
        row.superseded_at === null &&
        (key === null || own.some((span) => span.row.key_thumbprint === row.key_thumbprint));
      const loginsOf = (spans: Span[]) => spans.map((span) => (isRival(span) ? Number(span.row.login_sequence) : 0));
      // Of badges that come in one transaction each was the current one.
      const isBehind = (spans: Span[]) =>
        spans.every((span) => span.from === time) || Math.min(...loginsOf(spans)) <= Math.max(...loginsOf(own));
      return own.length > 0 && [...there.values()].every(isBehind);
    });
  }
}
