import {
  MAX_APPLICATION_WAKE_UPS,
  MAX_LOGGED_UNREADABLE,
  MAX_PURGE_CHUNKS,
  MAX_QUEUE_BATCH_MESSAGES,
  MAX_SWEEP_CHUNKS,
  MAX_SWEEP_WAKE_UPS,
  PLATFORM_DEADLINE_MILLISECONDS,
  SCRIPT_COMMAND_RETENTION_DAYS,
  SWEEP_CHUNK_ROWS,
  SWEEP_SHARE_MILLISECONDS,
  WAKE_UP_GRACE_MILLISECONDS,
} from "../../shared/limits.ts";
import { DAY_MILLISECONDS } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { resealChunk } from "../keys/resealing.ts";
import { log } from "../log.ts";
import { withDeadline } from "../platform.ts";
import { deleteOldCommands } from "../storage/script-commands.ts";
import type { ReadPositions } from "../storage/sealed-values.ts";
import { findDueEvents, releaseHeldEvents } from "../storage/webhook-backlog.ts";
import { type Cursors, type Purge, purge } from "./retention.ts";

/**
 * One chunk of one kind of work.
 *
 * @param counts for what the log line counts besides
 * @returns how many rows it concerned, and whether there may be more
 */
type Chunk = (context: Context, counts: Record<string, number>) => Promise<{ count: number; more: boolean }>;

/** The kinds of work of one sweep, by what its log line counts. */
const kindsOfWork = (cursors: Cursors): Record<string, Chunk> => ({
  eventsReleased: releaseEvents,
  eventsWoken: wakeEvents,
  valuesResealed: resealValues(),
  eventsDeleted: scan("eventsDeleted", cursors),
  historyDeleted: scan("historyDeleted", cursors),
  commandsDeleted: deleteCommands,
});

/**
 * What a home's D1 needs once a minute besides what its objects do. The kinds of work run side by side, each for its share of
 * time and chunks; what is left, and what fails, is the next minute's. All of it may be repeated, even by two sweeps at once.
 *
 * @param cursors where the scans for old rows go on
 */
export async function sweepHome(context: Context, cursors: Cursors): Promise<void> {
  const startedAt = context.now();
  const counts: Record<string, number> = {};
  let isFinished = true;
  const run = async (name: string, chunk: Chunk) => {
    try {
      let more = true;
      for (let chunks = 0; more && chunks < MAX_SWEEP_CHUNKS; chunks++) {
        if (context.now() - startedAt > SWEEP_SHARE_MILLISECONDS) break;
        const done = await chunk(context, counts);
        counts[name] = (counts[name] ?? 0) + done.count;
        more = done.more;
      }
      if (more) isFinished = false;
    } catch (error) {
      isFinished = false;
      log("error", { event: "sweep-part-failed", home: context.home, part: name, error });
    }
  };
  await Promise.all(Object.entries(kindsOfWork(cursors)).map(([name, chunk]) => run(name, chunk)));
  if (isFinished && Object.values(counts).every((count) => count === 0)) return;
  log("info", { event: "sweep", home: context.home, ...counts, isFinished, milliseconds: context.now() - startedAt });
}

async function releaseEvents({ db }: Context): Promise<{ count: number; more: boolean }> {
  const count = await releaseHeldEvents(db, SWEEP_CHUNK_ROWS);
  return { count, more: count > 0 };
}

/** Sends wake-ups for due events: the first one was lost, or the delay was too long for the queue. */
async function wakeEvents({ db, queue, now }: Context): Promise<{ count: number; more: boolean }> {
  const due = await findDueEvents(db, {
    now: now(),
    createdBefore: now() - WAKE_UP_GRACE_MILLISECONDS,
    perApplication: MAX_APPLICATION_WAKE_UPS,
    limit: MAX_SWEEP_WAKE_UPS,
  });
  for (let start = 0; start < due.length; start += MAX_QUEUE_BATCH_MESSAGES) {
    const messages = due.slice(start, start + MAX_QUEUE_BATCH_MESSAGES).map((body) => ({ body }));
    await withDeadline("queue", PLATFORM_DEADLINE_MILLISECONDS, () => queue.sendBatch(messages));
  }
  // The events stay due until they are claimed, so a second chunk would wake them twice.
  return { count: due.length, more: false };
}

/** A value that cannot be opened is skipped until the next sweep. The log has its IDs, never the value. */
function resealValues(): Chunk {
  let after: ReadPositions | undefined;
  let logged = 0;
  return async ({ db, sealingKeys }, counts) => {
    const { resealed, unreadable, next } = await resealChunk(db, sealingKeys, after);
    for (const { value, error } of unreadable.slice(0, Math.max(0, MAX_LOGGED_UNREADABLE - logged))) {
      const { purpose, applicationId: application, id, sealingVersion } = value;
      log("error", { event: "value-not-resealed", purpose, application, id, sealingVersion, error });
    }
    logged += unreadable.length;
    counts.valuesUnreadable = logged;
    after = next ?? undefined;
    return { count: resealed, more: next !== null };
  };
}

/** Some chunks of a scan for old rows. */
function scan(name: Purge, cursors: Cursors): Chunk {
  let chunks = 0;
  return async (context) => {
    const { deleted, isFinished } = await purge(context, name, cursors);
    chunks++;
    return { count: deleted, more: !isFinished && chunks < MAX_PURGE_CHUNKS };
  };
}

async function deleteCommands({ db, now }: Context): Promise<{ count: number; more: boolean }> {
  const before = now() - SCRIPT_COMMAND_RETENTION_DAYS * DAY_MILLISECONDS;
  const count = await deleteOldCommands(db, before, SWEEP_CHUNK_ROWS);
  return { count, more: count === SWEEP_CHUNK_ROWS };
}
