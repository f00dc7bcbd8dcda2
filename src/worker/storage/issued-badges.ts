import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { Database } from "./database.ts";
import { BADGE } from "./group-reads.ts";
import { type IssuedBadge, issuedBadge } from "./rows.ts";

/** The plus sign keeps SQLite from searching by application, which would read all of its badges. */
const SELECT_ISSUED = `
  SELECT ${BADGE} FROM badge WHERE badge.number = ?2 AND +badge.application_id = ?1 AND badge.position IS NOT NULL`;

/** An application's badge by its number; undefined if the number is only reserved. One round trip. */
export async function findIssuedBadge(
  db: Database,
  applicationId: ApplicationId,
  number: number,
): Promise<IssuedBadge | undefined> {
  const [row] = await db.rows(issuedBadge, SELECT_ISSUED, [applicationId, number]);
  return row;
}

/** As the index `badge_user_page` has it. */
const SELECT_LISTED_OF_USER = `
  SELECT ${BADGE} FROM badge WHERE badge.application_id = ?1 AND badge.user_id = ?2 AND badge.position IS NOT NULL
    AND (badge.ended_at IS NOT NULL) = 0
  ORDER BY badge.position DESC LIMIT ?3`;

/** A user's badges that are not noted to have ended, newest first. One round trip. */
export function findListedOfUser(
  db: Database,
  applicationId: ApplicationId,
  userId: string,
  limit: number,
): Promise<IssuedBadge[]> {
  return db.rows(issuedBadge, SELECT_LISTED_OF_USER, [applicationId, userId, limit]);
}

const SELECT_EPOCH = "SELECT epoch FROM position WHERE application_id = ?1";

const SELECT_CHANGES = `
  SELECT ${BADGE} FROM badge WHERE badge.application_id = ?1 AND badge.position IS NOT NULL AND badge.change > ?2
  ORDER BY badge.change LIMIT ?3`;

const epochRows = z.tuple([z.object({ epoch: z.string() })]);

export interface Changes {
  /** Cursors of another epoch have expired. */
  epoch: string;
  badges: IssuedBadge[];
}

/** An application's badges in the order of their last changes, after a change number. One round trip. */
export async function listChanges(
  db: Database,
  applicationId: ApplicationId,
  after: number,
  limit: number,
): Promise<Changes> {
  const [position, badges] = await db.run((d1) =>
    d1.batch([
      d1.prepare(SELECT_EPOCH).bind(applicationId),
      d1.prepare(SELECT_CHANGES).bind(applicationId, after, limit),
    ]),
  );
  return { epoch: epochRows.parse(position?.results)[0].epoch, badges: z.array(issuedBadge).parse(badges?.results) };
}
