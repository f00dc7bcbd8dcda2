import { runInDurableObject } from "cloudflare:test";
import type { AuditContext } from "../../../src/shared/actor.ts";
import {
  type DeviceId,
  deviceId,
  invitationDigest,
  newApplicationId,
  type UserDigest,
  userDigest,
} from "../../../src/shared/identifiers.ts";
import { INITIAL_HEAD } from "../../../src/shared/initial-head.ts";
import type { BadgeCommand, NewInvitation, Rules } from "../../../src/worker/allocator/commands.ts";
import type { Counters } from "../../../src/worker/allocator/counters.ts";
import { ROW_KEYS, type RowTable } from "../../../src/worker/allocator/log-entry.ts";
import { clearRows, insertRows } from "../../../src/worker/allocator/tables/bulk.ts";
import { Tables } from "../../../src/worker/allocator/tables/tables.ts";
import { Transaction } from "../../../src/worker/allocator/transaction.ts";
import type { InvitationRow, IssuedBadge } from "../../../src/worker/storage/rows.ts";
import { allocatorOf } from "../../support/allocator.ts";

/** Decisions on an allocator's own tables, in a transaction at noon. */

export const NOW = Date.UTC(2026, 10, 22, 12);
export const HOUR = 3600 * 1000;
export const SERVER: AuditContext = { actor: { kind: "server" } };
export const DEVICE: AuditContext = { actor: { kind: "device" } };

export const PHONE = deviceId.parse("phone");
export const DIGEST = invitationDigest.parse("digest");

const COUNTERS: Counters = {
  ...INITIAL_HEAD,
  rangeSegments: [{ first: 1000, size: 100, used: 10 }],
  lastOrdinal: 20,
  lastChange: 40,
  lastSigningKey: 5,
  epoch: "epoch",
};

type Values = Record<string, unknown>;

/** The transaction of a test: fresh numbers come in rising order, and the last of several freed ones is drawn. */
export class Scene extends Transaction {
  constructor(tables: Tables, counters: Partial<Counters>) {
    const numberAt = ({ first }: { first: number }, index: number) => first + index;
    super(tables, { ...COUNTERS, ...counters }, { now: NOW, numberAt, randomBelow: (limit) => limit - 1 });
  }

  get entries() {
    return this.finish();
  }

  get events() {
    return this.entries.flatMap(({ changes }) => changes.events);
  }

  get history() {
    return this.entries.flatMap(({ changes }) => changes.history);
  }

  get actions(): string[] {
    return this.history.map(({ action }) => action);
  }

  /** What the entries store of one table; columns that are null in an inserted row are left out. */
  changes(table: RowTable): { inserted: Values[]; updated: { key: unknown; columns: Values }[]; deleted: unknown[] } {
    const writes = this.entries.flatMap(({ changes }) => changes.rows).filter((write) => write.table === table);
    const rowsOf = (op: string) =>
      writes
        .filter((write) => write.op === op)
        .flatMap(({ columns, rows }) =>
          rows.map((row): Values => Object.fromEntries(columns.map((name, index) => [name, row[index]]))),
        );
    const key = ROW_KEYS[table];
    return {
      inserted: rowsOf("insert"),
      updated: rowsOf("update").map(({ [key]: value, ...columns }) => ({ key: value, columns })),
      deleted: rowsOf("delete").map((row) => row[key]),
    };
  }

  issued(number: number): IssuedBadge | undefined {
    return this.tables.issued(number);
  }

  /** The allocator has an issued badge. */
  loadBadge(more: Partial<IssuedBadge> = {}): IssuedBadge {
    const badge = { ...BADGE, ...more };
    insertRows(this.tables.orm, "badge", [badge]);
    return badge;
  }

  loadBadges(badges: readonly Partial<IssuedBadge>[]): void {
    const rows = badges.map((more) => ({ ...BADGE, ...more }));
    insertRows(this.tables.orm, "badge", rows);
  }

