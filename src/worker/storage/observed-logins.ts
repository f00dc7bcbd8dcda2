import type { ApplicationId } from "../../shared/identifiers.ts";
import { OBSERVED_HOURS } from "../../shared/limits.ts";
import type { Statistics } from "../../shared/statistics.ts";
import { HOUR_MILLISECONDS } from "../../shared/time.ts";
import type { Database } from "./database.ts";

const ADD = `
  INSERT INTO observed_logins (application_id, hour, with_token, without_token, with_wrong_token)
  VALUES (?1, ?2, ?3, ?4, ?5)
  ON CONFLICT DO UPDATE SET with_token = with_token + excluded.with_token,
    without_token = without_token + excluded.without_token, with_wrong_token = with_wrong_token + excluded.with_wrong_token`;

const DELETE_OLD = "DELETE FROM observed_logins WHERE application_id = ?1 AND hour < ?2";

/**
 * Adds logins to the present hour, and deletes the hours that no longer count. One round trip. A retry after a lost response
 * counts twice, which these numbers can bear.
 *
 * @param now milliseconds
 */
export async function addObservedLogins(
  db: Database,
  applicationId: ApplicationId,
  { withToken, withoutToken, withWrongToken }: Statistics["logins"],
  now: number,
): Promise<void> {
  const hour = Math.floor(now / HOUR_MILLISECONDS);
  await db.run((d1) =>
    d1.batch([
      d1.prepare(ADD).bind(applicationId, hour, withToken, withoutToken, withWrongToken),
      d1.prepare(DELETE_OLD).bind(applicationId, hour - OBSERVED_HOURS),
    ]),
  );
}
