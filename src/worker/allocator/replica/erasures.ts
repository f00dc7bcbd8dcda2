import type { ApplicationId } from "../../../shared/identifiers.ts";
import type { Database } from "../../storage/database.ts";
import { type EntryChanges, NO_CHANGES } from "../log-entry.ts";
import type { PendingErasure } from "../tables/tables.ts";
import { endOfEvents } from "./erase-events.ts";
import { findMentions } from "./erase-history.ts";

/** How IDs of the history begin. They sort after those of events, so one mark says how far a search has come. */
const HISTORY = "his_";

export interface SearchStep {
  /** What D1 is to change; null: nothing. */
  changes: EntryChanges | null;
  /** Where the search goes on; null: it ends with this step. */
  next: string | null;
}

/**
 * No index finds a user in the bodies of webhook events, nor in what others wrote into the history. So for an erased user both are
 * looked through in chunks, beside other work. What a chunk changes is an entry of the log, so a restored D1 is known to lack it.
 * Two round trips at most.
 *
 * @throws Unavailable
 */
export async function searchChunk(
  db: Database,
  applicationId: ApplicationId,
  { alias, userId, afterEvent: after, throughEvent }: PendingErasure,
): Promise<SearchStep> {
  const chunk = { applicationId, after, userId, alias };
  if (!after.startsWith(HISTORY)) {
    const end = await endOfEvents(db, { ...chunk, through: throughEvent });
    const eventSearches = [{ after, through: end ?? throughEvent, userId, alias }];
    return { changes: { ...NO_CHANGES, eventSearches }, next: end ?? HISTORY };
  }
  const through = HISTORY + throughEvent.slice(HISTORY.length);
  const { mentions, end } = await findMentions(db, { ...chunk, through });
  const erasures = end === undefined ? [{ userId, alias, throughEvent, isDone: true as const }] : [];
  const isEmpty = mentions.length + erasures.length === 0;
  return { changes: isEmpty ? null : { ...NO_CHANGES, erasedHistory: mentions, erasures }, next: end ?? null };
}
