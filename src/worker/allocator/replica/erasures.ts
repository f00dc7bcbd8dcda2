import { and, eq } from "drizzle-orm";
import type { ApplicationId } from "../../../shared/identifiers.ts";
import type { Database } from "../../storage/database.ts";
import type { Erasure } from "../entry.ts";
import { erasure } from "../tables/schema.ts";
import type { Tables } from "../tables/tables.ts";
import { eraseFromEvents } from "./erase-events.ts";
import { eraseFromHistory } from "./erase-history.ts";

/**
 * No index finds a user in the bodies of webhook events, nor in what others wrote into the history. So for an erased user both are
 * looked through in chunks, beside other work. Each statement may come late or twice: it concerns rows that were made before the
 * erasure, and finds no user ID that is gone already.
 */

/** Rows of an application that are looked through at once, by their IDs. */
export interface Chunk {
  applicationId: ApplicationId;
  after: string;
  through: string;
  userId: string;
  alias: string;
}

/** How IDs of the history begin. They sort after those of events, so one mark says how far a search has come. */
const HISTORY = "his_";

/**
 * One chunk of one erasure: of the events, then of the history. Three round trips at most.
 *
 * @param noteDone is called after the last chunk, in the transaction that forgets the erasure
 * @throws Unavailable
 */
export async function continueErasure(
  db: Database,
  applicationId: ApplicationId,
  tables: Tables,
  noteDone: (erasure: Erasure) => void,
): Promise<void> {
  const [job] = tables.erasures(1);
  if (!job) return;
  const { alias, userId, afterEvent: after, throughEvent } = job;
  const chunk = { applicationId, after, userId, alias };
  const end = after.startsWith(HISTORY)
    ? await eraseFromHistory(db, { ...chunk, through: HISTORY + throughEvent.slice(HISTORY.length) })
    : ((await eraseFromEvents(db, { ...chunk, through: throughEvent })) ?? HISTORY);
  const { orm } = tables;
  const isThis = and(eq(erasure.alias, alias), eq(erasure.afterEvent, after));
  if (end !== undefined) {
    orm.update(erasure).set({ afterEvent: end }).where(isThis).run();
    return;
  }
  orm.transaction(() => {
    orm.delete(erasure).where(isThis).run();
    noteDone({ userId, alias, throughEvent });
  });
}
