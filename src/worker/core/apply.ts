import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { PLATFORM_DEADLINE_MILLISECONDS } from "../../shared/limits.ts";
import { isOverloaded, isRetryable } from "../../shared/retryable.ts";
import { withDeadline } from "../platform.ts";
import type { Database } from "../storage/database.ts";
import { entryStatements } from "../storage/entry-writes.ts";
import { readPosition } from "../storage/group-reads.ts";
import type { Entry } from "./entry.ts";

export type Applied =
  | { kind: "applied"; events: string[]; bookmark: string | null }
  /** D1 is at another place than the entry before. `isRefused`: and that is why this attempt was never applied, and never will be. */
  | { kind: "elsewhere"; isRefused: boolean }
  /** What must be true for the entry is not. */
  | { kind: "hindered" }
  /** D1 refuses the entry for another reason. */
  | { kind: "refused"; error: unknown; isAboutRows: boolean }
  /** Nobody knows whether D1 applied the entry, or will. */
  | { kind: "unknown"; error: unknown };

/** What the last statement of an entry with events returns. */
const writtenRows = z.array(z.object({ written: z.string() }));

/**
 * Applies an entry: once, however often this is called, because its batch applies only right after the entry before. One round
 * trip, and a second one when that fails.
 *
 * @param journalSince how far back the object's journal reaches, in milliseconds; null: to the application's beginning
 */
export async function applyEntry(
  db: Database,
  applicationId: ApplicationId,
  entry: Entry,
  journalSince: number | null,
): Promise<Applied> {
  try {
    const session = db.d1.withSession("first-primary");
    const results = await withDeadline("D1", PLATFORM_DEADLINE_MILLISECONDS, () =>
      session.batch(entryStatements(session, applicationId, entry, journalSince)),
    );
    const events =
      entry.events.length > 0 ? writtenRows.parse(results.at(-1)?.results).map(({ written }) => written) : [];
    return { kind: "applied", events, bookmark: session.getBookmark() };
  } catch (error) {
    return explain(db, applicationId, entry, error);
  }
}

/** What D1 says when the fence refuses an entry: because D1 is not at the entry before, or for what must be true besides. */
const NOT_NEXT = "NOT NULL constraint failed: position.sequence";
const HINDERED = "NOT NULL constraint failed: position.entry";

/** The message only tells what to suspect; what happened is what the position says. */
async function explain(db: Database, applicationId: ApplicationId, entry: Entry, error: unknown): Promise<Applied> {
  let at: string | undefined;
  try {
    at = (await readPosition(db, applicationId))?.entry;
  } catch {
    return { kind: "unknown", error };
  }
  if (at === entry.id) return { kind: "applied", events: entry.events.map(({ id }) => id), bookmark: db.bookmark };
  const message = messageOf(error);
  if (at !== entry.previous) return { kind: "elsewhere", isRefused: message.includes(NOT_NEXT) };
  if (message.includes(HINDERED)) return { kind: "hindered" };
  const isTransient = isRetryable(error) || isOverloaded(error) || !/SQLITE|constraint|D1_ERROR/i.test(message);
  // The position was read after a refusal in another's turn: a later write may have come in between.
  if (isTransient || message.includes(NOT_NEXT)) return { kind: "unknown", error };
  return { kind: "refused", error, isAboutRows: /constraint|too ?big/i.test(message) };
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  return `${error.message} ${messageOf(error.cause)}`;
}
