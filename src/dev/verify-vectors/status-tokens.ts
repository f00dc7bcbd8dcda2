import { deflateSync } from "node:zlib";
import { SIGNING_KEY } from "./keys.ts";
import { APPLICATION_ID, CLAIMS, ISSUED_AT, type Members, makeJwt, part, signedParts } from "./tokens.ts";
import { type Circumstances, IN_SET } from "./vector.ts";

/** Status lists as the service makes them, and badge signatures that point into them (contract section 14). */

export const URI = `https://badges.example/v1/applications/${APPLICATION_ID}/status/0`;
/** Entries of a list of the service. */
export const ENTRIES = 131_072;
export const LIST_HEADER = { alg: "ES256", kid: SIGNING_KEY.kid, typ: "statuslist+jwt" };
export const LIST_EXPIRES_AT = ISSUED_AT + 86_400;
export const NEVER = { ...CLAIMS, exp: LIST_EXPIRES_AT * 2 };

/** A byte has four entries, so each of the first four indexes tries another one; 131,071 is the last. */
export const STATUSES: Record<number, number> = { 1: 1, 2: 2, 3: 3, 4: 1, 77777: 1, 77778: 2, 131070: 2, 131071: 1 };

/** Entries of `bits` each, zero unless they are named, from the least significant bit of each byte. */
export function packStatuses(entries: number, bits: number, statuses: Record<number, number>): Buffer {
  const bytes = Buffer.alloc(Math.ceil((entries * bits) / 8));
  for (const [index, status] of Object.entries(statuses)) {
    const bit = Number(index) * bits;
    const byte = Math.floor(bit / 8);
    bytes.writeUInt8(bytes.readUInt8(byte) | (status << (bit % 8)), byte);
  }
  return bytes;
}

export function compress(bytes: Buffer): Buffer {
  return deflateSync(bytes, { level: 9 });
}

export const LST = compress(packStatuses(ENTRIES, 2, STATUSES)).toString("base64url");
export const LIST_CLAIMS = {
  sub: URI,
  iat: ISSUED_AT,
  exp: LIST_EXPIRES_AT,
  ttl: 60,
  status_list: { bits: 2, lst: LST },
};

export interface ListOptions {
  header?: Members | string;
  claims?: Members | string | Buffer;
  key?: typeof SIGNING_KEY;
}

/** A list as the service makes it, unless the arguments say otherwise. */
export function makeList({ header = LIST_HEADER, claims = LIST_CLAIMS, key = SIGNING_KEY }: ListOptions = {}): string {
  return signedParts(part(header), part(claims), key.privateKey);
}

export const LIST = makeList();
export const claimsAt = (idx: unknown, uri: unknown = URI) => ({ ...CLAIMS, status: { status_list: { idx, uri } } });
export const badgeAt = (idx: unknown, uri: unknown = URI) => makeJwt({ claims: claimsAt(idx, uri) });
export const lists = (list: string, more: Circumstances = {}): Circumstances => ({
  ...IN_SET,
  statusLists: { [URI]: list },
  ...more,
});

export function withLst(lst: unknown, claims: Members = {}): string {
  return makeList({ claims: { ...LIST_CLAIMS, ...claims, status_list: { bits: 2, lst } } });
}

export function withStatuses(bytes: Buffer, claims: Members = {}): string {
  return withLst(compress(bytes).toString("base64url"), claims);
}
