import { createHash, createHmac } from "node:crypto";
import { z } from "zod";
import { applicationId, base64Url } from "../../../../src/shared/identifiers.ts";
import { STORED_STATES, type StoredState } from "../../../../src/shared/schema.ts";
import { Member } from "../member.ts";
import type { Change } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";

/** What a badge was from one transaction of D1 to the next that changed it. Times are milliseconds. */
export interface Span {
  from: number;
  /** Infinity: it still is. */
  to: number;
  state: StoredState;
  expiresAt: number | null;
  isListed: boolean;
  isRetired: boolean;
  turn: number;
  /** Names the key that it is bound to; null: none. */
  key: string | null;
  /** Until when another key may take its place; null: none may. */
  rebindUntil: number | null;
}

/** A badge that was issued, with all that it was since. */
export interface IssuedRow {
  applicationId: string;
  device: string;
  userId: string;
  number: number;
  spans: Span[];
}

/** A D1 call that takes effect later than this may find its lease reclaimed, which is settled after 300 s. */
const LATE_WRITE_MILLISECONDS = 250_000;

const storedState = z.enum(STORED_STATES);

/** How storage names an invitation's token. */
export const digestOf = (token: string): string => createHash("sha256").update(token).digest("base64url");

/** How storage names a device (contract section 9), by application and udid. */
const devices = new Map<string, string>();

export function deviceOf(applicationId: string, udid: string): string {
  const known = devices.get(`${applicationId} ${udid}`);
  if (known !== undefined) return known;
  const mac = createHmac("sha256", deviceKeyOf(applicationId)).update(udid).digest();
  const device = base64Url(mac.subarray(0, 16));
  devices.set(`${applicationId} ${udid}`, device);
  return device;
}

export const deviceKeyOf = (applicationId: string): string => `device key of ${applicationId}`;

export const isOfDevice = (row: IssuedRow, { applicationId, udid }: { applicationId: string; udid: string }): boolean =>
  row.applicationId === applicationId && row.device === deviceOf(applicationId, udid);

/** What a badge was at some moment of a time. */
export const spansDuring = ({ spans }: IssuedRow, from: number, to: number): Span[] =>
  spans.filter((span) => span.from <= to && span.to >= from);

/** Looks at every change that a transaction of D1 makes, and remembers what was true when. */
export class Rows extends Member {
  /** Every badge that was ever issued, by number. */
  readonly issued = new Map<number, IssuedRow>();
  /** When an event was recorded as delivered, and when it was last made due by an administrator, in milliseconds. */
  readonly deliveredAt = new Map<string, number>();
  readonly releasedAt = new Map<string, number>();
  /** Numbers that a D1 call wrote minutes after it was sent: their leases may have been reclaimed meanwhile. */
  readonly writtenLate = new Set<number>();
  /** When the last invitation that had the number ended, in milliseconds. */
  readonly #endedAt = new Map<number, number>();
  /** Whose each number is, also after a restoration has made D1 forget it. */
  readonly #owners = new Map<number, string>();

  see(changes: readonly Change[], lateMilliseconds = 0): void {
    for (const { table, before, after } of changes) {
      if (table === "badge" && before === null && lateMilliseconds > LATE_WRITE_MILLISECONDS) {
        this.writtenLate.add(Number(after?.number));
      }
      if (table === "badge") this.#seeBadge(before, after);
      if (table === "invitation") this.#seeInvitation(before, after);
      if (table === "webhook_event") this.#seeEvent(before, after);
    }
  }

  /** Badges of an application that were live at some moment, or during all of a time. */
  liveDuring(applicationId: string, from: number, to: number, how: "some" | "all"): IssuedRow[] {
    return [...this.issued.values()].filter((row) => {
      if (row.applicationId !== applicationId) return false;
      const isLive = spansDuring(row, from, to).map(({ isListed }) => isListed);
      const existed = (row.spans[0]?.from ?? Number.POSITIVE_INFINITY) < from;
      return how === "all" ? existed && isLive.every(Boolean) : isLive.some(Boolean);
    });
  }

  /** Numbers of a range that such a write may have lost: their row is gone again, and no lease brings them back. */
  mayBeLost({ firstNumber, lastNumber }: { firstNumber: number; lastNumber: number }): number[] {
    return [...this.writtenLate].filter((number) => number >= firstNumber && number <= lastNumber);
  }

