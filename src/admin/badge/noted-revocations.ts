import type { D1Database, D1PreparedStatement } from "@cloudflare/workers-types";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { changeOf } from "../../shared/storage/high-water.ts";

/**
 * The script revokes badges without their application's object, which records revocations in case D1 is restored to an
 * older state. This statement, part of the same batch, has the sweep record them there within about a minute.
 *
 * It requests the last step of a reconciliation, starting at the first of these changes. A reconciliation that is open
 * already does not change: it has yet to do that step, or does not end before it has processed every revocation. `?1`:
 * application ID; `?2`: badge numbers as a JSON array; `?3`: milliseconds.
 */
const REQUEST = `
  INSERT INTO reconciliation (application_id, restored, requested_at, step, through)
  SELECT ?1, 'object', ?3, 'revocations', min(${changeOf("badge")}) - 1
  FROM json_each(?2) AS revoked JOIN badge ON badge.number = revoked.value AND badge.state = 'revoked'
  HAVING count(*) > 0
  ON CONFLICT (application_id) DO UPDATE SET restored = excluded.restored, requested_at = excluded.requested_at,
    step = excluded.step, through = excluded.through, checked = 0, changed = 0, finished_at = NULL
    WHERE finished_at IS NOT NULL`;

export function requestNoteOfRevocations(
  d1: D1Database,
  applicationId: ApplicationId,
  numbers: readonly number[],
  now: number,
): D1PreparedStatement {
  return d1.prepare(REQUEST).bind(applicationId, JSON.stringify(numbers), now);
}
