import type { ErrorCode } from "../../shared/error-table.ts";
import { ApiError } from "../api-error.ts";
import type { Database } from "../storage/database.ts";
import type { Application, ApplicationCache } from "./application-cache.ts";

/** Refusals that an administrator's newest settings may lift. UNAVAILABLE: the issuer's keys are not available. */
const SETTINGS_DEPENDENT_CODES: readonly ErrorCode[] = [
  "NUMBERS_EXHAUSTED",
  "RATE_LIMITED",
  "INVALID_PROOF",
  "INVALID_USERTOKEN",
  "UNAVAILABLE",
];

/**
 * Tries with the cached application. After a refusal it tries once more with settings that are at most a second old, if
 * they differ: an administrator may just have changed the setting that caused the refusal. If the application was
 * disabled as well, the refusal stands.
 *
 * @throws ApiError of the last attempt
 * @throws Unavailable
 */
export async function withRecentSettings<Result>(
  { applicationCache, db, now }: { applicationCache: ApplicationCache; db: Database; now(): number },
  application: Application,
  attempt: (application: Application) => Promise<Result>,
): Promise<Result> {
  try {
    return await attempt(application);
  } catch (error) {
    if (!(error instanceof ApiError) || !dependsOnSettings(error)) throw error;
    const recent = await applicationCache.findRecent(db, application.id, now());
    if (recent === undefined || recent.isDisabled || recent === application) throw error;
    return attempt(recent);
  }
}

/** No setting makes a wrong proof right. */
function dependsOnSettings({ code, detail }: ApiError): boolean {
  const isWrongProof = code === "INVALID_PROOF" && detail !== undefined && detail !== "no-proof";
  return SETTINGS_DEPENDENT_CODES.includes(code) && !isWrongProof;
}
