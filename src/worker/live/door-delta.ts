import { stateAt } from "../../shared/badge-lifecycle/states.ts";
import { currentSigningKey } from "../../shared/credentials.ts";
import { MAX_DELTA_CHANGES } from "../../shared/limits/live-limits.ts";
import type { Application } from "../applications/application-cache.ts";
import { INVALID, SUSPENDED, VALID } from "../badges/status-lists/bits.ts";
import { firstOrdinalOf, indexesOf, listOf, listsUri } from "../badges/status-lists/list-index.ts";
import type { Context } from "../context.ts";
import { JwtHeaders, signJwt } from "../keys/own-jwt.ts";
import { Unavailable } from "../platform.ts";
import type { StatusChange, StatusChanges } from "../storage/status-changes.ts";

/** Content of the response of `GET /v1/live`. */
export interface Delta {
  /** The delta covers the changes after this one. */
  since: number;
  /** The last change that the delta covers. */
  change: number;
  changes: readonly StatusChange[];
}

/** The changes of status in D1 at one time. */
export interface Snapshot extends StatusChanges {
  /** `changes` has the changes after this one, up to the read limit. */
  after: number;
  /** Doors whose last change is below this one need the lists, because all of D1's badges were replaced. */
  floor: number;
  /** Time of the D1 read, in milliseconds. */
  readAt: number;
}

/**
 * The immediate delta for a door that has the changes up to `have`.
 *
 * @param have not below `snapshot.after`
 * @returns null if the door has to wait
 */
export function deltaFor(snapshot: Snapshot, have: number): Delta | null {
  const { isReadable, lastChange, floor } = snapshot;
  if (!isReadable) return null;
  const changes = snapshot.changes.filter(({ change }) => change > have);
  // This tells the door to fetch the lists again: it has changes that a restored D1 has lost, comes from before the
  // floor, or lacks too many changes.
  if (have > lastChange || have < floor || changes.length > MAX_DELTA_CHANGES) {
    return { since: lastChange, change: lastChange, changes: [] };
  }
  return changes.length > 0 || have === 0 ? { since: have, change: lastChange, changes } : null;
}

/** Whether a door that has the changes up to `have` has all changes of status. */
export const isCurrent = (snapshot: Snapshot, have: number): boolean =>
  snapshot.isReadable &&
  snapshot.changes.every(({ change }) => change <= have) &&
  have <= snapshot.lastChange &&
  have >= snapshot.floor;

export const emptyDelta = (have: number): Delta => ({ since: have, change: have, changes: [] });

const HEADERS = new JwtHeaders("statusdelta+jwt");

/**
 * Signs a delta with the key of new badges, which every cached key set has (contract section 10).
 *
 * @param at time of the D1 read, in milliseconds
 * @returns a compact JWS
 * @throws Unavailable without `PUBLIC_URL`, or if the key cannot be opened
 */
export async function signDelta(
  context: Pick<Context, "unsealedKeys" | "statusIndexes" | "publicUrl">,
  application: Application,
  { since, change, changes }: Delta,
  at: number,
): Promise<string> {
  const publicUrl = context.publicUrl();
  if (publicUrl === null) throw new Unavailable("PUBLIC_URL", new Error("PUBLIC_URL is not set"));
  const key = currentSigningKey(application.signingKeys, at);
  const entries: [list: number, index: number, status: number][] = [];
  for (const each of changes) {
    const list = listOf(each.ordinal);
    const indexOf = await indexesOf(context, application, list);
    entries.push([list, indexOf(each.ordinal - firstOrdinalOf(list)), statusAt(each, at)]);
  }
  const claims = {
    sub: listsUri(publicUrl, application.id),
    iat: Math.floor(at / 1000),
    since,
    change,
    entries,
  };
  return signJwt(HEADERS.of(key), claims, await context.unsealedKeys.signingKey(application.id, key.kid, key));
}

/** The badge's value, as in the status lists (contract section 14). */
function statusAt(change: StatusChange, now: number) {
  const state = stateAt(change, now);
  if (state === "active") return VALID;
  return state === "revoked" || state === "replaced" ? INVALID : SUSPENDED;
}
