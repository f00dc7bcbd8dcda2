import { SWEEP_CHUNK_ROWS } from "../../shared/limits.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { findExpired } from "../storage/issued-badges.ts";
import { writeSteps } from "./transitions.ts";

/** Where a chunk of expired badges ended. */
export interface ExpiryCursor {
  expiresAt: number;
  number: number;
}

/**
 * Notes one chunk of badges whose end has passed: lists, changes and events follow. Device calls need not wait for it,
 * they decide by the clock. An application whose object fails is left to the next sweep.
 *
 * @param after null: from the earliest
 * @returns how many were noted, and where the next chunk begins; null when nothing is left
 */
export async function noteExpiries(
  context: Context,
  after: ExpiryCursor | null,
): Promise<{ noted: number; next: ExpiryCursor | null }> {
  const now = context.now();
  const badges = await findExpired(context.db, now, after ?? { expiresAt: 0, number: 0 }, SWEEP_CHUNK_ROWS);
  let noted = 0;
  for (const [applicationId, ofOne] of Map.groupBy(badges, (badge) => badge.applicationId)) {
    try {
      noted += (await writeSteps(context, applicationId, ofOne, { kind: "note-expiry" }, now)).length;
    } catch (error) {
      log("warn", { event: "expiry-left-to-sweep", application: applicationId, error });
    }
  }
  const last = badges.at(-1);
  return { noted, next: last?.expiresAt == null ? null : { expiresAt: last.expiresAt, number: last.number } };
}
