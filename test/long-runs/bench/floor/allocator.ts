import { DurableObject } from "cloudflare:workers";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { createPermutation } from "../../../../src/worker/allocator/permutation.ts";
import {
  INSERT_BADGES,
  INSERT_EVENTS,
  INSERT_INVITATIONS,
  INSERT_RESERVATIONS,
} from "../../../../src/worker/storage/badge-writes.ts";
import {
  CLAIM_INVITATIONS,
  INSERT_EVENTS as INSERT_CLAIM_EVENTS,
  ISSUE_RESERVED,
} from "../../../../src/worker/storage/claim-writes.ts";

export interface FloorEnv {
  DB: D1Database;
  ALLOCATOR: DurableObjectNamespace<Allocator>;
  WEBHOOKS: Queue;
  DEVICE_LIMIT: RateLimit;
  CLIENT_IP_LIMIT: RateLimit;
  SEALING_KEY_1: string;
}

export interface NumberRange {
  first: number;
  last: number;
}

export interface IssueRequest {
  device: string;
  userId: string;
  metadata: string | null;
  signingKeyId: number;
  eventId: string;
  issuedAt: number;
}

export interface ReserveRequest {
  invitation: string;
  creatorDevice: string;
  expiresAt: string;
  expiresAtTime: number;
  createdAt: number;
}

export interface ClaimRequest {
  digest: string;
  number: number;
  device: string;
  userId: string;
  metadata: string | null;
  signingKeyId: number;
  eventId: string;
  payload: string;
  replacedNumber: number | null;
  claimedAt: number;
}

interface WaitingClaim {
  claim: ClaimRequest;
  /** The events of the whole group, told to one of its callers, or null for a claim that was not written. */
  done: PromiseWithResolvers<string[] | null>;
}

interface Waiting {
  kind: "issue" | "reserve";
  /** Event ID or digest of the token: what `RETURNING` names. */
  id: string;
  holder: string;
  range: NumberRange;
  /** What each of its two statements writes. */
  rows(number: number): [object, object];
  done: PromiseWithResolvers<Written>;
}

interface Written {
  number: number;
  /** Events of the whole group, told to one of its callers. */
  wakeUps: string[];
}

const MAX_GROUP = 100;
const RECLAIM_MILLISECONDS = 3600 * 1000;

/** The service's object, by hand: the same tables, a lease, group commit to D1, the note that D1 has it. */
export class Allocator extends DurableObject<FloorEnv> {
  #waiting: Waiting[] = [];
  #writing = false;
  #waitingClaims: WaitingClaim[] = [];
  #claiming = false;
  #alarmIsSet = false;
  #isCovered = false;
  #permutations = new Map<number, (index: number) => number>();

  constructor(state: DurableObjectState, env: FloorEnv) {
    super(state, env);
    state.storage.sql.exec(`
      CREATE TABLE IF NOT EXISTS permutation_key (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL);
      CREATE TABLE IF NOT EXISTS segment (first INTEGER PRIMARY KEY, size INTEGER NOT NULL, used INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS lease (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        holder TEXT NOT NULL UNIQUE,
        number INTEGER NOT NULL,
        leased_at INTEGER NOT NULL,
        confirmed INTEGER NOT NULL, claimed_by TEXT
      );
      CREATE TABLE IF NOT EXISTS free (id INTEGER PRIMARY KEY, number INTEGER NOT NULL UNIQUE, freed_at INTEGER NOT NULL);
      CREATE INDEX IF NOT EXISTS free_longest ON free (freed_at, id);
    `);
  }

  issue(range: NumberRange, request: IssueRequest): Promise<Written> {
    const holder = `device:${request.device}:${request.userId}`;
    const { eventId, issuedAt } = request;
    const rows = (number: number): [object, object] => [
      { ...request, number },
      { number, eventId, payload: badgeCreated(number, request), issuedAt },
    ];
    return this.#allocate({ kind: "issue", id: eventId, holder, range, rows });
  }

