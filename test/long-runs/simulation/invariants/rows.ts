import type { Change } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";
import type { Verdict } from "./verdict.ts";

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
  readonly #verdict: Verdict;
  readonly #now: () => number;
  /** Every badge that was ever issued, by number. */
  readonly issued = new Map<number, IssuedRow>();
  /** When an event was recorded as delivered, and when it was last made due by an administrator, in milliseconds. */
  readonly deliveredAt = new Map<string, number>();
  readonly releasedAt = new Map<string, number>();

  constructor(parts: { verdict: Verdict; now: () => number }) {
    this.#verdict = parts.verdict;
    this.#now = parts.now;
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

  #seeBadge(before: Row | null, after: Row | null): void {
    const wasIssued = before !== null && before.issued_at !== null;
    const detail = () => `${JSON.stringify(before)} became ${JSON.stringify(after)}`;
    const isSame = (column: string) => before?.[column] === after?.[column];
    const staysTheSame = ["number", "application_id", "device", "user_id", "event_id", "issued_at", "signing_key_id"];
    this.#verdict.expect(
      !wasIssued || (after !== null && staysTheSame.every(isSame)),
      "an issued number stays with its user device",
      detail,
    );
    const wasRetired = before !== null && before.retired_at !== null;
    this.#verdict.expect(!wasRetired || isSame("position"), "a retired badge stays retired", detail);
    if (after === null || after.issued_at === null) return;
    const number = Number(after.number);
    const isLive = after.position !== null;
    this.#verdict.expect(isLive !== (after.retired_at !== null), "a badge is issued or retired", detail);
    const known = this.issued.get(number);
    this.#verdict.expect(wasIssued || !known, "an issued number is never issued again", detail);
    this.issued.set(number, {
      applicationId: String(after.application_id),
      userId: String(after.user_id),
      number,
      issuedAt: known?.issuedAt ?? this.#now(),
      retiredAt: isLive
        ? Number.POSITIVE_INFINITY
        : Math.min(known?.retiredAt ?? Number.POSITIVE_INFINITY, this.#now()),
    });
  }

  #seeInvitation(before: Row | null, after: Row | null): void {
    const isEnded = before !== null && before.state !== "pending";
    const isSame = before?.state === after?.state && before?.ended_at === after?.ended_at;
    this.#verdict.expect(!isEnded || isSame, "an ended invitation stays as it ended", () => {
      return `${JSON.stringify(before)} became ${JSON.stringify(after)}`;
    });
  }

  #seeEvent(before: Row | null, after: Row | null): void {
    const detail = () => `${JSON.stringify(before)} became ${JSON.stringify(after)}`;
    const id = String((after ?? before)?.id);
    const isSame = before === null || before.payload === after?.payload;
    this.#verdict.expect(isSame, "an event's payload never changes", detail);
    const wasDelivered = before?.state === "delivered";
    const stays = after?.state === "delivered" && before?.due_at === after.due_at;
    this.#verdict.expect(!wasDelivered || stays, "a delivered event is left alone", detail);
    if (!wasDelivered && after?.state === "delivered") this.deliveredAt.set(id, this.#now());
    if (before?.state === "held" && after?.state === "pending") this.releasedAt.set(id, this.#now());
  }
}
