import type { Origin } from "../../../shared/actor.ts";
import type { EventName } from "../../../shared/events.ts";
import { type HistoryAction, historyId } from "../../../shared/history.ts";
import { type DeviceId, type InvitationDigest, newEventId } from "../../../shared/identifiers.ts";
import type { NewEvent, NewHistory } from "../../storage/entry.ts";
import type {
  BadgeRow,
  BlockRow,
  FreedRow,
  InvitationRow,
  IssuedBadge,
  Position,
  RangePart,
} from "../../storage/rows.ts";
import { isIssued } from "../../storage/rows.ts";
import type { Rules } from "../commands.ts";
import { RowSet } from "./row-set.ts";

/** What decisions need besides rows. */
export interface DraftSources {
  /** Milliseconds. */
  now: number;
  /** The number at an index of a part of the range (permutation.ts). */
  numberAt(part: RangePart, index: number): number;
  /** A whole number from 0 to `limit - 1`, each equally likely. */
  randomBelow(limit: number): number;
}

/**
 * The rows that a group of commands read, and what its decisions make of them. Each command sees the rows as the ones before it
 * left them. Nothing here asks a clock, a database or the network.
 */
export class Draft {
  readonly now: number;
  readonly sources: DraftSources;
  readonly position: Position;
  readonly badges = new RowSet<number, BadgeRow>();
  readonly invitations = new RowSet<InvitationDigest, InvitationRow>();
  readonly blocks = new RowSet<string, BlockRow>();
  readonly freed = new RowSet<number, FreedRow>();
  readonly events: NewEvent[] = [];
  readonly history: NewHistory[] = [];
  /** The highest turn of each device that a command concerns; 0: it has no badge. */
  readonly turns = new Map<DeviceId, number>();
  /** By ID, the signing keys of new badges that D1 may have forgotten in a restoration: callers may differ for some seconds. */
  readonly signingKeys = new Map<number, Rules["signingKey"]>();
  /** Characters of what was decided, roughly: a group ends before it is too large. */
  size = 0;

  constructor(position: Position, sources: DraftSources) {
    this.position = { ...position, fresh: position.fresh.map((part) => ({ ...part })) };
    this.now = sources.now;
    this.sources = sources;
  }

  /** The badge of a user device that takes part: it was issued and no other has superseded it. */
  badgeOf(device: DeviceId, userId: string): IssuedBadge | undefined {
    for (const row of this.badges.values()) {
      if (row.device === device && row.userId === userId && row.retiredAt === null && isIssued(row)) return row;
    }
    return undefined;
  }

  /** An issued badge by its number. */
  issued(number: number): IssuedBadge | undefined {
    const row = this.badges.get(number);
    return isIssued(row) ? row : undefined;
  }

  isBlocked(userId: string): boolean {
    return this.blocks.get(userId) !== undefined;
  }

  /** The turn with which a badge becomes its device's current one. */
  nextTurn(device: DeviceId): number {
    const turn = (this.turns.get(device) ?? 0) + 1;
    this.turns.set(device, turn);
    return turn;
  }

  /** Stores a badge as it is after a change that callers see. */
  change(badge: IssuedBadge): IssuedBadge {
    this.position.lastChange++;
    const { lastChange: change } = this.position;
    const before = this.issued(badge.number);
    const isOfStatus =
      before !== undefined &&
      (before.state !== badge.state || before.endedAt !== badge.endedAt || before.expiresAt !== badge.expiresAt);
    const changed = { ...badge, change, changedAt: this.now, ...(isOfStatus && { statusChange: change }) };
    this.keep(changed);
    return changed;
  }

  /** Stores a badge without a change that callers see. */
  keep(badge: BadgeRow): void {
    this.badges.set(badge.number, badge);
    this.size += 300 + (badge.metadata?.length ?? 0);
  }

  /** Records an event, which is sent if the application subscribes to it. @param payloadOf makes the body */
  tell(event: EventName, payloadOf: (id: string) => string): string {
    const id = newEventId(this.now);
    const payload = payloadOf(id);
    this.events.push({ id, event, payload, createdAt: this.now });
    this.size += 100 + payload.length;
    return id;
  }

  /** A badge is issued with this key; the first such entry carries the key, so that a restoration does not lose it. */
  useSigningKey(key: Rules["signingKey"]): void {
    if (this.position.lastSigningKey !== key.id) this.signingKeys.set(key.id, key);
    this.position.lastSigningKey = key.id;
  }

  note(
    action: HistoryAction,
    { actor, requestId, reason }: Origin,
    about: { badge?: number; userId?: string | null; detail?: Record<string, unknown> },
  ): void {
    this.history.push({
      id: historyId(this.now, this.history.length),
      at: this.now,
      action,
      actorKind: actor.kind,
      actorName: actor.name ?? null,
      badge: about.badge ?? null,
      userId: about.userId ?? null,
      requestId: requestId ?? null,
      reason: reason ?? null,
      detail: about.detail ? JSON.stringify(about.detail) : null,
    });
    this.size += 300;
  }
}
