import { and, asc, eq, gt, inArray, isNull, lte, type SQL, sql } from "drizzle-orm";
import type { InvitationDigest } from "../../shared/identifiers.ts";
import { application, badge, invitation, reconciliation } from "../../shared/schema.ts";
import { changeOf } from "../../shared/storage/high-water.ts";
import type { Database } from "./database.ts";
import type { EndedInvitation } from "./invitation-ends.ts";

export type Reconciliation = typeof reconciliation.$inferSelect & { lastNumber: number };

/**
 * Unfinished reconciliations, in random order, so that one that uses up a whole sweep before it fails cannot block the
 * others in every sweep.
 */
export async function findOpenReconciliations(db: Database, limit: number): Promise<Reconciliation[]> {
  const rows = await db.run((orm) =>
    orm
      .select({ reconciliation, lastNumber: application.lastNumber })
      .from(reconciliation)
      .innerJoin(application, eq(application.id, reconciliation.applicationId))
      .where(isNull(reconciliation.finishedAt))
      .orderBy(sql`random()`)
      .limit(limit),
  );
  return rows.map(({ reconciliation: open, lastNumber }) => ({ ...open, lastNumber }));
}

export type Progress = Pick<Reconciliation, "step" | "through" | "checked" | "changed" | "finishedAt">;

/**
 * Records the progress of a reconciliation.
 *
 * @returns false if another sweep recorded progress first, the reconciliation was requested again, or it is to end and a
 *   badge was revoked meanwhile
 */
export async function writeProgress(db: Database, before: Reconciliation, after: Progress): Promise<boolean> {
  const { step, through, checked, changed, finishedAt } = after;
  const { meta } = await db.run((orm) =>
    orm
      .update(reconciliation)
      .set({ step, through, checked, changed, finishedAt })
      .where(
        and(
          eq(reconciliation.applicationId, before.applicationId),
          eq(reconciliation.requestedAt, before.requestedAt),
          eq(reconciliation.step, before.step),
          eq(reconciliation.through, before.through),
          after.finishedAt === null ? undefined : sql`NOT ${isRevokedAfter(before)}`,
        ),
      ),
  );
  return meta.changes > 0;
}

/**
 * Whether a badge was revoked after the last change that the object was told of. A revocation without the object does not restart
 * a reconciliation that is open (src/admin/badge/noted-revocations.ts), so that must not finish before it has reached the revocation.
 */
const isRevokedAfter = ({ applicationId, through }: Reconciliation): SQL => sql`EXISTS (SELECT 1 FROM badge
  WHERE badge.application_id = ${applicationId} AND badge.position IS NOT NULL AND ${sql.raw(changeOf("badge"))} > ${through}
    AND badge.state = 'revoked')`;

/** An application's badges and reservations by number: `after` < number <= `last`. */
export function listNumbers(db: Database, { applicationId, lastNumber, through }: Reconciliation, limit: number) {
  return db.run((orm) =>
    orm
      .select({
        number: badge.number,
        device: badge.device,
        userId: badge.userId,
        invitation: badge.invitation,
      })
      .from(badge)
      .where(and(gt(badge.number, through), lte(badge.number, lastNumber), eq(badge.applicationId, applicationId)))
      .orderBy(asc(badge.number))
      .limit(limit),
  );
}

/** The invitations among these that are revoked or expired. */
export async function findEndedInvitations(
  db: Database,
  digests: readonly InvitationDigest[],
): Promise<EndedInvitation[]> {
  const rows = await db.run((orm) =>
    orm
      .select({
        applicationId: invitation.applicationId,
        digest: invitation.digest,
        number: invitation.number,
        endedAt: invitation.endedAt,
      })
      .from(invitation)
      .where(
        and(
          sql`${invitation.digest} IN (SELECT value FROM json_each(${JSON.stringify(digests)}))`,
          inArray(invitation.state, ["revoked", "expired"]),
        ),
      ),
  );
  return rows.flatMap(({ endedAt, ...ended }) => (endedAt === null ? [] : [{ ...ended, endedAt }]));
}
