import { STATUS_LIST_CHUNK_ROWS, STATUS_LIST_SAVED_CHANGES } from "../../../shared/limits/status-list-limits.ts";
import type { Application } from "../../applications/application-cache.ts";
import type { Context } from "../../context.ts";
import { log } from "../../log.ts";
import { readStatusRows, saveStatusList } from "../../storage/status-lists.ts";
import { INVALID, packBits, SUSPENDED, setStatus, unpackBits, VALID, validBits } from "./bits.ts";
import { indexesOf } from "./list-index.ts";

export interface BuiltList {
  lst: string;
  /** The application's last ordinal; 0 when it has issued no badge. */
  lastOrdinal: number;
  /** The last change that the list contains. */
  change: number;
}

/**
 * Builds a list from the saved list, later changes, and badges whose expiry is not recorded yet. So an unchanged list
 * costs a few rows, independent of its size. After enough changes it is saved again. If there are more changes than one
 * statement reads, the list is built in several steps.
 *
 * @param now milliseconds
 */
export async function buildList(
  context: Context,
  application: Application,
  list: number,
  now: number,
): Promise<BuiltList> {
  const { db } = context;
  const of = { applicationId: application.id, list };
  const {
    saved,
    changed,
    expired,
    lastOrdinal,
    lastChange: change,
  } = await readStatusRows(db, of, now, STATUS_LIST_CHUNK_ROWS);
  if (saved !== null && changed.rows === 0 && expired.length === 0) return { lst: saved, lastOrdinal, change };
  const indexOf = await indexesOf(context, application, list);
  const bits = saved === null ? validBits() : await unpackBits(saved);
  for (const offset of changed.active) setStatus(bits, indexOf(offset), VALID);
  for (const offset of changed.ended) setStatus(bits, indexOf(offset), INVALID);
  for (const offset of changed.paused) setStatus(bits, indexOf(offset), SUSPENDED);
  const save = async () => saveStatusList(db, { ...of, through: changed.through, lst: await packBits(bits) });
  if (changed.rows === STATUS_LIST_CHUNK_ROWS) {
    await save();
    return buildList(context, application, list, now);
  }
  if (changed.rows >= STATUS_LIST_SAVED_CHANGES) {
    await save().catch((error) =>
      log("warn", { event: "status-list-not-saved", application: application.id, list, error }),
    );
  }
  for (const offset of expired) setStatus(bits, indexOf(offset), SUSPENDED);
  return { lst: await packBits(bits), lastOrdinal, change };
}
