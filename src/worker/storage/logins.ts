import { changeOf, lastChange } from "../../shared/storage/high-water.ts";
import type { Database } from "./database.ts";
import { highestTurn } from "./turns.ts";

/** Changes that a login makes to its badge. */
export interface Login {
  /** The badge is already its device's current one. */
  isCurrent: boolean;
  /** New JSON text, or null to keep the stored one. */
  metadata: string | null;
  /** The stored text as it was read. */
  readMetadata: string | null;
}

const MAKE_CURRENT = `
  UPDATE badge SET turn = 1 + ${highestTurn({ applicationId: "badge.application_id", device: "badge.device" })}
  WHERE number = ?1 AND position IS NOT NULL`;

/** New metadata is a change in the feed. Compare-and-set, so that a delayed write cannot replace newer metadata. */
const REPLACE_METADATA = `
  UPDATE badge SET metadata = ?2, changed_at = ?3, change = 1 + ${lastChange("badge.application_id")}
  WHERE number = ?1 AND position IS NOT NULL AND metadata IS ?4`;

/**
 * Records what a login changes in its badge. One round trip.
 *
 * @param now milliseconds
 */
export async function recordLogin(
  db: Database,
  number: number,
  { isCurrent, metadata, readMetadata }: Login,
  now: number,
): Promise<void> {
  await db.atPrimary((d1) =>
    d1.batch([
      ...(isCurrent ? [] : [d1.prepare(MAKE_CURRENT).bind(number)]),
      ...(metadata === null ? [] : [d1.prepare(REPLACE_METADATA).bind(number, metadata, now, readMetadata)]),
    ]),
  );
}

/** Compare-and-set on the change number: of two keys that race, one is bound, and the other's call decides again. */
const BIND = `
  UPDATE badge SET key_thumbprint = ?3, rebind_until = NULL, metadata = coalesce(?4, metadata), changed_at = ?5,
    change = 1 + ${lastChange("badge.application_id")}
  WHERE number = ?1 AND position IS NOT NULL AND retired_at IS NULL AND ${changeOf("badge")} = ?2
  RETURNING number`;

const MAKE_CURRENT_IF_BOUND = `${MAKE_CURRENT} AND key_thumbprint = ?2`;

/**
 * Records a login that binds its badge to a key, or to another one, which ends a rebinding (contract section 15). One round
 * trip.
 *
 * @param readChange the badge's change number when it was read; if it has changed since, nothing is written
 * @param now milliseconds
 * @returns whether it was written
 */
export async function bindBadge(
  db: Database,
  number: number,
  thumbprint: string,
  { readChange, isCurrent, metadata }: Omit<Login, "readMetadata"> & { readChange: number },
  now: number,
): Promise<boolean> {
  const [bound] = await db.atPrimary((d1) =>
    d1.batch([
      d1.prepare(BIND).bind(number, readChange, thumbprint, metadata, now),
      ...(isCurrent ? [] : [d1.prepare(MAKE_CURRENT_IF_BOUND).bind(number, thumbprint)]),
    ]),
  );
  return (bound?.results.length ?? 0) > 0;
}
