import { DurableObject } from "cloudflare:workers";
import { homeOf } from "../../shared/homes.ts";
import type { ApplicationId, DeviceId, InvitationDigest } from "../../shared/identifiers.ts";
import {
  LEASE_RECLAIM_SECONDS,
  PLATFORM_DEADLINE_MILLISECONDS,
  RESERVATION_DEADLINE_MILLISECONDS,
} from "../../shared/limits.ts";
import { type Transition, writeTransitions } from "../../shared/storage/badge-transitions.ts";
import { findHome, firstHome, queueOf } from "../homes.ts";
import { log } from "../log.ts";
import { Unavailable, withDeadline } from "../platform.ts";
import { type BadgeWrite, type NewReservation, writeBadges } from "../storage/badge-writes.ts";
import { type Claim, writeClaims } from "../storage/claim-writes.ts";
import { Database } from "../storage/database.ts";
import type { EndedInvitation } from "../storage/invitation-ends.ts";
import { badgeCreatedPayload } from "../webhooks/event.ts";
import { sendWakeUps } from "../webhooks/wake-up.ts";
import { adoptBadges, type InvitationLeases, type KnownBadge, listInvitationLeases } from "./adoption.ts";
import { type AllocationResult, type AllocationRules, Allocations } from "./allocations.ts";
import { type ClaimResult, Claims } from "./claims.ts";
import { settleUnconfirmed, skipKnownNumbers } from "./comparison.ts";
import { badgeHolder, type HolderKey, holderKey } from "./holder.ts";
import { Ledger } from "./ledger.ts";
import { OwnApplicationId } from "./own-application-id.ts";
import { RangeWarnings } from "./range-warnings.ts";
import { ReclaimAlarm } from "./reclaim-alarm.ts";
import { Settlement } from "./settlement.ts";
import { firstRow, integer } from "./sql.ts";

export interface IssueRequest {
  device: DeviceId;
  userId: string;
  metadata: string | null;
  signingKeyId: number;
  eventId: string;
  issuedAt: number;
  /** See `NewBadge`. */
  keyThumbprint?: string | null;
}

/** A transition, and the holder of the badge's number (holder.ts). */
export interface HeldTransition extends Transition {
  holder: HolderKey;
}

export type TransitionResult =
  | { kind: "written"; changes: { number: number; change: number }[] }
  | { kind: "unavailable" };

export interface RevokedBadge extends KnownBadge {
  /** Milliseconds. */
  revokedAt: number;
}

export type ReserveRequest = Omit<NewReservation, "kind" | "number">;

/** Workers deployed before invitations were released by number do not send it. */
type EndedLease = Omit<EndedInvitation, "number"> & { number?: number };

/**
 * One application's Durable Object, named by the application ID. It records which number is leased to which holder, and
 * writes concurrent requests to D1 in one batch. Every call may be repeated: a lease is found by its holder, a write by its
 * event ID or invitation. During a deployment, Workers of an earlier and a later release call the same object, so methods
 * accept the arguments of both.
 */
