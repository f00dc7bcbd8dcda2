import { DurableObject } from "cloudflare:workers";
import { LEASE_RECLAIM_SECONDS, MAX_GROUP_BADGES, MAX_LEASE_ATTEMPTS } from "../limits.ts";
import { log } from "../log.ts";
import { Unavailable } from "../platform.ts";
import { type BadgeWrite, type NewReservation, type WriteResult, writeBadges } from "../storage/badge-writes.ts";
import { Database } from "../storage/database.ts";
import type { EndedInvitation } from "../storage/invitations.ts";
import { badgeCreatedPayload } from "../webhooks/event.ts";
import { adoptBadges, type InvitationLeases, type KnownBadge, listInvitationLeases } from "./adoption.ts";
import { settleUnconfirmed, skipKnownNumbers } from "./comparison.ts";
import { GroupCommit } from "./group-commit.ts";
import { holderKey } from "./holder.ts";
import { type ClaimStanding, Ledger, type NumberRange } from "./ledger.ts";

/** What the object needs to know of its application to lease a number. */
export interface AllocationRules {
  range: NumberRange;
  reuseAfterSeconds: number;
}

export interface IssueRequest {
  device: string;
  userId: string;
  metadata: string | null;
  signingKeyId: number;
  eventId: string;
  issuedAt: number;
}

export interface UserDeviceName {
  device: string;
  userId: string;
}

export type ReserveRequest = Omit<NewReservation, "kind" | "number">;

/**
 * Business outcomes are values: an exception would cross RPC as a fault of the object. One caller of each group is given
 * the IDs of all events that the group wrote and the queue is to hear of, so that one message batch does for all.
 */
export type AllocationResult =
  | { kind: "written"; number: number; wakeUps: readonly string[] }
  | { kind: "existing"; number: number }
  | { kind: "exhausted" }
  | { kind: "unavailable" };

/** A number that somebody asks for, and what D1 is to hold of it. */
interface Allocation {
  rules: AllocationRules;
  holder: string;
  write(number: number): BadgeWrite;
}

/**
 * One application's object; its name is the application ID. It knows which number is leased to which holder, and writes
 * the badges being issued at one moment to D1 in one batch. Every call may be repeated: the lease by its holder, the
 * write by its event ID or invitation.
 */
