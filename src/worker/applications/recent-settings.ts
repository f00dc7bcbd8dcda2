import type { ErrorCode } from "../../shared/error-table.ts";
import { Refusal } from "../refusal.ts";
import type { Database } from "../storage/database.ts";
import type { Application, ApplicationRegistry } from "./registry.ts";

/** Refusals that an administrator's newest settings may lift. UNAVAILABLE: the keys of the issuer are not to be had. */
const RESTS_ON_SETTINGS: readonly ErrorCode[] = [
  "NUMBERS_EXHAUSTED",
  "RATE_LIMITED",
  "INVALID_PROOF",
  "INVALID_USERTOKEN",
  "UNAVAILABLE",
];

/**
 * Tries with the application as it is cached. If that is refused, an administrator may just have changed the setting that the refusal
 * rests on: it is tried once more with settings that are at most a second old, if they differ.
 *
 * @throws Refusal of the last attempt
 * @throws Unavailable
 */
export async function withRecentSettings<Result>(
  { registry, db, now }: { registry: ApplicationRegistry; db: Database; now(): number },
  application: Application,
  attempt: (application: Application) => Promise<Result>,
): Promise<Result> {
  try {
    return await attempt(application);
  } catch (error) {
    if (!(error instanceof Refusal) || !RESTS_ON_SETTINGS.includes(error.code)) throw error;
    const recent = await registry.findForDenial(db, application.id, now());
    if (recent === undefined || recent === application) throw error;
    return attempt(recent);
  }
}