  async reserve(range: NumberRange, request: ReserveRequest): Promise<number> {
    const holder = `invitation:${request.invitation}`;
    const rows = (number: number): [object, object] => [
      { ...request, number },
      { ...request, number },
    ];
    return (await this.#allocate({ kind: "reserve", id: request.invitation, holder, range, rows })).number;
  }

  claim(claim: ClaimRequest): Promise<string[] | null> {
    const done = Promise.withResolvers<string[] | null>();
    this.#waitingClaims.push({ claim, done });
    if (!this.#claiming) void this.#drainClaims();
    return done.promise;
  }

  async #drainClaims(): Promise<void> {
    this.#claiming = true;
    await scheduler.wait(0);
    while (this.#waitingClaims.length > 0) await this.#writeClaims(this.#waitingClaims.splice(0, MAX_GROUP));
    this.#claiming = false;
  }

  async #writeClaims(group: readonly WaitingClaim[]): Promise<void> {
    try {
      const claims = group.map(({ claim }) => claim).filter((claim) => this.#mayClaim(claim));
      const rows = JSON.stringify(claims.map(({ payload: _, ...row }) => row));
      const events = claims.map(({ digest, eventId, payload, claimedAt }) => ({ digest, eventId, payload, claimedAt }));
      const { DB: d1 } = this.env;
      const application = this.ctx.id.name;
      const results = await d1.batch<{ written: string }>([
        d1.prepare(CLAIM_INVITATIONS).bind(rows, application),
        d1.prepare(INSERT_CLAIM_EVENTS).bind(JSON.stringify(events), application),
        d1.prepare(ISSUE_RESERVED).bind(rows, application),
      ]);
      const [claimed, pending] = results.map(({ results: rows }) => new Set(rows.map(({ written }) => written)));
      let wakeUps = [...(pending ?? [])];
      for (const { claim, done } of group) {
        if (!claimed?.has(claim.eventId)) {
          done.resolve(null);
          continue;
        }
        this.#noteClaim(claim);
        done.resolve(wakeUps);
        wakeUps = [];
      }
    } catch (error) {
      for (const { done } of group) done.reject(error);
    }
  }

  #mayClaim({ digest, number, device, userId }: ClaimRequest): boolean {
    const [held] = this.ctx.storage.sql
      .exec("SELECT number, claimed_by FROM lease WHERE holder = ?", `invitation:${digest}`)
      .toArray();
    return held?.number === number && (held.claimed_by === null || held.claimed_by === `device:${device}:${userId}`);
  }

  #noteClaim({ digest, number, device, userId }: ClaimRequest): void {
    this.ctx.storage.sql.exec(
      "UPDATE lease SET claimed_by = ? WHERE holder = ? AND number = ? AND claimed_by IS NULL",
      `device:${device}:${userId}`,
      `invitation:${digest}`,
      number,
    );
  }

