import { and, desc, eq, getTableColumns, gt, isNotNull, type SQL, sql } from "drizzle-orm";
import type { ApplicationId, DeviceId } from "../../shared/identifiers.ts";
import { badge } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { headOf, requireReadable, SELECT_HEAD } from "./readable.ts";
import type { IssuedBadge } from "./rows.ts";
import { orm, type Placeholders, statement } from "./statement.ts";

const { applicationId: _, ...columns } = getTableColumns(badge);

/** A reservation has none of these; an issued badge has all. */
const FIELDS = {
  ...columns,
  device: issued<DeviceId>(badge.device),
  userId: issued<string>(badge.userId),
  signingKeyId: issued<number>(badge.signingKeyId),
  ordinal: issued<number>(badge.ordinal),
  loginSequence: issued<number>(badge.loginSequence),
  issuedAt: issued<number>(badge.issuedAt),
  change: issued<number>(badge.change),
  changedAt: issued<number>(badge.changedAt),
};

function issued<Value>(column: (typeof columns)[keyof typeof columns]): SQL.Aliased<Value> {
  return sql<Value>`${column}`.as(column.name);
}

interface OfUser {
  applicationId: ApplicationId;
  userId: string;
  limit: number;
}

/** The plus sign keeps SQLite from searching by application, which would read all of its badges. */
const SELECT_ISSUED = statement((p: Placeholders<{ applicationId: ApplicationId; number: number }>) =>
  orm
    .select(FIELDS)
    .from(badge)
    .where(
      and(eq(badge.number, p.number), sql`+${badge.applicationId} = ${p.applicationId}`, isNotNull(badge.ordinal)),
    ),
);

/** An application's badge by its number; undefined if the number is only reserved. One round trip. */
export async function findIssuedBadge(
  db: Database,
  applicationId: ApplicationId,
  number: number,
): Promise<IssuedBadge | undefined> {
  const [row] = await db.all(SELECT_ISSUED, { applicationId, number });
  return row;
}

/** Uses the expression of the index `badge_user_page`. */
const SELECT_LISTED_OF_USER = statement((p: Placeholders<OfUser>) =>
  orm
    .select(FIELDS)
    .from(badge)
    .where(
      and(
        eq(badge.applicationId, p.applicationId),
        eq(badge.userId, p.userId),
        isNotNull(badge.ordinal),
        sql`(${badge.endedAt} IS NOT NULL) = 0`,
      ),
    )
    .orderBy(desc(badge.ordinal))
    .limit(p.limit),
);

/** A user's badges without a recorded end, newest first. One round trip. */
export function findListedOfUser(
  db: Database,
  applicationId: ApplicationId,
  userId: string,
  limit: number,
): Promise<IssuedBadge[]> {
  return db.all(SELECT_LISTED_OF_USER, { applicationId, userId, limit });
}

const SELECT_CHANGES = statement((p: Placeholders<{ applicationId: ApplicationId; after: number; limit: number }>) =>
  orm
    .select(FIELDS)
    .from(badge)
    .where(and(eq(badge.applicationId, p.applicationId), isNotNull(badge.ordinal), gt(badge.change, p.after)))
    .orderBy(badge.change)
    .limit(p.limit),
);

export interface Changes {
  /** Cursors of another epoch have expired. */
  epoch: string;
  badges: IssuedBadge[];
}

/**
 * An application's badges in the order of their last changes, after a change number. One round trip.
 *
 * @throws Unavailable while D1 lacks changes: its epoch may be an earlier one, and a cursor still good
 */
export async function listChanges(
  db: Database,
  applicationId: ApplicationId,
  after: number,
  limit: number,
): Promise<Changes> {
  const [heads, badges] = await db.run((d1) =>
    d1.batch([SELECT_HEAD.bind(d1, { applicationId }), SELECT_CHANGES.bind(d1, { applicationId, after, limit })]),
  );
  const head = headOf(heads);
  requireReadable(head);
  return { epoch: head.epoch, badges: SELECT_CHANGES.rows(badges) };
}
