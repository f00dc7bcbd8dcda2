import type { Change } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";
import type { World } from "../world.ts";

/** A badge that was issued, from the transaction that did it to the one that retired it. */
export interface IssuedRow {
  applicationId: string;
  userId: string;
  number: number;
  /** Milliseconds, like `retiredAt`. */
  issuedAt: number;
  retiredAt: number;
}

/** Looks at every change that a transaction of D1 makes, and remembers what was true when. */
export class Rows {
  readonly #world: World;
  /** Every badge that was ever issued, by number. */
  readonly issued = new Map<number, IssuedRow>();
  /** When an event was recorded as delivered, and when it was last made due by an administrator, in milliseconds. */
  readonly deliveredAt = new Map<string, number>();
  readonly releasedAt = new Map<string, number>();
  /** When the last invitation that had the number ended, in milliseconds. */
  readonly #endedAt = new Map<number, number>();

  constructor(world: World) {
    this.#world = world;
  }

  see(changes: readonly Change[]): void {
    for (const { table, before, after } of changes) {
      if (table === "badge") this.#seeBadge(before, after);
      if (table === "invitation") this.#seeInvitation(before, after);
      if (table === "webhook_event") this.#seeEvent(before, after);
    }
  }

  /** Badges of an application that were live at some moment, or during all of a time. */
  liveDuring(applicationId: string, from: number, to: number, how: "some" | "all"): IssuedRow[] {
    return [...this.issued.values()].filter((row) => {
      if (row.applicationId !== applicationId) return false;
      return how === "all" ? row.issuedAt < from && row.retiredAt > to : row.issuedAt <= to && row.retiredAt >= from;
    });
  }

  /**
   * All pages of a list (of one user, or null), read one after the other: a badge that exists all the time appears exactly
   * once, whatever comes and goes meanwhile (contract section 4).
   */
  checkWalk(applicationId: string, userId: string | null, from: number, numbers: readonly number[]): void {
    const { verdict, timeline } = this.#world;
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
    const { verdict, timeline } = this.#world;
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
    const isLive = after.retired_at === null;
    const isSound = after.position !== null && isLive === (after.state !== "replaced");
    expect(isSound, "a badge is issued or replaced");
    const hasNewChange = before === null || Number(after.change) >= Number(before.change ?? 0);
    expect(hasNewChange, "a badge's change number never falls");
    const known = this.issued.get(number);
    expect(wasIssued || !known, "an issued number is never issued again");
    this.issued.set(number, {
      applicationId: String(after.application_id),
      userId: String(after.user_id),
      number,
      issuedAt: known?.issuedAt ?? timeline.now,
      retiredAt: isLive ? Number.POSITIVE_INFINITY : Math.min(known?.retiredAt ?? timeline.now, timeline.now),
    });
  }

  /**
   * A number whose invitation was revoked or expired rests for its application's reuse delay (contract section 5).
   *
   * @param badge a row that was not there before: an issued or a reserved number
   */
  #checkRest({ number, application_id: applicationId }: Row): void {
    const { plan, timeline, verdict } = this.#world;
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
    this.#world.verdict.expect(!isEnded || isSame, "an ended invitation stays as it ended", before, "became", after);
    if (after !== null && ["revoked", "expired"].includes(String(after.state))) {
      this.#endedAt.set(Number(after.number), Number(after.ended_at));
    }
  }

  #seeEvent(before: Row | null, after: Row | null): void {
    const { verdict, timeline } = this.#world;
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