  #lease(holder: string, { first, last }: NumberRange): number {
    const sql = this.ctx.storage.sql;
    const held = sql.exec<{ number: number }>("SELECT number FROM lease WHERE holder = ?", holder).toArray()[0];
    if (held) return held.number;
    const free = sql
      .exec<{ id: number; number: number }>("SELECT id, number FROM free ORDER BY freed_at, id LIMIT 1")
      .toArray()[0];
    if (free) sql.exec("DELETE FROM free WHERE id = ?", free.id);
    const number = free?.number ?? this.#fresh(first, last);
    sql.exec(
      "INSERT INTO lease (holder, number, leased_at, confirmed) VALUES (?, ?, ?, 0)",
      holder,
      number,
      Date.now(),
    );
    return number;
  }

  #fresh(first: number, last: number): number {
    const sql = this.ctx.storage.sql;
    if (!this.#isCovered) {
      sql.exec("INSERT OR IGNORE INTO segment (first, size, used) VALUES (?, ?, 0)", first, last - first + 1);
      this.#isCovered = true;
    }
    const segment = sql
      .exec<{ first: number; size: number; used: number }>(
        `UPDATE segment SET used = used + 1
         WHERE first = (SELECT first FROM segment WHERE used < size ORDER BY first LIMIT 1) RETURNING first, size, used`,
      )
      .one();
    return segment.first + this.#permutation(segment)(segment.used - 1);
  }

  #permutation({ first, size }: { first: number; size: number }): (index: number) => number {
    const known = this.#permutations.get(first);
    if (known) return known;
    const sql = this.ctx.storage.sql;
    const made = crypto.getRandomValues(new Uint8Array(32));
    sql.exec("INSERT OR IGNORE INTO permutation_key (id, key) VALUES (1, ?)", made);
    const { key } = sql.exec<{ key: ArrayBuffer }>("SELECT key FROM permutation_key").one();
    const permutation = createPermutation(
      hmac(sha256, new Uint8Array(key), new TextEncoder().encode(String(first))),
      size,
    );
    this.#permutations.set(first, permutation);
    return permutation;
  }

  #confirm(holder: string): void {
    this.ctx.storage.sql.exec("UPDATE lease SET confirmed = 1 WHERE holder = ? AND confirmed = 0", holder);
  }

  async #ensureAlarm(): Promise<void> {
    if (this.#alarmIsSet) return;
    this.#alarmIsSet = true;
    if ((await this.ctx.storage.getAlarm()) === null) {
      await this.ctx.storage.setAlarm(Date.now() + RECLAIM_MILLISECONDS);
    }
  }

  override alarm(): void {
    // No lease of a benchmark grows an hour old.
  }

  #allocate(asked: Omit<Waiting, "done">): Promise<Written> {
    const done = Promise.withResolvers<Written>();
    this.#waiting.push({ ...asked, done });
    if (!this.#writing) void this.#drain();
    return done.promise;
  }

  async #drain(): Promise<void> {
    this.#writing = true;
    await scheduler.wait(0);
    while (this.#waiting.length > 0) await this.#writeGroup(this.#waiting.splice(0, MAX_GROUP));
    this.#writing = false;
  }

  async #writeGroup(group: readonly Waiting[]): Promise<void> {
    try {
      const leased = group.map((asked) => ({ ...asked, number: this.#lease(asked.holder, asked.range) }));
      await this.#ensureAlarm();
      const results = await this.env.DB.batch<{ written?: string }>([
        ...this.#statements(leased, "issue", INSERT_BADGES, INSERT_EVENTS),
        ...this.#statements(leased, "reserve", INSERT_RESERVATIONS, INSERT_INVITATIONS),
      ]);
      const written = new Set<string | undefined>();
      for (const { results: rows } of results) for (const row of rows) written.add(row.written);
      const issues = group.some(({ kind }) => kind === "issue");
      const events = new Set(issues ? results[1]?.results.map((row) => row.written) : []);
      let wakeUps = leased.map(({ id }) => id).filter((id) => events.has(id));
      for (const { id, holder, number, done } of leased) {
        if (!written.has(id)) throw new Error("a benchmark's badge was not written");
        this.#confirm(holder);
        done.resolve({ number, wakeUps });
        wakeUps = [];
      }
    } catch (error) {
      for (const { done } of group) done.reject(error);
    }
  }

  #statements(
    group: readonly (Waiting & { number: number })[],
    wanted: Waiting["kind"],
    ...queries: readonly string[]
  ) {
    const rows = group.filter(({ kind }) => kind === wanted).map(({ rows, number }) => rows(number));
    if (rows.length === 0) return [];
    return queries.map((query, place) => {
      const json = JSON.stringify(rows.map((two) => two[place]));
      return this.env.DB.prepare(query).bind(json, this.ctx.id.name);
    });
  }
}

/** The webhook's body, as the service makes it. */
export function badgeCreated(
  number: number,
  { eventId, issuedAt, userId, metadata }: Pick<IssueRequest, "eventId" | "issuedAt" | "userId" | "metadata">,
  invitationId?: string,
): string {
  return JSON.stringify({
    id: eventId,
    event: "badge:created",
    createdAt: new Date(issuedAt).toISOString(),
    data: { id: String(number), userId, ...(metadata !== null && { metadata: JSON.parse(metadata) }), invitationId },
  });
}
