import type { AuditContext } from "../../shared/actor.ts";
import { currentSigningKey } from "../../shared/credentials.ts";
import type { Success } from "../allocator/allocator-client.ts";
import type { Command, Rules } from "../allocator/commands.ts";
import { ApiError } from "../api-error.ts";
import type { Application } from "../applications/application-cache.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";

/** The settings that decide a command. @param now milliseconds */
function rulesOf(application: Application, now: number): Rules {
  const { range, reuseAfterSeconds, requireProof, bindUntil, newBadgesPerHour, rootKey } = application;
  const signingKey = currentSigningKey(application.signingKeys, now);
  return { range, reuseAfterSeconds, requireProof, bindUntil, newBadgesPerHour, rootKey, signingKey };
}

/**
 * Executes a command whose decision depends on the application's settings.
 *
 * @throws ApiError
 * @throws Unavailable
 */
export async function executeWithSettings(
  context: Context,
  application: Application,
  build: (rules: Rules) => Command,
  audit: AuditContext,
): Promise<{ result: Success; rules: Rules }> {
  const rules = rulesOf(application, context.now());
  try {
    return { result: await context.allocator.execute(context.db, application.id, build(rules), audit), rules };
  } catch (error) {
    // The allocator's RATE_LIMITED means that the clock hour's numbers are used up (contract section 7).
    const isLimited = error instanceof ApiError && error.code === "RATE_LIMITED";
    if (isLimited && context.hourlyLimitLog.isFirst(application.id, context.now())) {
      const { newBadgesPerHour } = rules;
      log("warn", { event: "new-badges-limited", application: application.id, newBadgesPerHour });
    }
    throw error;
  }
}
