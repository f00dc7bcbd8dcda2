import { SCRIPT_COMMAND_RETENTION_DAYS } from "../../shared/limits/allocator-limits.ts";
import {
  MAX_LOGGED_UNREADABLE,
  MAX_PURGE_CHUNKS,
  MAX_SWEEP_CHUNKS,
  SWEEP_CHUNK_ROWS,
  SWEEP_SHARE_MILLISECONDS,
} from "../../shared/limits/sweep-limits.ts";
import { DAY_MILLISECONDS } from "../../shared/time.ts";
import type { Context } from "../context.ts";
import { resealChunk } from "../keys/resealing.ts";
import { log } from "../log.ts";
import { deleteOldCommands } from "../storage/command-rows.ts";
import type { ReadPositions } from "../storage/sealed-values.ts";
import { releaseHeldEvents } from "../storage/webhook-backlog.ts";
import { enqueueDueEvents, findUntriedEvents } from "../webhooks/backlog.ts";
import { type Checkpoints, SCANS } from "./old-rows.ts";

/**
 * One chunk of one kind of work.
 *
 * @param counts additional counts for the log line
 * @returns the number of rows, and whether there may be more
 */
type Chunk = (context: Context, counts: Record<string, number>) => Promise<{ count: number; more: boolean }>;

/** The kinds of work of one sweep, by the names of their counts in the log line. */
const kindsOfWork = (checkpoints: Checkpoints): Record<string, Chunk> => ({
  eventsReleased: releaseEvents,
  eventsEnqueued: enqueueEvents(),
  valuesResealed: resealValues(),
  eventsDeleted: scan("eventsDeleted", checkpoints),
  historyDeleted: scan("historyDeleted", checkpoints),
  commandsDeleted: deleteCommands,
});

/**
 * The once-a-minute work on a home's D1 that needs no object. The kinds of work run side by side, each up to a limit of
 * time and chunks. The next sweep resumes or retries. All work may be repeated, even by two sweeps at once.
 *
 * @param checkpoints where the scans for old rows resume
 */
export async function sweepHome(context: Context, checkpoints: Checkpoints): Promise<void> {
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
      log("error", { event: "sweep-task-failed", home: context.home, task: name, error });
    }
  };
  await Promise.all(Object.entries(kindsOfWork(checkpoints)).map(([name, chunk]) => run(name, chunk)));
  if (isFinished && Object.values(counts).every((count) => count === 0)) return;
  log("info", { event: "sweep", home: context.home, ...counts, isFinished, milliseconds: context.now() - startedAt });
}

async function releaseEvents({ db }: Context): Promise<{ count: number; more: boolean }> {
  const count = await releaseHeldEvents(db, SWEEP_CHUNK_ROWS);
  return { count, more: count > 0 };
}

/**
 * Gives untried events a due time, and enqueues due events in the first chunk only: they stay due until they are leased, so
 * a second chunk would enqueue them again. The next sweep enqueues the rest.
 */
function enqueueEvents(): Chunk {
  let isEnqueued = false;
  return async (context) => {
    const isComplete = await findUntriedEvents(context);
    const count = isEnqueued ? 0 : await enqueueDueEvents(context);
    isEnqueued = true;
    return { count, more: !isComplete };
  };
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

/** Runs at most `MAX_PURGE_CHUNKS` chunks of a scan for old rows. */
function scan(name: keyof typeof SCANS, checkpoints: Checkpoints): Chunk {
  let chunks = 0;
  return async (context) => {
    const { deleted, next } = await SCANS[name](context, checkpoints.get(name));
    checkpoints.set(name, next);
    chunks++;
    return { count: deleted, more: next !== null && chunks < MAX_PURGE_CHUNKS };
  };
}

async function deleteCommands({ db, now }: Context): Promise<{ count: number; more: boolean }> {
  const before = now() - SCRIPT_COMMAND_RETENTION_DAYS * DAY_MILLISECONDS;
  const count = await deleteOldCommands(db, before, SWEEP_CHUNK_ROWS);
  return { count, more: count === SWEEP_CHUNK_ROWS };
}
