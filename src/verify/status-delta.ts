import { isWholeNumber, parseJsonObject } from "./encoding.ts";
import { verifySignedJwt } from "./signed-jwt.ts";
import { STATUS_BITS } from "./status-list.ts";
import type { JwkSet, SinglePublicKey, StatusDelta, StatusList, StatusListFailure } from "./types.ts";

const STATUS_DELTA_JWT = {
  type: "statusdelta+jwt",
  /** The same limit as for a list; 2,000 entries take a tenth of it. */
  maxCharacters: 524_288,
};
const ENTRIES_OF_BYTE = 8 / STATUS_BITS;
const MAX_STATUS = 2 ** STATUS_BITS - 1;

/**
 * Reads and verifies a response of `GET /v1/live` (contract section 26). Apply it with `applyStatusDelta`.
 *
 * @param expected `keys`: the application's public keys; `uri`: the address of its status lists without the last slash and the number
 */
export async function readStatusDelta(
  jwt: string,
  expected: { keys: JwkSet | SinglePublicKey; uri: string },
): Promise<{ ok: true; delta: StatusDelta } | { ok: false; reason: StatusListFailure }> {
  const signed = await verifySignedJwt(jwt, STATUS_DELTA_JWT, expected.keys);
  if (typeof signed === "string") return { ok: false, reason: signed };
  const delta = parseStatusDelta(signed.payload);
  if (delta === null) return { ok: false, reason: "malformed" };
  return delta.uri === expected.uri ? { ok: true, delta } : { ok: false, reason: "wrong-uri" };
}

/** Reads the claims of a verified delta; null if one is missing or invalid. */
function parseStatusDelta(payload: Uint8Array<ArrayBuffer>): StatusDelta | null {
  const claims = parseJsonObject(payload);
  if (claims === null) return null;
  const { sub, iat, since, change, entries } = claims;
  if (typeof sub !== "string" || !isWholeNumber(iat)) return null;
  if (!isWholeNumber(since) || !isWholeNumber(change) || since > change) return null;
  if (!Array.isArray(entries)) return null;
  const parsed = entries.map(parseEntry).filter((entry) => entry !== null);
  if (parsed.length < entries.length) return null;
  return { uri: sub, issuedAt: iat * 1000, since, change, entries: parsed };
}

function parseEntry(entry: unknown): StatusDelta["entries"][number] | null {
  if (!Array.isArray(entry) || entry.length !== 3) return null;
  const [list, index, status]: unknown[] = entry;
  if (!isWholeNumber(list) || !isWholeNumber(index) || !isWholeNumber(status)) return null;
  return status <= MAX_STATUS ? { list, index, status } : null;
}

/**
 * Applies a delta to a list.
 *
 * @returns the list with the delta's changes, or the list itself if it contains them already. Null if the delta does not fit:
 *   it is for another application, the list lacks earlier changes, or the list has no such entry. Then download the list again.
 */
export function applyStatusDelta(list: StatusList, delta: StatusDelta): StatusList | null {
  const number = list.uri.startsWith(`${delta.uri}/`) ? list.uri.slice(delta.uri.length + 1) : "";
  if (!/^(0|[1-9][0-9]{0,10})$/.test(number)) return null;
  if (list.change === null || list.change < delta.since) return null;
  if (list.change >= delta.change) return list;
  const statuses = new Uint8Array(list.statuses);
  for (const { index, status } of delta.entries.filter((entry) => entry.list === Number(number))) {
    const place = Math.floor(index / ENTRIES_OF_BYTE);
    const byte = statuses[place];
    if (byte === undefined) return null;
    const shift = (index % ENTRIES_OF_BYTE) * STATUS_BITS;
    statuses[place] = (byte & ~(MAX_STATUS << shift)) | (status << shift);
  }
  return { ...list, change: delta.change, statuses };
}
