import { DurableObject } from "cloudflare:workers";
import { MAX_GROUP_BADGES } from "../../../../src/shared/limits.ts";
import type { NumberRange } from "../../../../src/shared/number-range.ts";
import { FreshNumbers } from "../../../../src/worker/allocator/fresh-numbers.ts";
import { GroupCommit } from "../../../../src/worker/allocator/group-commit.ts";
import { createTables } from "../../../../src/worker/allocator/ledger-tables.ts";
import * as writes from "../../../../src/worker/storage/badge-writes.ts";
import * as claims from "../../../../src/worker/storage/claim-writes.ts";
import { withTurnSteps } from "../../../../src/worker/storage/turns.ts";
import { badgeCreatedPayload } from "../../../../src/worker/webhooks/event.ts";

export interface FloorEnv {
  DB: D1Database;
  ALLOCATOR: DurableObjectNamespace<Allocator>;
  WEBHOOKS: Queue;
  DEVICE_LIMIT: RateLimit;
  CLIENT_IP_LIMIT: RateLimit;
}

export type IssueRequest = Omit<writes.NewBadge, "kind" | "number" | "payload">;
export type ReserveRequest = Omit<writes.NewReservation, "kind" | "number">;

/** A number that one holder wants, and what is written to D1 with it. */
interface Wanted {
  holder: string;
  range: NumberRange;
  issue?: IssueRequest;
  reserve?: ReserveRequest;
}

interface Written {
  number: number;
  /** Events of the whole group, told to one of its callers. */
  wakeUps: string[];
}

const RECLAIM_MILLISECONDS = 3600 * 1000;

/** The service's object, by hand: the same tables, a lease, group commit to D1, the note that D1 has it. */
export class Allocator extends DurableObject<FloorEnv> {
  readonly #sql = this.ctx.storage.sql;
  readonly #fresh = new FreshNumbers(this.#sql);
  readonly #wanted = new GroupCommit<Wanted, Written>(MAX_GROUP_BADGES, (group) => this.#writeGroup(group));
  readonly #claims = new GroupCommit<claims.Claim, string[]>(MAX_GROUP_BADGES, (group) => this.#writeClaims(group));
  #alarmIsSet = false;

  constructor(state: DurableObjectState, env: FloorEnv) {
    super(state, env);
    createTables(state.storage.sql);
  }

  issue(range: NumberRange, issue: IssueRequest): Promise<Written> {
    return this.#wanted.add({ holder: `device:${issue.device}:${issue.userId}`, range, issue });
  }

  async reserve(range: NumberRange, reserve: ReserveRequest): Promise<number> {
    return (await this.#wanted.add({ holder: `invitation:${reserve.invitation}`, range, reserve })).number;
  }

  /** @returns events of the whole group, told to one of its callers */
  claim(claim: claims.Claim): Promise<string[]> {
    return this.#claims.add(claim);
  }

  override alarm(): void {
    // No lease of a benchmark grows an hour old.
  }

  async #writeGroup(group: readonly Wanted[]): Promise<Written[]> {
    const leased = group.map((wanted) => ({ ...wanted, number: this.#lease(wanted) }));
    await this.#ensureAlarm();
    const issues = leased.flatMap(({ issue, number }) => (issue ? [{ ...issue, number }] : []));
    const reservations = leased.flatMap(({ reserve, number }) => (reserve ? [{ ...reserve, number }] : []));
    const events = issues.map(({ number, eventId, userId, metadata, issuedAt }) => {
      const payload = badgeCreatedPayload({ eventId, createdAt: issuedAt, number, userId, metadata });
      return { number, eventId, payload, issuedAt };
    });
    const badges = withTurnSteps(issues);
    const results = await this.env.DB.batch<{ written?: string }>([
      ...(issues.length > 0 ? [this.#bound(writes.INSERT_BADGES, badges, 0, 0)] : []),
      ...(issues.length > 0 ? [this.#bound(writes.INSERT_EVENTS, events)] : []),
      ...(reservations.length > 0 ? [this.#bound(writes.INSERT_RESERVATIONS, reservations)] : []),
      ...(reservations.length > 0 ? [this.#bound(writes.INSERT_INVITATIONS, reservations)] : []),
    ]);
    const written = results.map(({ results: rows }) => rows.map((row) => row.written ?? ""));
    const inserted = new Set(written.flat());
    const wakeUps = issues.length > 0 ? (written[1] ?? []) : [];
    return leased.map(({ holder, number, issue, reserve }, place) => {
      if (!inserted.has(issue?.eventId ?? reserve?.invitation ?? "")) throw new Error("a badge was not written");
      this.#sql.exec("UPDATE lease SET confirmed = 1 WHERE holder = ? AND confirmed = 0", holder);
      return { number, wakeUps: place === 0 ? wakeUps : [] };
    });
  }

  #lease({ holder, range }: Wanted): number {
    const [held] = this.#sql.exec<{ number: number }>("SELECT number FROM lease WHERE holder = ?", holder).toArray();
    if (held) return held.number;
    const number = this.#fresh.take(range, () => {});
    if (number === null) throw new Error("a benchmark's range is long enough");
    const insert = "INSERT INTO lease (holder, number, leased_at, confirmed) VALUES (?, ?, ?, 0)";
    this.#sql.exec(insert, holder, number, Date.now());
    return number;
  }

  async #ensureAlarm(): Promise<void> {
    if (this.#alarmIsSet) return;
    this.#alarmIsSet = true;
    const { storage } = this.ctx;
    if ((await storage.getAlarm()) === null) await storage.setAlarm(Date.now() + RECLAIM_MILLISECONDS);
  }

  async #writeClaims(group: readonly claims.Claim[]): Promise<string[][]> {
    for (const { digest, number } of group) {
      const held = this.#sql.exec("SELECT number, claimed_by FROM lease WHERE holder = ?", `invitation:${digest}`);
      const [lease] = held.toArray();
      if (lease?.number !== number || lease.claimed_by !== null) throw new Error("a claim meets no other");
    }
    const rows = withTurnSteps(group.map(({ payload: _, ...row }) => row));
    const events = group.map(({ digest, eventId, payload, claimedAt }) => ({ digest, eventId, payload, claimedAt }));
    const [claimed, inserted] = await this.env.DB.batch<{ written: string }>([
      this.#bound(claims.CLAIM_INVITATIONS, rows),
      this.#bound(claims.INSERT_EVENTS, events),
      this.#bound(claims.ISSUE_RESERVED, rows, 0, 0),
    ]);
    if (claimed?.results.length !== group.length) throw new Error("a claim was not written");
    const note = "UPDATE lease SET claimed_by = ? WHERE holder = ? AND number = ? AND claimed_by IS NULL";
    return group.map(({ digest, number, device, userId }, place) => {
      this.#sql.exec(note, `device:${device}:${userId}`, `invitation:${digest}`, number);
      return place === 0 ? (inserted?.results.map(({ written }) => written) ?? []) : [];
    });
  }

  #bound(sql: string, rows: readonly object[], ...more: number[]): D1PreparedStatement {
    return this.env.DB.prepare(sql).bind(JSON.stringify(rows), this.ctx.id.name, ...more);
  }
}