  /**
   * A home's D1 was restored: what is there now is what there was, and no more.
   *
   * @param badges of that home
   * @param isRemembered whether the application's object knows by itself whose a number is; of others nobody does
   */
  restored(badges: readonly Row[], isRemembered: (number: number) => boolean): void {
    for (const [number, { applicationId: id }] of this.issued) {
      if (this.world.isRestored(applicationId.parse(id))) this.issued.delete(number);
    }
    this.deliveredAt.clear();
    for (const number of this.#owners.keys()) if (!isRemembered(number)) this.#owners.delete(number);
    for (const badge of badges) if (badge.position !== null) this.#note(badge);
  }

  /**
   * All pages of a list (of one user, or null), read one after the other: a badge that exists all the time appears exactly
   * once, whatever comes and goes meanwhile (contract section 4).
   */
  checkWalk(applicationId: string, userId: string | null, from: number, numbers: readonly number[]): void {
    const { verdict, timeline } = this.world;
    const listed = new Set(numbers);
    verdict.expect(listed.size === numbers.length, "no badge appears twice", numbers);
    const live = (how: "some" | "all") =>
      this.liveDuring(applicationId, from, timeline.now, how).filter((row) => userId === null || row.userId === userId);
    const missing = live("all").filter(({ number }) => !listed.has(number));
    verdict.expect(missing.length === 0, "a badge that exists all the time is listed", missing);
    const some = new Set(live("some").map(({ number }) => number));
    const foreign = numbers.filter((number) => !some.has(number));
    verdict.expect(foreign.length === 0, "only live badges are listed", foreign);
  }

  #seeBadge(before: Row | null, after: Row | null): void {
    const { verdict } = this.world;
    const expect = (isKept: boolean, invariant: string) => verdict.expect(isKept, invariant, before, "became", after);
    if (before === null && after !== null) this.#checkRest(after);
    const wasIssued = before !== null && before.issued_at !== null;
    const isSame = (column: string) => before?.[column] === after?.[column];
    const staysTheSame = ["number", "application_id", "device", "user_id", "event_id", "issued_at", "signing_key_id"];
    const stays = !wasIssued || (after !== null && staysTheSame.every(isSame));
    expect(stays, "an issued number stays with its user device");
    const wasRetired = before !== null && before.retired_at !== null;
    expect(!wasRetired || isSame("retired_at"), "a retired badge stays retired");
    expect(!wasIssued || isSame("position"), "a badge keeps its position");
    if (after === null || after.issued_at === null) return;
    const number = Number(after.number);
    const isRetired = after.retired_at !== null;
    const isSound = after.position !== null && (isRetired || after.state !== "replaced");
    expect(isSound, "a badge that was replaced is retired");
    expect(wasIssued || !this.issued.has(number), "an issued number is never issued again");
    const owner = `${after.device} ${after.user_id}`;
    expect((this.#owners.get(number) ?? owner) === owner, "a number is never issued to two, whatever is restored");
    this.#owners.set(number, owner);
    this.#note(after);
  }

  #note(badge: Row): void {
    const { now } = this.world.timeline;
    const [applicationId, device] = [String(badge.application_id), String(badge.device)];
    const [userId, number] = [String(badge.user_id), Number(badge.number)];
    const row = this.issued.get(number) ?? { applicationId, device, userId, number, spans: [] };
    const last = row.spans.at(-1);
    if (last) last.to = now;
    row.spans.push({
      from: now,
      to: Number.POSITIVE_INFINITY,
      state: storedState.parse(badge.state),
      expiresAt: badge.expires_at === null ? null : Number(badge.expires_at),
      isListed: badge.ended_at === null,
      isRetired: badge.retired_at !== null,
      turn: Number(badge.turn),
      key: badge.key_thumbprint === null ? null : String(badge.key_thumbprint),
      rebindUntil: badge.rebind_until === null ? null : Number(badge.rebind_until),
    });
    this.issued.set(number, row);
  }

  /**
   * Whether a badge was its device's current one at some moment of a time: the one with the highest turn.
   *
   * @param key of the device's badges, only those count that are bound to the same key as this one; null: all
   */
  wasCurrent(row: IssuedRow, from: number, to: number, key: string | null = null): boolean {
    const rivals = [...this.issued.values()].filter(
      (other) => other.applicationId === row.applicationId && other.device === row.device,
    );
    const starts = rivals.flatMap(({ spans }) => spans.map((span) => span.from));
    return [from, ...starts.filter((time) => time > from && time <= to)].some((time) => {
      const keys = spansDuring(row, time, time).map((span) => span.key);
      const isRival = (span: Span) => !span.isRetired && (key === null || keys.includes(span.key));
      const turnsOf = (one: IssuedRow) => spansDuring(one, time, time).map((span) => (isRival(span) ? span.turn : 0));
      const turns = turnsOf(row);
      // Of badges that come in one transaction each was the current one.
      const wasThere = ({ spans }: IssuedRow) => (spans[0]?.from ?? Infinity) < time;
      const isBehind = (other: IssuedRow) => !wasThere(other) || Math.min(...turnsOf(other)) <= Math.max(...turns);
      return turns.length > 0 && rivals.every(isBehind);
    });
  }

  /**
   * A number whose invitation was revoked or expired rests for its application's reuse delay (contract section 5).
   *
   * @param badge a row that was not there before: an issued or a reserved number
   */
  #checkRest({ number, application_id: applicationId }: Row): void {
    const { plan, timeline, verdict } = this.world;
    const endedAt = this.#endedAt.get(Number(number));
    const application = plan.applications.find(({ id }) => id === applicationId);
    if (endedAt === undefined || !application) return;
    // An end that lies ahead of the object's clock counts from that clock, and the next object has another one.
    const tolerance = 3 * plan.clockErrorMilliseconds;
    const early = endedAt + application.reuseAfterSeconds * 1000 - tolerance - timeline.now;
    const detail = `${number}, free since ${endedAt}, was given out again ${early} ms early`;
    verdict.expect(early <= 0, "a freed number rests for the reuse delay", detail);
  }

