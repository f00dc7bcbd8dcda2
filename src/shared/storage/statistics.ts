import * as z from "zod";
import type { ApplicationId } from "../identifiers.ts";
import { OBSERVED_HOURS, STATISTICS_CLAIM_SECONDS, STATISTICS_RETRY_SECONDS } from "../limits.ts";
import { type Counts, countsSchema } from "../statistics/counts.ts";
import { HOUR_MILLISECONDS } from "../time.ts";
import type { Database } from "./d1.ts";

/** The last statistics of an application, and who counts the next: one row, so that only one does in the whole service. */

const storedCounts = z.string().transform((text) => countsSchema.parse(JSON.parse(text)));

const statisticsRows = z.array(z.object({ counts: storedCounts.nullable(), retryAt: z.number() }));

/** @returns the last counts; null: they were never finished. `retryAt`: until then nothing is counted, because that failed */
export async function findCounts(
  db: Database,
  applicationId: ApplicationId,
): Promise<{ counts: Counts | null; retryAt: number }> {
  const select = "SELECT counts, retry_at AS retryAt FROM statistics WHERE application_id = ?1";
  const { results } = await db.run((d1) => d1.prepare(select).bind(applicationId).all());
  return statisticsRows.parse(results)[0] ?? { counts: null, retryAt: 0 };
}

/** A computation that is the only one of its application until the claim ends. */
export interface Claim {
  applicationId: ApplicationId;
  /** Random. */
  id: string;
}

const CLAIM = `
  INSERT INTO statistics (application_id, claim, claimed_until) VALUES (?1, ?2, ?4)
  ON CONFLICT (application_id) DO UPDATE SET claim = excluded.claim, claimed_until = excluded.claimed_until
  WHERE statistics.claimed_until <= ?3 AND statistics.retry_at <= ?3 AND statistics.counted_at IS ?5
    OR statistics.claim = ?2
  RETURNING progress`;

const claimedRows = z.array(z.object({ progress: storedCounts.nullable() }));

/**
 * @param last the counts that the caller has found: if there are newer ones, nothing is claimed
 * @param now milliseconds
 * @returns what was counted by an earlier call that did not finish, or null; undefined: another call is counting, or one failed a
 *   moment ago
 */
export async function claimStatistics(
  db: Database,
  claim: Claim,
  last: Counts | null,
  now: number,
): Promise<Counts | null | undefined> {
  const { results } = await db.run((d1) =>
    d1
      .prepare(CLAIM)
      .bind(claim.applicationId, claim.id, now, now + STATISTICS_CLAIM_SECONDS * 1000, last?.startedAt ?? null)
      .all(),
  );
  return claimedRows.parse(results)[0]?.progress;
}

const IS_CLAIMED = "WHERE application_id = ?1 AND claim = ?2";

/** @returns false if the claim has ended, and another call may be counting */
export function saveProgress(db: Database, claim: Claim, progress: Counts, now: number): Promise<boolean> {
  const save = `UPDATE statistics SET progress = ?3, claimed_until = ?4 ${IS_CLAIMED}`;
  return write(db, save, claim, JSON.stringify(progress), now + STATISTICS_CLAIM_SECONDS * 1000);
}

/** Ends the claim without a result. */
export function leaveProgress(db: Database, claim: Claim, progress: Counts): Promise<boolean> {
  const leave = `UPDATE statistics SET progress = ?3, claim = NULL, claimed_until = 0 ${IS_CLAIMED}`;
  return write(db, leave, claim, JSON.stringify(progress));
}

/** Ends the claim with its result. */
export function finishStatistics(db: Database, claim: Claim, counts: Counts): Promise<boolean> {
  const finish = `UPDATE statistics SET counts = ?3, counted_at = ?4, progress = NULL, claim = NULL, claimed_until = 0
    ${IS_CLAIMED}`;
  return write(db, finish, claim, JSON.stringify(counts), counts.startedAt);
}

/** Ends the claim, and for a while nobody gets one. */
export function failStatistics(db: Database, claim: Claim, now: number): Promise<boolean> {
  const fail = `UPDATE statistics SET claim = NULL, claimed_until = 0, retry_at = ?3 ${IS_CLAIMED}`;
  return write(db, fail, claim, now + STATISTICS_RETRY_SECONDS * 1000);
}

async function write(db: Database, sql: string, { applicationId, id }: Claim, ...values: unknown[]): Promise<boolean> {
  const { meta } = await db.run((d1) =>
    d1
      .prepare(sql)
      .bind(applicationId, id, ...values)
      .run(),
  );
  return meta.changes > 0;
}

const COUNT_LOGINS = `
  SELECT coalesce(sum(with_token), 0) AS withToken, coalesce(sum(without_token), 0) AS withoutToken,
    coalesce(sum(with_wrong_token), 0) AS withWrongToken
  FROM observed_logins WHERE application_id = ?1 AND hour > ?2`;

const loginRows = z.tuple([z.object({ withToken: z.number(), withoutToken: z.number(), withWrongToken: z.number() })]);

/** Logins of the last day by their tokens, while they are observed (contract section 22). */
export type LoginCounts = z.infer<typeof loginRows>[0];

/** @param now milliseconds */
export async function countLogins(db: Database, applicationId: ApplicationId, now: number): Promise<LoginCounts> {
  const since = Math.floor(now / HOUR_MILLISECONDS) - OBSERVED_HOURS;
  const { results } = await db.run((d1) => d1.prepare(COUNT_LOGINS).bind(applicationId, since).all());
  return loginRows.parse(results)[0];
}
