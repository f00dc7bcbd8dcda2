import { and, eq, gt, gte, lt, or, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { InvitationState } from "../../shared/badge-lifecycle/states.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { invitation, VISIT_CLASSES, visitBegin, visitClass, visitEnd } from "../../shared/schema.ts";
import { SCANNED, scanLimit, scanPage, scanStatements } from "./bounded-scan.ts";
import type { Database } from "./database.ts";
import { byShape, type Placeholders } from "./statement.ts";
import { containsText, searchShape, searchValues } from "./text-search.ts";

/** Filters of a page; null for all invitations. */
export interface InvitationQuery {
  applicationId: ApplicationId;
  state: InvitationState | null;
  /** Part of the user ID or the name, in any case. */
  text: string | null;
  /**
   * The visit ends after this time, milliseconds. With this or `until`, invitations are in the order of their visits.
   */
  from: number | null;
  /** The visit begins before this time, milliseconds. */
  until: number | null;
  /** The last invitation of the previous page. */
  after: InvitationPosition | null;
  perPage: number;
}

/** An invitation's position in a list: its creation or, in the order of visits, the start of its visit. */
export interface InvitationPosition {
  at: number;
  /** Orders invitations with the same time. */
  rowid: number;
}

/** Whether a page is in the order in which visits begin (contract section 19); otherwise it is newest first. */
export const isByVisit = ({ from, until }: Pick<InvitationQuery, "from" | "until">): boolean =>
  from !== null || until !== null;

type Shape = Readonly<{
  state: InvitationState | null;
  /** See `searchShape`. */
  letters: number | null;
  hasFrom: boolean;
  hasUntil: boolean;
  isFirst: boolean;
}>;

type Values = Pick<InvitationQuery, "applicationId" | "from" | "until"> &
  Record<"now" | "afterAt" | "afterRowid", number | null> &
  /** For each class of visits: a visit that begins at or before this time has ended by `from`. */
  Record<`from${number}`, number | null>;

const scanned = alias(invitation, SCANNED);

/** Whether an invitation's time is over. This ends only pending invitations. */
const isPast = (times: typeof invitation | typeof scanned, now: SQL | Placeholders<Values>["now"]): SQL =>
  sql`${times.expiresAtTime} <= ${now}`;

const fieldsAt = (now: Placeholders<Values>["now"]) => ({
  number: scanned.number,
  state: sql<InvitationState>`iif(${scanned.state} = 'pending' AND ${isPast(scanned, now)}, 'expired', ${scanned.state})`,
  createdAt: scanned.createdAt,
  visitBeginsAt: visitBegin(scanned),
  rowid: sql<number>`${sql.identifier(SCANNED)}.rowid`,
  expiresAt: scanned.expiresAt,
  badgeStartsAt: scanned.badgeStartsAt,
  badgeStartsAtTime: scanned.badgeStartsAtTime,
  badgeExpiresAt: scanned.badgeExpiresAt,
  badgeExpiresAtTime: scanned.badgeExpiresAtTime,
  name: scanned.name,
  /** The user who claimed it, or may claim it. */
  userId: USER_ID,
});

const USER_ID = sql<string | null>`coalesce(${scanned.claimUserId}, ${scanned.userId})`;
const ALL_COLUMNS = sql`*, rowid AS rowid`;

/** Newest first. */
const NEWEST = byShape(({ state, letters, isFirst }: Shape) =>
  scanStatements((p: Placeholders<Values>) => {
    const start = (createdAt: SQL) =>
      isFirst ? undefined : sql`(${createdAt}, rowid) < (${p.afterAt}, ${p.afterRowid})`;
    const recorded = and(
      eq(invitation.applicationId, p.applicationId),
      state === null ? undefined : eq(invitation.state, state),
      start(sql`${invitation.createdAt}`),
    );
    // Expiries of the last minute are not recorded yet. The plus sign keeps SQLite from reading all pending
    // invitations.
    const due = and(
      eq(invitation.applicationId, p.applicationId),
      eq(invitation.state, "pending"),
      isPast(invitation, p.now),
      start(sql`+${invitation.createdAt}`),
    );
    return {
      table: invitation,
      selected: ALL_COLUMNS,
      ranges: state === "expired" ? [recorded, due] : [recorded],
      order: sql`${sql.identifier(invitation.createdAt.name)} DESC, rowid DESC`,
      conditions: [
        state === "pending" ? sql`NOT ${isPast(scanned, p.now)}` : undefined,
        containsText([USER_ID, scanned.name], letters),
      ],
      fields: fieldsAt(p.now),
    };
  }),
);

/** Each class of visits is a range of the index `invitation_visit`, and the row limit of a page applies to each. */
const RANGES_BY_VISIT = VISIT_CLASSES.length + 1;

/** In the order in which visits begin. */
const BY_VISIT = byShape(({ state, letters, hasFrom, hasUntil, isFirst }: Shape) =>
  scanStatements((p: Placeholders<Values>) => ({
    table: invitation,
    selected: sql`${ALL_COLUMNS}, ${visitBegin(invitation)} AS visit_begin`,
    ranges: Array.from({ length: RANGES_BY_VISIT }, (_, place) =>
      and(
        eq(invitation.applicationId, p.applicationId),
        sql`${visitClass(invitation)} = ${place}`,
        hasFrom && place < VISIT_CLASSES.length ? gt(visitBegin(invitation), p[`from${place}`]) : undefined,
        hasUntil ? lt(visitBegin(invitation), p.until) : undefined,
        isFirst ? undefined : sql`(${visitBegin(invitation)}, rowid) > (${p.afterAt}, ${p.afterRowid})`,
      ),
    ),
    order: sql`visit_begin, rowid`,
    conditions: [
      // A visit without an end of its own ends with its invitation, which may be before it begins.
      hasFrom ? or(gt(visitEnd(scanned), p.from), gte(visitBegin(scanned), p.from)) : undefined,
      stateCondition(state, p.now),
      containsText([USER_ID, scanned.name], letters),
    ],
    fields: fieldsAt(p.now),
  })),
);

function stateCondition(state: InvitationState | null, now: Placeholders<Values>["now"]): SQL | undefined {
  if (state === null) return undefined;
  const isRecorded = eq(scanned.state, state);
  if (state === "pending") return and(isRecorded, sql`NOT ${isPast(scanned, now)}`);
  return state === "expired" ? or(isRecorded, and(eq(scanned.state, "pending"), isPast(scanned, now))) : isRecorded;
}

/** An invitation as lists show it: neither its token nor its digest. Times are milliseconds, or as they were sent. */
export type ListedInvitation = Awaited<ReturnType<typeof listInvitations>>["items"][number];

/**
 * A page of an application's invitations. One round trip.
 *
 * @param now milliseconds. A pending invitation past its time is listed as expired; the allocator records that within a
 * minute
 */
export function listInvitations(db: Database, query: InvitationQuery, now: number) {
  const { applicationId, state, text, from, until, after, perPage } = query;
  const shape = {
    ...{ state, letters: searchShape(text) },
    ...{ hasFrom: from !== null, hasUntil: until !== null, isFirst: after === null },
  };
  const values = {
    ...{ applicationId, from, until, now },
    ...{ afterAt: after?.at ?? null, afterRowid: after?.rowid ?? null },
    ...Object.fromEntries(VISIT_CLASSES.map((length, place) => [`from${place}`, from === null ? null : from - length])),
    ...searchValues(text),
  };
  if (!isByVisit(query)) return scanPage(db, NEWEST(shape), values, perPage);
  return scanPage(db, BY_VISIT(shape), values, perPage, Math.floor(scanLimit(perPage) / RANGES_BY_VISIT));
}
