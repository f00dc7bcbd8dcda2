import { decodeBase64Url, isJsonObject, isWholeNumber, parseJsonObject } from "./encoding.ts";
import { verifySignedJwt } from "./signed-jwt.ts";
import type { JwkSet, SinglePublicKey, StatusList, StatusListFailure } from "./types.ts";
import { inflateZlib } from "./zlib.ts";

/** 2^20 entries of 2 bits, eight times a list of the service. The limit keeps a small JWT from filling the memory. */
const MAX_STATUS_LIST_BYTES = 262_144;
const STATUS_LIST_JWT = {
  type: "statuslist+jwt",
  /** Room for the largest list without any compression; base64url is applied twice. */
  maxCharacters: 524_288,
};
/** Bits of one entry in the service's lists (contract section 14). */
export const STATUS_BITS = 2;

/**
 * Reads and verifies a status list: the response of the `uri` in a badge signature (contract section 14,
 * draft-ietf-oauth-status-list-20 section 5.1). Its times are checked when it is used, so a list can be kept.
 *
 * @param expected `keys`: the application's public keys; `uri`: exactly as in badge signatures
 */
export async function readStatusList(
  jwt: string,
  expected: { keys: JwkSet | SinglePublicKey; uri: string },
): Promise<{ ok: true; list: StatusList } | { ok: false; reason: StatusListFailure }> {
  const signed = await verifySignedJwt(jwt, STATUS_LIST_JWT, expected.keys);
  if (typeof signed === "string") return { ok: false, reason: signed };
  const list = await parseStatusList(signed.payload);
  if (list === null) return { ok: false, reason: "malformed" };
  return list.uri === expected.uri ? { ok: true, list } : { ok: false, reason: "wrong-uri" };
}

/** Reads the claims of a verified list; null if one is missing or invalid. */
async function parseStatusList(payload: Uint8Array<ArrayBuffer>): Promise<StatusList | null> {
  const claims = parseJsonObject(payload);
  if (claims === null) return null;
  const { sub, iat, exp, ttl, change, status_list: statusList } = claims;
  if (typeof sub !== "string" || !isWholeNumber(iat)) return null;
  // The draft only recommends `exp`; without it, an old list that somebody keeps serving would be trusted for ever.
  if (!isWholeNumber(exp)) return null;
  if (ttl !== undefined && !(isWholeNumber(ttl) && ttl > 0)) return null;
  if (change !== undefined && !isWholeNumber(change)) return null;
  if (!isJsonObject(statusList) || statusList.bits !== STATUS_BITS || typeof statusList.lst !== "string") return null;
  const statuses = await unpackStatuses(statusList.lst);
  if (statuses === null) return null;
  return {
    uri: sub,
    issuedAt: iat * 1000,
    expiresAt: exp * 1000,
    ttlSeconds: ttl ?? null,
    change: change ?? null,
    statuses,
  };
}

/** The bytes of `lst`: base64url of one zlib stream. Null for anything else, and for more than 262,144 bytes. */
export async function unpackStatuses(lst: string): Promise<Uint8Array<ArrayBuffer> | null> {
  const compressed = decodeBase64Url(lst);
  return compressed && (await inflateZlib(compressed, MAX_STATUS_LIST_BYTES));
}

/**
 * The status at an index; entries fill each byte from its least significant bit (draft section 4.1). Undefined beyond the
 * end.
 *
 * @param bits of one entry: 1, 2, 4 or 8
 */
export function statusAt(statuses: Uint8Array, index: number, bits = STATUS_BITS): number | undefined {
  const entriesPerByte = 8 / bits;
  const byte = statuses[Math.floor(index / entriesPerByte)];
  return byte === undefined ? undefined : (byte >> ((index % entriesPerByte) * bits)) & (2 ** bits - 1);
}