export class Allocator extends DurableObject<Env> {
  readonly #ledger = new Ledger(this.ctx.storage.sql);
  readonly #applicationId = new OwnApplicationId(this.ctx.storage.sql, this.ctx.id.name);
  readonly #warnings = new RangeWarnings(this.ctx.storage.sql);
  readonly #alarm = new ReclaimAlarm(this.ctx.storage, this.#ledger);
  readonly #settlement = new Settlement(this.#ledger, () => this.#openDatabase());
  readonly #allocations = new Allocations(
    this.#ledger,
    {
      write: async (writes) => {
        await withDeadline("object storage", PLATFORM_DEADLINE_MILLISECONDS, () => this.#alarm.ensure());
        const db = this.#openDatabase();
        const written = await writeBadges(db, this.#applicationId.value, writes, this.#ledger.progress.seen);
        return { ...written, bookmark: db.bookmark };
      },
      skipKnownNumbers: () => skipKnownNumbers(this.#openDatabase(), this.#ledger),
      settleOldLeases: () => this.#settlement.settleOldLeases(),
    },
    {
      leased: (rules, now) => this.#warnIfNearlyUsedUp(rules, now),
      recorded: (eventIds) => this.#wake(eventIds),
    },
  );
  readonly #claims = new Claims(
    this.#ledger,
    async (claims) => {
      const { seen } = this.#ledger.progress;
      const db = this.#openDatabase();
      const { results, written } = await writeClaims(db, this.#applicationId.value, claims, seen);
      this.#ledger.progress.note(written);
      return { results, bookmark: db.bookmark };
    },
    (eventIds) => this.#wake(eventIds),
  );

  issue(rules: AllocationRules, request: IssueRequest, applicationId?: ApplicationId): Promise<AllocationResult> {
    this.#applicationId.learn(applicationId);
    const holder = holderKey({ kind: "device", device: request.device, userId: request.userId });
    const write = (number: number): BadgeWrite => {
      const { eventId, userId, metadata, issuedAt, keyThumbprint = null } = request;
      const payload = badgeCreatedPayload({ eventId, createdAt: issuedAt, number, userId, metadata, keyThumbprint });
      return { kind: "issue", number, ...request, payload };
    };
    // If the badge is written after the caller has given up, the device's next request finds it.
    return orUnavailable(this.#allocations.allocate({ rules, holder, write, until: Number.POSITIVE_INFINITY }));
  }

  /**
   * The same for a badge that is to be bound to a key. An object of an earlier release, which would issue it unbound, does not
   * have this method, so during a deployment the call fails and is repeated.
   */
  issueBound(rules: AllocationRules, request: IssueRequest, applicationId?: ApplicationId): Promise<AllocationResult> {
    return this.issue(rules, request, applicationId);
  }

  /**
   * A reservation that took so long that the Worker may have given up is not reported, and its lease stays unconfirmed
   * until it is settled. The deadline counts from the object's own clock, so the two clocks need not agree.
   */
  reserve(rules: AllocationRules, request: ReserveRequest, applicationId?: ApplicationId): Promise<AllocationResult> {
    this.#applicationId.learn(applicationId);
    const holder = holderKey({ kind: "invitation", invitation: request.invitation });
    const write = (number: number): BadgeWrite => ({ kind: "reserve", number, ...request });
    const until = Date.now() + RESERVATION_DEADLINE_MILLISECONDS;
    return orUnavailable(this.#allocations.allocate({ rules, holder, write, until }));
  }

  /** Issues an invitation's number to a user device. */
  claim(claim: Claim, applicationId?: ApplicationId): Promise<ClaimResult> {
    this.#applicationId.learn(applicationId);
    return orUnavailable(this.#claims.claim(claim));
  }

  /** The same for a badge that is to be bound to a key; see `issueBound`. */
  claimBound(claim: Claim, applicationId?: ApplicationId): Promise<ClaimResult> {
    return this.claim(claim, applicationId);
  }

  /** Writes badge transitions. The ledger records revocations too, in case D1 is restored to an older state. */
  transition(transitions: readonly HeldTransition[], applicationId?: ApplicationId): Promise<TransitionResult> {
    this.#applicationId.learn(applicationId);
    return orUnavailable(this.#transition(transitions));
  }

  async #transition(transitions: readonly HeldTransition[]): Promise<TransitionResult> {
    const { seen } = this.#ledger.progress;
    const { changed, revoked, events } = await writeTransitions(
      this.#openDatabase(),
      this.#applicationId.value,
      transitions.map(({ holder: _, ...transition }) => transition),
      seen,
    );
    const isRevoked = new Set(revoked);
    for (const { number, holder, changedAt } of transitions) {
      if (isRevoked.has(number)) this.#ledger.noteRevocation(holder, number, changedAt);
    }
    this.#ledger.progress.note({ position: 0, change: Math.max(0, ...changed.map(({ change }) => change)) });
    this.#wake(events);
    return { kind: "written", changes: changed };
  }

  /** Records badges that were revoked in D1 without this object. @returns how many are new to it */
  noteRevocations(badges: readonly RevokedBadge[]): number {
    return badges.filter((badge) => {
      const holder = badgeHolder(badge);
      return holder && this.#ledger.noteRevocation(holderKey(holder), badge.number, badge.revokedAt);
    }).length;
  }

  /** @returns numbers of those badges that the ledger has recorded as revoked */
  findRevoked(badges: readonly KnownBadge[]): number[] {
    return badges.flatMap((badge) => {
      const holder = badgeHolder(badge);
      return holder && this.#ledger.isRevoked(holderKey(holder), badge.number) ? [badge.number] : [];
    });
  }

  /** For the one object that remembers the clock row of D1 (src/worker/storage/clock.ts): the highest sequence number. */
  seenClock(): number {
    return integer(firstRow(this.ctx.storage.sql, "SELECT sequence FROM clock_sequence")?.sequence ?? 0);
  }

  /** @param seen what `seenClock` returned before; a sequence number that is not above it takes its place: D1 was restored */
  noteClock(sequence: number, seen: number): void {
    const noted = sequence <= seen ? sequence : Math.max(sequence, this.seenClock());
    this.ctx.storage.sql.exec("INSERT OR REPLACE INTO clock_sequence (id, sequence) VALUES (1, ?)", noted);
  }

  /** @returns digests of those invitations that no longer hold their number in the ledger */
  findReleased(invitations: readonly { digest: InvitationDigest; number: number }[]): InvitationDigest[] {
    return invitations
      .filter(({ digest, number }) => {
        const holder = holderKey({ kind: "invitation", invitation: digest });
        return this.#ledger.checkClaim(holder, number, null) === "released";
      })
      .map(({ digest }) => digest);
  }

  /** Copies owners from D1 after this object was restored to an older state. @returns how many leases changed */
  adopt(badges: readonly KnownBadge[]): number {
    return adoptBadges(this.ctx.storage.sql, badges, Date.now());
  }

  invitationLeases(after: number, limit: number): InvitationLeases {
    return listInvitationLeases(this.ctx.storage.sql, after, limit);
  }

  /** Releases the numbers of ended invitations, as of the invitation's end. May be repeated. */
  release(ended: readonly EndedLease[]): void {
    for (const { digest: invitation, number, endedAt } of ended) {
      this.#ledger.release(holderKey({ kind: "invitation", invitation }), number ?? null, endedAt);
    }
  }

  /** Settles leases that were not confirmed within an hour. */
  override async alarm(): Promise<void> {
    try {
      const before = Date.now() - LEASE_RECLAIM_SECONDS * 1000;
      await settleUnconfirmed(this.#openDatabase(), this.#ledger, before);
    } catch (error) {
      // The runtime retries a failed alarm six times, then drops it (Durable Objects: Alarms). D1 may be down for longer.
      log("warn", { event: "reclaim-postponed", application: this.#applicationId.valueIfKnown, error });
    }
    await this.#alarm.renew();
  }

  /** The D1 of the application's home. An object that was never told its application is of a release that had one home. */
  #openDatabase(): Database {
    const id = this.#applicationId.valueIfKnown;
    const home = id === null ? firstHome(this.env) : findHome(this.env, homeOf(id));
    if (!home) throw new Error("the application's home is not bound");
    return new Database(home.d1);
  }

  /** Sends the wake-ups of a group at once, even if its callers have given up. */
  #wake(eventIds: readonly string[]): void {
    const id = this.#applicationId.value;
    this.ctx.waitUntil(sendWakeUps(queueOf(this.env, homeOf(id)), id, eventIds));
  }

  #warnIfNearlyUsedUp({ range, reuseAfterSeconds }: AllocationRules, now: number): void {
    const fresh = this.#ledger.countFresh(range);
    if (!this.#warnings.isNear(range, fresh)) return;
    const ready = this.#ledger.countReady(range, reuseAfterSeconds, now);
    if (ready === null) return;
    const left = fresh + ready;
    const usedPercent = this.#warnings.note(range, left);
    if (usedPercent === null) return;
    log("warn", { event: "range-fills-up", application: this.#applicationId.valueIfKnown, usedPercent, left });
  }
}

/** An exception would cross RPC as a fault of the object. */
async function orUnavailable<Result>(work: Promise<Result>): Promise<Result | { kind: "unavailable" }> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Unavailable) return { kind: "unavailable" };
    throw error;
  }
}
