import {
  and,
  asc,
  count,
  desc,
  eq,
  exists,
  getTableColumns,
  inArray,
  isNotNull,
  lte,
  type Placeholder,
  sql,
} from "drizzle-orm";
import { type DrizzleSqliteDODatabase, drizzle } from "drizzle-orm/durable-sqlite";
import { migrate } from "drizzle-orm/durable-sqlite/migrator";
import type { ApplicationId, DeviceId, InvitationDigest, UserDigest } from "../../../shared/identifiers.ts";
import { MAX_USER_BADGES } from "../../../shared/limits/allocator-limits.ts";
import {
  type BadgeRow,
  type BlockRow,
  type FreedRow,
  type InvitationRow,
  type IssuedBadge,
  isIssued,
} from "../../storage/rows.ts";
import type { EntryKey, Erasure } from "../log-entry.ts";
import migrations from "./migrations/migrations.js";
import { allocator, badge, blockedUser, erasure, freedNumber, invitation, usedKey } from "./schema.ts";

export type Orm = DrizzleSqliteDODatabase;

/** An erased user for whom D1 is still searched. */
export type PendingErasure = typeof erasure.$inferSelect;

/** A live badge: issued and not superseded. Written in SQL, to match the indexes' conditions. */
const IS_LIVE = sql`${badge.ordinal} IS NOT NULL AND ${badge.supersededAt} IS NULL`;

/** As the index `badge_user` has it: 0 for badges that have not ended, 1 for expired ones, 2 for revoked and replaced ones. */
const END_RANK = sql`(CASE WHEN ${badge.state} = 'revoked' OR ${badge.state} = 'replaced' THEN 2 ELSE ${badge.endedAt} IS NOT NULL END)`;

/** As the indexes `badge_end` and `invitation_end` have them. */
const HAS_OPEN_END = sql`${badge.expiresAt} IS NOT NULL AND ${badge.endedAt} IS NULL`;
const IS_PENDING = sql`${invitation.state} = 'pending'`;

/** The allocator's rows, read one by one as decisions need them. The queries that every call or group makes are prepared once. */
export class Tables {
  readonly orm: Orm;
  readonly #badgeOf;
  readonly #lastLoginSequence;
  readonly #block;
  readonly #self;
  readonly #pendingErasure;
  readonly insertBadge;

  constructor(storage: DurableObjectStorage) {
    const orm = drizzle(storage);
    this.orm = orm;
    const device = sql.placeholder("device");
    this.#badgeOf = orm
      .select()
      .from(badge)
      .where(and(eq(badge.device, device), eq(badge.userId, sql.placeholder("userId")), IS_LIVE))
      .prepare();
    const last = orm
      .select({ loginSequence: badge.loginSequence })
      .from(badge)
      .where(and(eq(badge.device, device), IS_LIVE, sql`${badge.loginSequence} > 1`))
      .orderBy(desc(badge.loginSequence))
      .limit(1);
    const first = orm
      .select({ number: badge.number })
      .from(badge)
      .where(and(eq(badge.device, device), isNotNull(badge.userId), IS_LIVE));
    this.#lastLoginSequence = orm
      // A device's first badge has login sequence 1 and is not in that index.
      .select({ loginSequence: sql<number>`coalesce(${last}, ${exists(first)})` })
      .from(sql`(SELECT 1)`)
      .prepare();
    this.#block = orm
      .select()
      .from(blockedUser)
      .where(
        sql`${blockedUser.userId} = ${sql.placeholder("userId")}
          OR (${blockedUser.userDigest} IS NOT NULL AND ${blockedUser.userDigest} = ${sql.placeholder("userDigest")})`,
      )
      .prepare();
    this.#self = orm.select().from(allocator).prepare();
    this.#pendingErasure = orm.select().from(erasure).orderBy(asc(erasure.alias)).limit(1).prepare();
    this.insertBadge = orm.insert(badge).values(placeholders(badge)).prepare();
  }

  /** Makes the tables, or brings them up to this release. Before it is done nothing else may use them. */
  migrate(): Promise<void> {
    return migrate(this.orm, migrations);
  }

