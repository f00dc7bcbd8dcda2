import type { AuditContext } from "../../shared/actor.ts";
import { currentSigningKey } from "../../shared/credentials.ts";
import type { ErrorCode } from "../../shared/error-table.ts";
import type { Success } from "../allocator/client.ts";
import type { Command, Rules } from "../allocator/commands.ts";
import { ApiError } from "../api-error.ts";
import type { Application } from "../applications/application-cache.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";

/** The settings that a command is decided by. @param now milliseconds */
function rulesOf(application: Application, now: number): Rules {
  const { range, reuseAfterSeconds, requireProof, bindUntil, newBadgesPerHour, rootKey } = application;
  const signingKey = currentSigningKey(application.signingKeys, now);
  return { range, reuseAfterSeconds, requireProof, bindUntil, newBadgesPerHour, rootKey, signingKey };
}

/** Refusals that settings may be the reason of. */
const BY_SETTINGS: readonly ErrorCode[] = ["NUMBERS_EXHAUSTED", "RATE_LIMITED", "INVALID_PROOF"];

/**
 * Executes a command that the application's settings decide. A refusal rests on settings at most a second old: an
 * administrator may just have made the range longer, or stopped requiring proofs.
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
    return await execute(rules);
  } catch (error) {
    if (!(error instanceof ApiError) || !BY_SETTINGS.includes(error.code)) throw error;
    const recent = await context.applicationCache.findRecent(context.db, application.id, context.now());
    if (!recent || recent === application) return refuse(error, rules);
    const newer = rulesOf(recent, context.now());
    return execute(newer).catch((again) => refuse(again, newer));
  }

  /** Of the allocator, RATE_LIMITED means that the clock hour's numbers are used up (contract section 7). */
  function refuse(error: unknown, { newBadgesPerHour }: Rules): never {
    const isBrake = error instanceof ApiError && error.code === "RATE_LIMITED";
    if (isBrake && context.hourlyLimitLog.isFirst(application.id, context.now())) {
      log("warn", { event: "new-badges-limited", application: application.id, newBadgesPerHour });
    }
    throw error;
  }

  async function execute(by: Rules) {
    return { result: await context.allocator.execute(context.db, application.id, build(by), audit), rules: by };
  }
}