  #seeInvitation(before: Row | null, after: Row | null): void {
    const isEnded = before !== null && before.state !== "pending";
    const isSame = before?.state === after?.state && before?.ended_at === after?.ended_at;
    this.world.verdict.expect(!isEnded || isSame, "an ended invitation stays as it ended", before, "became", after);
    if (after?.state !== before?.state) this.#checkEnd(after);
    if (after !== null && ["revoked", "expired"].includes(String(after.state))) {
      this.#endedAt.set(Number(after.number), Number(after.ended_at));
    }
  }

  /** An invitation ends for a reason, and until then its number is reserved for it. */
  #checkEnd(after: Row | null): void {
    const { verdict, timeline, plan, book, d1 } = this.world;
    if (after === null) return;
    const isOver = Number(after.expires_at_time) <= timeline.now + plan.clockErrorMilliseconds;
    const has = (tokens: Iterable<string>) => [...tokens].some((token) => digestOf(token) === after.digest);
    // What nobody was told of, the service ends itself.
    const isAsked = has(book.revocations) || !has(book.tokens);
    const [badge] = d1.look(
      "SELECT invitation, position, device, user_id FROM badge WHERE number = ?",
      after.number ?? 0,
    );
    const isIts = badge?.invitation === after.digest;
    const isClaimers = badge?.device === after.claim_device && badge?.user_id === after.claim_user_id;
    const isPossible = {
      pending: isIts && badge?.position === null,
      claimed: isIts && isClaimers,
      revoked: isAsked && !isIts,
      expired: isOver && !isIts,
    }[String(after.state)];
    verdict.expect(isPossible === true, "a number is reserved until its invitation ends, for a reason", after, badge);
  }

  #seeEvent(before: Row | null, after: Row | null): void {
    const { verdict, timeline } = this.world;
    const id = String((after ?? before)?.id);
    const isSame = before === null || before.payload === after?.payload;
    verdict.expect(isSame, "an event's payload never changes", before, "became", after);
    const wasDelivered = before?.state === "delivered";
    const stays = after?.state === "delivered" && before?.due_at === after.due_at;
    verdict.expect(!wasDelivered || stays, "a delivered event is left alone", before, "became", after);
    if (!wasDelivered && after?.state === "delivered") this.deliveredAt.set(id, timeline.now);
    if (before?.state === "held" && after?.state === "pending") this.releasedAt.set(id, timeline.now);
  }
}