  badge(number: number): BadgeRow | undefined {
    return this.orm.select().from(badge).where(eq(badge.number, number)).get();
  }

  /** An issued badge by its number. */
  issued(number: number): IssuedBadge | undefined {
    const row = this.badge(number);
    return isIssued(row) ? row : undefined;
  }

  /** The badge of a user device. */
  badgeOf(device: DeviceId, userId: string): IssuedBadge | undefined {
    const row = this.#badgeOf.get({ device, userId });
    return isIssued(row) ? row : undefined;
  }

  /** The highest login sequence number of a device's badges; 0 if it has none. */
  lastLoginSequence(device: DeviceId): number {
    return this.#lastLoginSequence.get({ device })?.loginSequence ?? 0;
  }

  /** Badges of a user: first those that have not ended, the oldest first. @param which `revocable`: those that a block revokes */
  badgesOfUser(userId: string, which: "revocable" | "all", limit: number): IssuedBadge[] {
    const ofUser = and(eq(badge.userId, userId), isNotNull(badge.ordinal));
    return this.orm
      .select()
      .from(badge)
      .where(which === "all" ? ofUser : and(ofUser, sql`${END_RANK} < 2`))
      .orderBy(END_RANK, badge.ordinal)
      .limit(limit)
      .all()
      .filter(isIssued);
  }

  /** Whether a user has as many badges that have not ended as a user may have. */
  hasAllBadges(userId: string): boolean {
    const ofUser = and(eq(badge.userId, userId), isNotNull(badge.ordinal), sql`${END_RANK} = 0`);
    const select = this.orm.select({ number: badge.number }).from(badge).where(ofUser);
    return (
      select
        .limit(1)
        .offset(MAX_USER_BADGES - 1)
        .get() !== undefined
    );
  }

  block(userId: string, userDigest: UserDigest): BlockRow | undefined {
    return this.#block.get({ userId, userDigest });
  }

  isBlocked(userId: string, userDigest: UserDigest): boolean {
    return this.block(userId, userDigest) !== undefined;
  }

  invitation(digest: InvitationDigest): InvitationRow | undefined {
    return this.orm.select().from(invitation).where(eq(invitation.digest, digest)).get();
  }

  /** Invitations that name a user. */
  invitationsNaming(userId: string, limit: number): InvitationRow[] {
    return this.orm.select().from(invitation).where(eq(invitation.userId, userId)).limit(limit).all();
  }

  /** The freed numbers that have been free for longest. @param freedUntil milliseconds */
  freedNumbers(freedUntil: number, limit: number): FreedRow[] {
    const isReady = lte(freedNumber.freedAt, freedUntil);
    return this.orm.select().from(freedNumber).where(isReady).orderBy(asc(freedNumber.freedAt)).limit(limit).all();
  }

  freed(number: number): FreedRow | undefined {
    return this.orm.select().from(freedNumber).where(eq(freedNumber.number, number)).get();
  }

  /** Badges whose end has passed without being recorded, the first to end first. @param now milliseconds */
  endedBadges(now: number, limit: number): IssuedBadge[] {
    return this.orm
      .select()
      .from(badge)
      .where(and(HAS_OPEN_END, lte(badge.expiresAt, now)))
      .orderBy(badge.expiresAt)
      .limit(limit)
      .all()
      .filter(isIssued);
  }

  /** Pending invitations whose end has passed, the first to end first. @param now milliseconds */
  endedInvitations(now: number, limit: number): InvitationRow[] {
    return this.orm
      .select()
      .from(invitation)
      .where(and(IS_PENDING, lte(invitation.expiresAtTime, now)))
      .orderBy(invitation.expiresAtTime)
      .limit(limit)
      .all();
  }

  /** When the next badge or pending invitation ends, in milliseconds; null: none does. */
  nextEnd(): number | null {
    const [first] = this.orm
      .select({ at: badge.expiresAt })
      .from(badge)
      .where(HAS_OPEN_END)
      .orderBy(badge.expiresAt)
      .limit(1)
      .all();
    const [invited] = this.orm
      .select({ at: invitation.expiresAtTime })
      .from(invitation)
      .where(IS_PENDING)
      .orderBy(invitation.expiresAtTime)
      .limit(1)
      .all();
    const ends = [first?.at, invited?.at].filter((at) => at != null);
    return ends.length === 0 ? null : Math.min(...ends);
  }

