import type { StatusReference } from "./claims.ts";
import { readStatusList, statusAt } from "./status-list.ts";
import type { Expectations, StatusList } from "./types.ts";

const ACTIVE = 0;
const REVOKED = 1;
const SUSPENDED = 2;

/** A badge's status by its list, or why it is unknown. */
export type BadgeStatus = "active" | "revoked" | "suspended" | StatusDoubt;
export type StatusDoubt = "status-stale" | "status-unknown";

interface CheckedStatus {
  /** Why the badge is refused; null if it is not. */
  failure: Exclude<BadgeStatus, "active"> | null;
  /** A problem with the list that the caller's policy accepts; null if there is none. */
  acceptedDespite: StatusDoubt | null;
}

/**
 * Looks up a badge's status with the caller's lists and policy (contract section 14). A stale list still counts: a
 * revoked badge stays revoked.
 */
export async function checkStatus(
  { uri, index }: StatusReference,
  expected: Expectations,
  clock: { nowSeconds: number; toleranceSeconds: number },
): Promise<CheckedStatus> {
  const given = givenList(expected, uri);
  if (given === undefined) return byPolicy("status-unknown", expected.missingStatusList);
  const list = typeof given === "string" ? await readList(given, uri, expected) : given;
  // A list with another URI, or from the future, does not count.
  if (list?.uri !== uri || list.issuedAt > (clock.nowSeconds + clock.toleranceSeconds) * 1000) {
    return { failure: "status-unknown", acceptedDespite: null };
  }
  const status = meaningOf(statusAt(list.statuses, index));
  if (status !== "active") return { failure: status, acceptedDespite: null };
  const isStale = clock.nowSeconds * 1000 >= list.expiresAt + clock.toleranceSeconds * 1000;
  return isStale ? byPolicy("status-stale", expected.staleStatusList) : { failure: null, acceptedDespite: null };
}

/** Only an own member of the caller's object: a URI such as `constructor` must not find an inherited one. */
function givenList({ statusLists = {} }: Expectations, uri: string): string | StatusList | undefined {
  return Object.hasOwn(statusLists, uri) ? statusLists[uri] : undefined;
}

async function readList(jwt: string, uri: string, { keys }: Expectations): Promise<StatusList | null> {
  const read = await readStatusList(jwt, { keys, uri });
  return read.ok ? read.list : null;
}

function meaningOf(status: number | undefined): "active" | "revoked" | "suspended" | "status-unknown" {
  if (status === ACTIVE) return "active";
  if (status === REVOKED) return "revoked";
  // Refuses 3, which the service does not use, and an index beyond the end of the list.
  return status === SUSPENDED ? "suspended" : "status-unknown";
}

/** Refuses unless the caller's policy is exactly "accept". */
function byPolicy(doubt: StatusDoubt, policy: "refuse" | "accept" = "refuse"): CheckedStatus {
  return policy === "accept" ? { failure: null, acceptedDespite: doubt } : { failure: doubt, acceptedDespite: null };
}