  /** The allocator has an invitation, with its reservation while it is pending. */
  loadInvitation(more: Partial<InvitationRow> = {}): InvitationRow {
    const ended = { state: "pending", endedAt: null, claimDevice: null, claimUserId: null } as const;
    const invitation = { ...NEW_INVITATION, ...ended, number: 1050, ...more };
    insertRows(this.tables.orm, "invitation", [{ ...invitation }]);
    const { number, digest, state } = invitation;
    if (state === "pending") insertRows(this.tables.orm, "badge", [{ number, invitation: digest, state: "active" }]);
    return invitation;
  }

  loadBlock(userId: string, blockedAt = NOW, digest: UserDigest | null = null): void {
    insertRows(this.tables.orm, "blockedUser", [{ userId, blockedAt, userDigest: digest }]);
  }

  loadFreed(number: number, freedAt: number): void {
    insertRows(this.tables.orm, "freedNumber", [{ number, freedAt }]);
  }
}

/** Begins a transaction on tables without rows. */
type Open = (counters?: Partial<Counters>) => Scene;

/** Runs a test in an allocator that nobody has called. */
export const inAllocator = (run: (open: Open) => void): Promise<void> =>
  runInDurableObject(allocatorOf({ id: newApplicationId(1) }), (_, { storage }) => {
    const tables = new Tables(storage);
    run((counters = {}) => {
      clearRows(tables.orm);
      return new Scene(tables, counters);
    });
  });

export const RULES: Rules = {
  range: { first: 1000, last: 1099 },
  reuseAfterSeconds: 0,
  requireProof: false,
  bindUntil: null,
  newBadgesPerHour: null,
  rootKey: { sealed: "sealed", sealingVersion: 1 },
  signingKey: { id: 5, kid: "kid", publicKey: "key", sealed: "sealed", sealingVersion: 1, createdAt: 0, signsFrom: 0 },
};

const BADGE: IssuedBadge = {
  number: 1001,
  device: PHONE,
  userId: "alice",
  metadata: null,
  signingKeyId: 5,
  eventId: "evt_1",
  ordinal: 1,
  loginSequence: 1,
  invitation: null,
  issuedAt: NOW - HOUR,
  state: "active",
  expiresAt: null,
  startsAt: null,
  name: null,
  endedAt: null,
  supersededAt: null,
  keyThumbprint: null,
  rebindUntil: null,
  change: 10,
  changedAt: NOW - HOUR,
  statusChange: null,
};

export const NEW_INVITATION: NewInvitation = {
  digest: DIGEST,
  creatorDevice: deviceId.parse("server's device"),
  withSecret: true,
  byReception: false,
  expiresAt: "2026-11-23T12:00:00Z",
  expiresAtTime: NOW + 24 * HOUR,
  badgeExpiresAt: null,
  badgeExpiresAtTime: null,
  badgeStartsAt: null,
  badgeStartsAtTime: null,
  name: null,
  userId: null,
  createdAt: NOW - HOUR,
};

export const digestOfUser = (userId: string): UserDigest => userDigest.parse(`digest of ${userId}`);

/** `POST /v1/badge` of alice's phone. */
export const request = ({ userId = "alice", ...more }: Partial<BadgeCommand> = {}): BadgeCommand => ({
  kind: "badge",
  rules: RULES,
  device: PHONE,
  userId,
  userDigest: digestOfUser(userId),
  metadata: null,
  keyThumbprint: null,
  isVerified: true,
  invitation: null,
  ...more,
});

export const claimOf = (more: Partial<BadgeCommand> = {}): BadgeCommand =>
  request({ invitation: { digest: DIGEST, token: "inv_token" }, ...more });

export const device = (name: string): DeviceId => deviceId.parse(name);

/** Bodies of the events that were decided, without their IDs and times. */
export const eventsOf = (scene: Scene): { event: string; data: unknown }[] =>
  scene.events.map(({ payload: { event, data } }) => ({ event, data: JSON.parse(JSON.stringify(data)) }));

export const refused = (code: string) => ({ kind: "refused", code });