export class Allocator extends DurableObject<Env> {
  readonly #ledger = new Ledger(this.ctx.storage.sql);
  readonly #group = new GroupCommit<Allocation, AllocationResult | null>(MAX_GROUP_BADGES, (group) =>
    this.#allocateAll(group),
  );
  #alarmIsSet = false;
  #skipping: Promise<void> | null = null;

  issue(rules: AllocationRules, request: IssueRequest): Promise<AllocationResult> {
    const holder = holderKey({ kind: "device", device: request.device, userId: request.userId });
    const write = (number: number): BadgeWrite => {
      const { eventId, userId, metadata, issuedAt } = request;
      const payload = badgeCreatedPayload({ eventId, createdAt: issuedAt, number, userId, metadata });
      return { kind: "issue", number, ...request, payload };
    };
    return this.#allocate({ rules, holder, write });
  }

  reserve(rules: AllocationRules, request: ReserveRequest): Promise<AllocationResult> {
    const holder = holderKey({ kind: "invitation", invitation: request.invitation });
    return this.#allocate({ rules, holder, write: (number) => ({ kind: "reserve", number, ...request }) });
  }

  /** Whether D1 may give an invitation's number to this user device: it may have been restored to an older state. */
  mayClaim(invitation: string, number: number, { device, userId }: UserDeviceName): ClaimStanding {
    return this.#ledger.mayClaim(
      holderKey({ kind: "invitation", invitation }),
      number,
      holderKey({ kind: "device", device, userId }),
    );
  }

  /** Notes that D1 gave an invitation's number to this user device. */
  noteClaim(invitation: string, number: number, { device, userId }: UserDeviceName): void {
    this.#ledger.noteClaim(
      holderKey({ kind: "invitation", invitation }),
      number,
      holderKey({ kind: "device", device, userId }),
    );
  }

  /** Which of these invitations do not have their number here any more. */
  whichGaveBack(invitations: readonly { digest: string; number: number }[]): string[] {
    return invitations
      .filter(({ digest, number }) => {
        const holder = holderKey({ kind: "invitation", invitation: digest });
        return this.#ledger.mayClaim(holder, number, "") === "given-back";
      })
      .map(({ digest }) => digest);
  }

  /** Takes over what D1 knows of its numbers, after this object was restored. @returns how many leases changed */
  adopt(badges: readonly KnownBadge[]): number {
    return adoptBadges(this.ctx.storage.sql, badges, Date.now());
  }

  invitationLeases(after: number, limit: number): InvitationLeases {
    return listInvitationLeases(this.ctx.storage.sql, after, limit);
  }

  /** Takes back the numbers of ended invitations, each free since its invitation's end. Repeated, it does nothing. */
  release(ended: readonly EndedInvitation[]): void {
    for (const { digest: invitation, endedAt } of ended) {
      this.#ledger.release(holderKey({ kind: "invitation", invitation }), endedAt);
    }
  }

  /** Takes back leases whose badge never came to D1 within an hour. */
  override async alarm(): Promise<void> {
    try {
      await this.#reclaim();
    } catch (error) {
      // The runtime repeats a failed alarm six times and then drops it (Durable Objects: Alarms). D1 may be away longer.
      log("warn", { event: "reclaim-postponed", application: this.ctx.id.name, error });
      await this.#setAlarm();
    }
  }

  async #reclaim(): Promise<void> {
    const before = Date.now() - LEASE_RECLAIM_SECONDS * 1000;
    await settleUnconfirmed(new Database(this.env.DB), this.#ledger, before);
    this.#alarmIsSet = this.#ledger.finishScan();
    if (this.#alarmIsSet) await this.#setAlarm();
  }

  async #allocate(allocation: Allocation): Promise<AllocationResult> {
    try {
      for (let attempt = 0; attempt < MAX_LEASE_ATTEMPTS; attempt++) {
        const result = await this.#group.add(allocation);
        if (result) return result;
        await this.#skipTaken();
      }
      return { kind: "unavailable" };
    } catch (error) {
      if (error instanceof Unavailable) return { kind: "unavailable" };
      throw error;
    }
  }

  /**
   * Leases, writes and confirms for a group. What is noted here before the first `await` and after the last one is one
   * transaction of the object's storage for all of the group, and for the one before it under load: a commit each would
   * cost more than all else.
   *
   * @returns for each, in the same order, its result, or null when another number must be tried
   */
  async #allocateAll(group: readonly Allocation[]): Promise<(AllocationResult | null)[]> {
    const now = Date.now();
    const leases = group.map(({ holder, rules }) =>
      this.#ledger.lease(holder, rules.range, rules.reuseAfterSeconds, now),
    );
    const writes = group.flatMap(({ write }, place) => {
      const lease = leases[place];
      return lease?.kind === "leased" ? [write(lease.number)] : [];
    });
    if (writes.length === 0) return group.map(() => ({ kind: "exhausted" }));
    await this.#ensureAlarm();
    const results = await writeBadges(new Database(this.env.DB), this.#applicationId, writes);
    let wakeUps = pendingEvents(writes, results);
    const remaining = results.values();
    return group.map(({ holder }, place) => {
      const lease = leases[place];
      if (lease?.kind !== "leased") return { kind: "exhausted" };
      const { value: result } = remaining.next();
      if (!result) throw new Error("a lease was written without a result");
      const settled = this.#apply(holder, lease.number, result);
      if (settled?.kind !== "written") return settled;
      const written = { ...settled, wakeUps };
      wakeUps = [];
      return written;
    });
  }

  /** Brings the ledger in line with what D1 said. @returns null when another number must be tried */
  #apply(holder: string, number: number, result: WriteResult): AllocationResult | null {
    switch (result.kind) {
      case "written":
        this.#ledger.confirm(holder, number);
        return { kind: "written", number: result.number, wakeUps: [] };
      case "existing":
        if (result.number === number) this.#ledger.confirm(holder, number);
        else this.#giveUp(holder, number, result.leasedNumberTaken);
        return { kind: "existing", number: result.number };
      case "ended":
        // Its own number or another that it was leased now: the invitation needs none any more.
        this.#giveUp(holder, number, result.leasedNumberTaken);
        return { kind: "existing", number: result.number };
      case "taken":
        this.#ledger.markTaken(holder, number);
        return null;
    }
  }

  #giveUp(holder: string, number: number, isTaken: boolean): void {
    if (isTaken) this.#ledger.markTaken(holder, number);
    else this.#ledger.release(holder, Date.now());
  }

  /**
   * After one taken number others are likely: this object was restored to an older state. Passes over all that come next
   * and that D1 knows, once for everybody who met one.
   */
  #skipTaken(): Promise<void> {
    this.#skipping ??= skipKnownNumbers(new Database(this.env.DB), this.#ledger).finally(() => {
      this.#skipping = null;
    });
    return this.#skipping;
  }

  get #applicationId(): string {
    const { name } = this.ctx.id;
    if (name === undefined) throw new Error("an allocator is named by its application ID");
    return name;
  }

  async #ensureAlarm(): Promise<void> {
    if (this.#alarmIsSet) return;
    if ((await this.ctx.storage.getAlarm()) === null) await this.#setAlarm();
    this.#alarmIsSet = true;
  }

  #setAlarm(): Promise<void> {
    return this.ctx.storage.setAlarm(Date.now() + LEASE_RECLAIM_SECONDS * 1000);
  }
}

function pendingEvents(writes: readonly BadgeWrite[], results: readonly WriteResult[]): readonly string[] {
  return writes.flatMap((write, place) => {
    const result = results[place];
    const isPending = result?.kind === "written" && result.eventPending;
    return write.kind === "issue" && isPending ? [write.eventId] : [];
  });
}
