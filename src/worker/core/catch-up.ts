import type { ApplicationId } from "../../shared/identifiers.ts";
import {
  CATCH_UP_CHARACTERS,
  CATCH_UP_ENTRIES,
  MAX_CATCH_UP_ENTRIES,
  PLATFORM_DEADLINE_MILLISECONDS,
} from "../../shared/limits.ts";
import { log } from "../log.ts";
import { Unavailable, withDeadline } from "../platform.ts";
import type { Database } from "../storage/database.ts";
import { entryStatements } from "../storage/entry-writes.ts";
import { readPosition } from "../storage/group-reads.ts";
import type { Position } from "../storage/rows.ts";
import { applyEntry } from "./apply.ts";
import type { Entry } from "./entry.ts";
import type { Journal, Mark } from "./journal.ts";

/** D1 has forgotten more than the journal has, or is on another timeline; an administrator decides (contract section 21). */
export interface Gap {
  kind: "gap";
  /** Where D1 is; undefined: it does not know the application. */
  at: Position | undefined;
}

/** `behind`: there is more to apply than one invocation may; the next one goes on. */
type CaughtUp = { kind: "level" | "behind"; at: Position; applied: number; events: string[] } | Gap;

/**
 * Makes D1 and the journal agree. D1 behind: it was restored, or a write was lost; its missing entries are applied again. D1
 * ahead: the object was restored or is new, and takes over D1's counters.
 *
 * @throws Unavailable
 */
export async function catchUp(db: Database, applicationId: ApplicationId, journal: Journal): Promise<CaughtUp> {
  const events: string[] = [];
  let applied = 0;
  for (;;) {
    const at = await readPosition(db, applicationId);
    if (!at) return { kind: "gap", at };
    const last = journal.last();
    if (!last || !journal.has(at)) {
      if (last && !isAhead(at, last, journal)) return { kind: "gap", at };
      journal.begin(applicationId, at, Date.now());
      return { kind: "level", at, applied, events };
    }
    journal.confirm(at);
    const missing = journal.after(at, CATCH_UP_ENTRIES);
    const isDone = missing.length === 0;
    if (applied > 1 || missing.length > 1) {
      const progress = { application: applicationId, at: at.sequence, to: last.sequence };
      log("warn", { event: isDone ? "caught-up" : "catching-up", ...progress });
    }
    if (isDone) return { kind: "level", at, applied, events };
    if (applied >= MAX_CATCH_UP_ENTRIES) return { kind: "behind", at, applied, events };
    if (applied === 0) journal.renew(at, Date.now());
    const progress = await applyChunk(db, applicationId, journal, missing);
    if (progress.isRefused) return { kind: "gap", at };
    applied += progress.applied;
    events.push(...progress.events);
  }
}

/**
 * Whether D1 is ahead of the journal. With the same sequence number it is when its entry was made later: the object was restored to
 * a moment when an attempt was under way that D1 refused, or that was given up. Or when nobody was told of the journal's: an
 * instance had sent D1's before the object was restored, or lost its storage.
 */
const isAhead = (at: Mark, last: Mark, journal: Journal): boolean =>
  at.sequence > last.sequence ||
  (at.sequence === last.sequence && (at.entry > last.entry || journal.isUntold(at.sequence)));

/** Several entries a batch, but the last one of all alone: it is the only one that D1 may refuse. */
async function applyChunk(
  db: Database,
  applicationId: ApplicationId,
  journal: Journal,
  missing: readonly Entry[],
): Promise<{ applied: number; events: string[]; isRefused?: true }> {
  const end = journal.last()?.sequence;
  const together: Entry[] = [];
  let characters = 0;
  for (const entry of missing) {
    characters += JSON.stringify(entry).length;
    if (entry.position.sequence === end || (together.length > 0 && characters > CATCH_UP_CHARACTERS)) break;
    together.push(entry);
  }
  if (together.length > 0) {
    const session = db.d1.withSession("first-primary");
    const statements = together.flatMap((entry) => entryStatements(session, applicationId, entry, journal.since()));
    try {
      await withDeadline("D1", PLATFORM_DEADLINE_MILLISECONDS, () => session.batch(statements));
    } catch (error) {
      throw new Unavailable("D1", error, true);
    }
    return { applied: together.length, events: together.flatMap((entry) => entry.events.map(({ id }) => id)) };
  }
  const [last] = missing;
  if (!last) return { applied: 0, events: [] };
  const outcome = await applyEntry(db, applicationId, last, journal.since());
  switch (outcome.kind) {
    case "applied":
      return { applied: 1, events: outcome.events };
    case "elsewhere":
      return { applied: 0, events: [] };
    case "refused":
      // It may have been answered before a restoration: nothing is guessed.
      log("error", {
        event: "entry-refused",
        application: applicationId,
        sequence: last.position.sequence,
        error: outcome.error,
      });
      return { applied: 0, events: [], isRefused: true };
    case "hindered":
      // Nothing but the entries before it decides that: D1 refused it before, too, or was never asked.
      journal.drop(last.id);
      return { applied: 0, events: [] };
    case "unknown":
      throw new Unavailable("D1", outcome.error, true);
  }
}