  /** The next invitations, ordered by digest, each with the time at which its badge ended, if it was claimed. */
  invitationsAfter(digest: string, limit: number): { invitation: InvitationRow; badgeEndedAt: number | null }[] {
    return this.orm
      .select({ invitation, badgeEndedAt: badge.endedAt })
      .from(invitation)
      .leftJoin(badge, eq(badge.number, invitation.number))
      .where(sql`${invitation.digest} > ${digest}`)
      .orderBy(asc(invitation.digest))
      .limit(limit)
      .all();
  }

  deleteFreedNumbers(numbers: readonly (string | number)[]): void {
    const isOne = inArray(freedNumber.number, sql`(SELECT value FROM json_each(${JSON.stringify(numbers)}))`);
    this.orm.delete(freedNumber).where(isOne).run();
  }

  countFreedNumbers(): number {
    return this.orm.select({ count: count() }).from(freedNumber).get()?.count ?? 0;
  }

  /**
   * Starts, or restarts, the search for an erased user: of D1's events through `throughEvent`, then of history from
   * before the same time.
   */
  addErasure({ userId, alias, throughEvent }: Erasure): void {
    this.orm
      .insert(erasure)
      .values({ alias, userId, afterEvent: "", throughEvent })
      .onConflictDoUpdate({ target: erasure.alias, set: { afterEvent: "", throughEvent } })
      .run();
  }

  /** Extends a search to newer events and history. */
  extendErasure({ alias, throughEvent }: Erasure): void {
    this.orm.update(erasure).set({ throughEvent }).where(eq(erasure.alias, alias)).run();
  }

  /** The last erasure of a user, if its search goes on. */
  erasureOf(userId: string): PendingErasure | undefined {
    const ofUser = eq(erasure.userId, userId);
    return this.orm.select().from(erasure).where(ofUser).orderBy(desc(erasure.throughEvent)).limit(1).get();
  }

  /** An erasure, if its search goes on. */
  erasure(alias: string): PendingErasure | undefined {
    return this.orm.select().from(erasure).where(eq(erasure.alias, alias)).get();
  }

  /** An erasure whose search goes on. */
  pendingErasure(): PendingErasure | undefined {
    return this.#pendingErasure.get();
  }

  /** Records how far a search has come. @param next null: it has ended */
  moveErasure({ alias }: PendingErasure, next: string | null): void {
    const isThis = eq(erasure.alias, alias);
    if (next === null) this.orm.delete(erasure).where(isThis).run();
    else this.orm.update(erasure).set({ afterEvent: next }).where(isThis).run();
  }

  /** D1 may have lost what was found: every search begins anew. */
  restartErasures(): void {
    this.orm.update(erasure).set({ afterEvent: "" }).run();
  }

  keepKey(key: EntryKey): void {
    this.orm.insert(usedKey).values({ id: key.id, key }).onConflictDoNothing().run();
  }

  usedKeys(): EntryKey[] {
    return this.orm
      .select()
      .from(usedKey)
      .all()
      .map(({ key }) => key);
  }

  hasInvitations(): boolean {
    return this.orm.select({ digest: invitation.digest }).from(invitation).limit(1).get() !== undefined;
  }

  self(): typeof allocator.$inferSelect | undefined {
    return this.#self.get();
  }

  insertSelf(applicationId: ApplicationId): void {
    this.orm.insert(allocator).values({ applicationId }).run();
  }

  changeSelf(columns: Partial<typeof allocator.$inferInsert>): void {
    this.orm.update(allocator).set(columns).run();
  }

  /** Writes without a change. @throws in a superseded instance */
  touch(): void {
    this.orm
      .update(allocator)
      .set({ touches: sql`${allocator.touches} + 1` })
      .run();
  }
}

/** A placeholder for each column of a table, by the column's name in the schema. */
const placeholders = (table: typeof badge): Record<string, Placeholder> =>
  Object.fromEntries(Object.keys(getTableColumns(table)).map((name) => [name, sql.placeholder(name)]));
