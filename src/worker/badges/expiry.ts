import { SWEEP_CHUNK_ROWS } from "../../shared/limits.ts";
import { findExpired } from "../../shared/storage/issued-badges.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { writeSteps } from "./transitions.ts";

/** The last badge of a chunk of expired badges. */
export interface ExpiryCursor {
  expiresAt: number;
  number: number;
}

/**
 * Records the expiry of one chunk of badges, which then leave the lists, appear in the feed and cause events. Device calls
 * do not depend on it: they decide by the clock. An application whose object fails is left to the next sweep.
 *
 * @param after null: from the earliest end
 * @returns how many expiries were recorded, and the cursor of the next chunk; null when nothing is left
 */
export async function recordExpiries(
  context: Context,
  after: ExpiryCursor | null,
): Promise<{ recorded: number; next: ExpiryCursor | null }> {
  const now = context.now();
  const badges = await findExpired(context.db, now, after ?? { expiresAt: 0, number: 0 }, SWEEP_CHUNK_ROWS);
  let recorded = 0;
  for (const [applicationId, ofOne] of Map.groupBy(badges, (badge) => badge.applicationId)) {
    try {
      recorded += (await writeSteps(context, applicationId, ofOne, { kind: "note-expiry" }, now)).length;
    } catch (error) {
      log("warn", { event: "expiry-left-to-sweep", application: applicationId, error });
    }
  }
  const last = badges.at(-1);
  return { recorded, next: last?.expiresAt == null ? null : { expiresAt: last.expiresAt, number: last.number } };
}
