import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { isNotBlocked } from "../../shared/storage/blocked-users.ts";
import type { BadgeWrite, WriteResult } from "./badge-writes.ts";
import type { Database } from "./database.ts";

/** Finds the rows that caused writes to be skipped. */
const SELECT_CONFLICTS = `
  SELECT row_index, own.number AS own_number, own.event_id AS own_event, taken.number AS taken_number,
    taken.event_id AS taken_event, taken.invitation AS taken_invitation, known.number AS known_number,
    known.creator_device IS row ->> 'creatorDevice' AND known.expires_at IS row ->> 'expiresAt'
      AND known.badge_expires_at IS row ->> 'badgeExpiresAt' AS is_same,
    NOT ${isNotBlocked("row ->> 'userId'")} AS is_blocked
  FROM (SELECT key AS row_index, value AS row FROM json_each(?1))
  LEFT JOIN badge AS own ON own.application_id = ?2 AND own.device = row ->> 'device'
    AND (own.key_thumbprint IS NOT NULL) IN (0, 1) AND own.user_id = row ->> 'userId' AND own.position IS NOT NULL AND own.retired_at IS NULL
  LEFT JOIN badge AS taken ON taken.number = row ->> 'number'
  LEFT JOIN invitation AS known ON known.digest = row ->> 'invitation'
  ORDER BY row_index`;

const conflictRows = z.array(
  z.object({
    own_number: z.number().nullable(),
    own_event: z.string().nullable(),
    taken_number: z.number().nullable(),
    taken_event: z.string().nullable(),
    taken_invitation: z.string().nullable(),
    known_number: z.number().nullable(),
    is_same: z.number(),
    is_blocked: z.number(),
  }),
);

type Conflict = z.infer<typeof conflictRows>[number];

/** Finds out why an application's writes were skipped. One round trip; none without writes. */
export async function explainSkipped(
  db: Database,
  applicationId: ApplicationId,
  writes: readonly BadgeWrite[],
): Promise<Map<BadgeWrite, WriteResult>> {
  if (writes.length === 0) return new Map();
  const rows = JSON.stringify(writes);
  const { results } = await db.run((_, d1) => d1.prepare(SELECT_CONFLICTS).bind(rows, applicationId).all());
  const conflicts = conflictRows.parse(results);
  return new Map(writes.map((write, index) => [write, explain(write, conflicts[index])]));
}

function explain(write: BadgeWrite, conflict: Conflict | undefined): WriteResult {
  if (!conflict) throw new Error("a write was skipped, but nothing conflicts with it");
  if (write.kind === "reserve") {
    const { taken_invitation: owner, taken_number: taken, known_number: known } = conflict;
    if (known !== null && conflict.is_same === 0) {
      return { kind: "mismatched", isReserved: owner === write.invitation, leasedNumberTaken: taken !== null };
    }
    // The invitation was claimed so long ago that it has been deleted (contract section 18).
    if (known === null && owner === write.invitation) {
      return { kind: "mismatched", isReserved: true, leasedNumberTaken: false };
    }
    if (owner === write.invitation) return { kind: "written", number: write.number, eventPending: false };
    if (known !== null) return { kind: "ended", number: known, leasedNumberTaken: taken !== null };
    return { kind: taken === null ? "unhindered" : "taken" };
  }
  const { own_number: own, own_event: ownEvent, taken_number: taken } = conflict;
  if (own !== null && ownEvent === write.eventId) return { kind: "written", number: own, eventPending: true };
  if (own !== null) return { kind: "existing", number: own, leasedNumberTaken: taken !== null && taken !== own };
  if (conflict.is_blocked === 1) return { kind: "blocked" };
  return { kind: taken === null ? "unhindered" : "taken" };
}
