import { deflateRawSync, deflateSync } from "node:zlib";
import type { StatusListFailure } from "../../verify/badge-signature.ts";
import { OTHER_KEY, SIGNING_KEY, STRANGERS_KEY } from "./keys.ts";
import { APPLICATION_ID, CLAIMS, HEADER, ISSUED_AT, type Members, makeJwt, part, signedParts } from "./tokens.ts";
import { accept, type Circumstances, IN_SET, KEY_SET, refuse, type Vector } from "./vector.ts";

/** Badge signatures with a `status` claim (contract section 14), and the lists they point into. */

const URI = `https://badges.example/v1/applications/${APPLICATION_ID}/status/0`;
/** Entries of a list of the service. */
const ENTRIES = 131_072;
const LIST_HEADER = { alg: "ES256", kid: SIGNING_KEY.kid, typ: "statuslist+jwt" };
const LIST_EXPIRES_AT = ISSUED_AT + 86_400;
const NEVER = { ...CLAIMS, exp: LIST_EXPIRES_AT * 2 };

/** A byte has four entries, so each of the first four indexes tries another one; 131,071 is the last. */
const STATUSES: Record<number, number> = { 1: 1, 2: 2, 3: 3, 4: 1, 77777: 1, 77778: 2, 131070: 2, 131071: 1 };

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

function compress(bytes: Buffer): Buffer {
  return deflateSync(bytes, { level: 9 });
}

const LST = compress(packStatuses(ENTRIES, 2, STATUSES)).toString("base64url");
const LIST_CLAIMS = {
  sub: URI,
  iat: ISSUED_AT,
  exp: LIST_EXPIRES_AT,
  ttl: 60,
  status_list: { bits: 2, lst: LST },
};

interface ListOptions {
  header?: Members | string;
  claims?: Members | string | Buffer;
  key?: typeof SIGNING_KEY;
}

/** A list as the service makes it, unless the arguments say otherwise. */
function makeList({ header = LIST_HEADER, claims = LIST_CLAIMS, key = SIGNING_KEY }: ListOptions = {}): string {
  return signedParts(part(header), part(claims), key.privateKey);
}

const LIST = makeList();
const claimsAt = (idx: unknown, uri: unknown = URI) => ({ ...CLAIMS, status: { status_list: { idx, uri } } });
const badgeAt = (idx: unknown, uri: unknown = URI) => makeJwt({ claims: claimsAt(idx, uri) });
const lists = (list: string, more: Circumstances = {}): Circumstances => ({
  ...IN_SET,
  statusLists: { [URI]: list },
  ...more,
});

export function statusVectors(): Vector[] {
  return [
    ...statusOutcomes(),
    ...freshnessVectors(),
    ...missingVectors(),
    ...claimVectors(),
    ...confusedKindVectors(),
    ...orderVectors(),
    ...hostileHeaders(),
    ...hostileClaims(),
    ...hostileBytes(),
  ];
}

function statusOutcomes(): Vector[] {
  const ok = (name: string, idx: number, list = LIST, more: Circumstances = {}) =>
    accept(name, badgeAt(idx), { claims: claimsAt(idx), ...lists(list, more) });
  const { ttl: _, ...withoutTtl } = LIST_CLAIMS;
  const otherKeysList = makeList({ header: { ...LIST_HEADER, kid: OTHER_KEY.kid }, key: OTHER_KEY });
  const uncompressed = deflateSync(packStatuses(ENTRIES, 2, STATUSES), { level: 0 }).toString("base64url");
  return [
    ok("active by its status list", 0),
    ok("active, between entries that are not", 77_776),
    ok("active, the last entry but two", 131_069),
    ok("active by a list that the application's other key signed", 5, otherKeysList),
    ok("active by a list that says no ttl", 5, makeList({ claims: withoutTtl })),
    ok("active by a list that is stored, not compressed", 5, withLst(uncompressed)),
    ok(
      "active by a list of 2^20 entries, the most there may be",
      1_048_575,
      withStatuses(packStatuses(2 ** 20, 2, {})),
    ),
    ok("active by a list with claims and parameters that are unknown", 5, listWithExtras()),
    accept("active, with the one key that signed both", badgeAt(0), {
      claims: claimsAt(0),
      statusLists: { [URI]: LIST },
    }),
    accept("active by the second of two lists", badgeAt(4, `${URI}1`), {
      claims: claimsAt(4, `${URI}1`),
      ...IN_SET,
      statusLists: { [URI]: LIST, [`${URI}1`]: withStatuses(Buffer.alloc(2), { sub: `${URI}1` }) },
    }),
    accept("no status claim, though there are lists", makeJwt(), lists(LIST)),
    accept("no status claim, and a list that is none", makeJwt(), lists("not a list")),
    ...[1, 4, 77_777, 131_071].map((idx) => refuse("revoked", `revoked, at ${idx}`, badgeAt(idx), lists(LIST))),
    ...[2, 77_778, 131_070].map((idx) => refuse("suspended", `suspended, at ${idx}`, badgeAt(idx), lists(LIST))),
    refuse("status-unknown", "status 3, which the service does not use", badgeAt(3), lists(LIST)),
    ...[ENTRIES, ENTRIES * 4, 2 ** 32, 2 ** 32 + ENTRIES, Number.MAX_SAFE_INTEGER].map((idx) =>
      refuse("status-unknown", `an index of ${idx}, beyond the end`, badgeAt(idx), lists(LIST)),
    ),
    refuse("status-unknown", "an index into a list without entries", badgeAt(0), lists(withStatuses(Buffer.alloc(0)))),
    refuse("status-unknown", "an index of another byte than the one there is", badgeAt(4), {
      ...lists(withStatuses(Buffer.alloc(1))),
    }),
  ];
}

function listWithExtras(): string {
  return makeList({
    header: { ...LIST_HEADER, jku: "https://attacker.example/jwks.json", cty: "x" },
    claims: {
      ...LIST_CLAIMS,
      iss: "https://badges.example",
      status_list: { ...LIST_CLAIMS.status_list, aggregation_uri: "https://badges.example/all" },
    },
  });
}

function withLst(lst: unknown, claims: Members = {}): string {
  return makeList({ claims: { ...LIST_CLAIMS, ...claims, status_list: { bits: 2, lst } } });
}

function withStatuses(bytes: Buffer, claims: Members = {}): string {
  return withLst(compress(bytes).toString("base64url"), claims);
}

function freshnessVectors(): Vector[] {
  const at = (idx: number) => {
    const claims = { ...NEVER, status: { status_list: { idx, uri: URI } } };
    return { claims, jwt: makeJwt({ claims }) };
  };
  const active = at(0);
  const when = (nowSeconds: number, clockToleranceSeconds: number): Circumstances =>
    lists(LIST, { nowSeconds, clockToleranceSeconds });
  const stale = when(LIST_EXPIRES_AT, 0);
  const early = makeList({ claims: { ...LIST_CLAIMS, iat: ISSUED_AT + 121 } });
  return [
    accept("a second before its list expires", active.jwt, {
      claims: active.claims,
      ...when(LIST_EXPIRES_AT - 1, 0),
    }),
    accept("the last second within the tolerance after its list expired", active.jwt, {
      claims: active.claims,
      ...when(LIST_EXPIRES_AT + 59, 60),
    }),
    refuse("status-stale", "at the second its list expires", active.jwt, stale),
    refuse("status-stale", "at the end of the tolerance after its list expired", active.jwt, {
      ...when(LIST_EXPIRES_AT + 60, 60),
    }),
    refuse("status-stale", "a list that is stale, where only a missing one is accepted", active.jwt, {
      ...stale,
      missingStatusList: "accept",
    }),
    accept("a list that is stale, which is accepted", active.jwt, {
      claims: active.claims,
      ...stale,
      staleStatusList: "accept",
      acceptedDespite: "status-stale",
    }),
    refuse("revoked", "revoked by a list that is stale", at(1).jwt, stale),
    refuse("revoked", "revoked by a list that is stale, which is accepted", at(1).jwt, {
      ...stale,
      staleStatusList: "accept",
    }),
    refuse("suspended", "suspended by a list that is stale, which is accepted", at(2).jwt, {
      ...stale,
      staleStatusList: "accept",
    }),
    refuse("status-unknown", "beyond the end of a list that is stale, which is accepted", at(ENTRIES).jwt, {
      ...stale,
      staleStatusList: "accept",
    }),
    accept("a list from the future, just within the tolerance", badgeAt(0), {
      claims: claimsAt(0),
      ...lists(makeList({ claims: { ...LIST_CLAIMS, iat: ISSUED_AT + 120 } })),
    }),
    refuse("status-unknown", "a list from the future, a second beyond the tolerance", badgeAt(0), lists(early)),
    refuse("status-unknown", "a list from the future, where everything is accepted", badgeAt(0), {
      ...lists(early, { missingStatusList: "accept", staleStatusList: "accept" }),
    }),
    refuse("status-unknown", "a list with times in milliseconds", badgeAt(0), {
      ...lists(makeList({ claims: { ...LIST_CLAIMS, iat: ISSUED_AT * 1000, exp: LIST_EXPIRES_AT * 1000 } })),
    }),
  ];
}

function missingVectors(): Vector[] {
  const jwt = badgeAt(0);
  const claims = claimsAt(0);
  const asMember = (uri: string) =>
    refuse("status-unknown", `a list whose uri is ${uri}, which is missing`, badgeAt(0, uri), {
      ...IN_SET,
      statusLists: {},
    });
  return [
    refuse("status-unknown", "no lists at all", jwt, IN_SET),
    refuse("status-unknown", "no list of this uri", jwt, { ...IN_SET, statusLists: {} }),
    refuse("status-unknown", "only a list of another uri", jwt, { ...IN_SET, statusLists: { [`${URI}1`]: LIST } }),
    ...["toString", "constructor", "__proto__", ""].map(asMember),
    refuse("status-unknown", "a missing list, where only a stale one is accepted", jwt, {
      ...IN_SET,
      statusLists: {},
      staleStatusList: "accept",
    }),
    refuse("status-unknown", "a missing list, where a policy in other letter case is set", jwt, {
      ...IN_SET,
      statusLists: {},
      missingStatusList: "Accept",
    }),
    accept("a missing list, which is accepted", jwt, {
      claims,
      ...IN_SET,
      statusLists: {},
      missingStatusList: "accept",
      acceptedDespite: "status-unknown",
    }),
    ...["toString", "__proto__"].map((uri) =>
      accept(`a missing list whose uri is ${uri}, which is accepted`, badgeAt(0, uri), {
        claims: claimsAt(0, uri),
        ...IN_SET,
        statusLists: {},
        missingStatusList: "accept",
        acceptedDespite: "status-unknown",
      }),
    ),
    accept("no lists at all, which is accepted", jwt, {
      claims,
      ...IN_SET,
      missingStatusList: "accept",
      acceptedDespite: "status-unknown",
    }),
  ];
}

/** A `status` claim of a genuine badge signature that this verifier cannot read must not be taken for none. */
function claimVectors(): Vector[] {
  const indexes = ["0", -1, 0.5, null, true, 2 ** 53, 1e300, [0], undefined];
  const uris = [7, null, [URI], { uri: URI }, undefined];
  const statuses = [null, true, "active", 0, [], {}, { status_list: null }, { status_list: [] }, { status_list: URI }];
  const malformed = (name: string, status: unknown) =>
    refuse("malformed", name, makeJwt({ claims: { ...CLAIMS, status } }), lists(LIST));
  return [
    ...indexes.map((idx) => malformed(`status with idx ${JSON.stringify(idx)}`, { status_list: { idx, uri: URI } })),
    ...uris.map((uri) => malformed(`status with uri ${JSON.stringify(uri)}`, { status_list: { idx: 0, uri } })),
    ...statuses.map((status) => malformed(`status is ${JSON.stringify(status)}`, status)),
    malformed("status of a mechanism that is not known", { identifier_list: { id: "00", uri: URI } }),
  ];
}

/** Each kind of JWT has rules that exclude the other (RFC 8725 section 3.12). */
function confusedKindVectors(): Vector[] {
  const both = { ...CLAIMS, ...LIST_CLAIMS, exp: LIST_EXPIRES_AT };
  return [
    refuse("wrong-type", "a status list as a badge signature", LIST, lists(LIST)),
    refuse("wrong-type", "a status list with the claims of a badge signature", makeList({ claims: CLAIMS }), IN_SET),
    unreadable("wrong-type", "a badge signature as its status list", makeJwt()),
    unreadable("wrong-type", "a badge signature with the claims of a list", makeJwt({ claims: both })),
  ];
}

/** A status is looked up last, when all else matches. */
function orderVectors(): Vector[] {
  const revoked = badgeAt(1);
  return [
    refuse("bad-signature", "revoked, and by a stranger's key", strangersBadge(), lists(LIST)),
    refuse("wrong-audience", "revoked, and another application's", revoked, {
      ...lists(LIST),
      applicationId: "app_zyxwvtsrqpnmkjhgfedc",
    }),
    refuse("expired", "revoked, and expired", revoked, { ...lists(LIST), nowSeconds: ISSUED_AT + 3600 }),
    refuse("wrong-badge-number", "revoked, and another badge", revoked, { ...lists(LIST), badgeNumber: "7" }),
    refuse("wrong-client-signature", "revoked, and another client signature", revoked, {
      ...lists(LIST),
      clientSignature: "AAAA",
    }),
  ];
}

function strangersBadge(): string {
  return signedParts(part(HEADER), part(claimsAt(1)), STRANGERS_KEY.privateKey);
}

/** A list that cannot be used. Not even where missing and stale lists are accepted: somebody put it there. */
function unreadable(statusListFailure: StatusListFailure, name: string, list: string): Vector {
  return {
    ...refuse("status-unknown", `list: ${name}`, badgeAt(0), {
      ...lists(list),
      missingStatusList: "accept",
      staleStatusList: "accept",
    }),
    statusListFailure,
  };
}

function hostileHeaders(): Vector[] {
  const withHeader = (changes: Members) => makeList({ header: { ...LIST_HEADER, ...changes } });
  const [header = "", payload = "", signature = ""] = LIST.split(".");
  const types = ["JWT", "application/statuslist+jwt", "StatusList+JWT", "statuslist+cwt", "", null];
  const strangersHeader = { ...LIST_HEADER, jwk: STRANGERS_KEY.publicJwk };
  const doubled = (first: string, last: string) =>
    `{"alg":"ES256","kid":"${SIGNING_KEY.kid}","typ":"${first}","typ":"${last}"}`;
  return [
    unreadable("malformed", "an empty text", ""),
    unreadable("malformed", "a page in HTML", "<!doctype html><title>Sign in</title>"),
    unreadable("malformed", "two parts", `${header}.${payload}`),
    unreadable("malformed", "a line feed after it", `${LIST}\n`),
    unreadable("malformed", "padding after the signature", `${LIST}==`),
    unreadable("malformed", "crit", withHeader({ crit: ["exp"] })),
    unreadable("malformed", "no kid", makeList({ header: { alg: "ES256", typ: LIST_HEADER.typ } })),
    unreadable("wrong-algorithm", "alg none, no signature", `${part({ ...LIST_HEADER, alg: "none" })}.${payload}.`),
    unreadable("wrong-algorithm", "alg HS256", withHeader({ alg: "HS256" })),
    unreadable("wrong-type", "no typ", makeList({ header: { alg: "ES256", kid: SIGNING_KEY.kid } })),
    ...types.map((typ) => unreadable("wrong-type", `typ ${JSON.stringify(typ)}`, withHeader({ typ }))),
    unreadable("wrong-type", "typ twice, the last wrong", makeList({ header: doubled("statuslist+jwt", "JWT") })),
    unreadable("unknown-key", "a kid that is not in the set", withHeader({ kid: STRANGERS_KEY.kid })),
    unreadable("bad-signature", "by a stranger's key", makeList({ key: STRANGERS_KEY })),
    unreadable("bad-signature", "by a key it brings along", makeList({ header: strangersHeader, key: STRANGERS_KEY })),
    unreadable("bad-signature", "by the other key of the set under this kid", makeList({ key: OTHER_KEY })),
    unreadable("bad-signature", "other claims", `${header}.${part({ ...LIST_CLAIMS, ttl: 61 })}.${signature}`),
    unreadable("bad-signature", "no signature", `${header}.${payload}.`),
    {
      ...refuse("status-unknown", "list: by the application's other key, where only one key is trusted", badgeAt(0), {
        publicKeys: { keys: KEY_SET.keys.slice(1) },
        statusLists: { [URI]: makeList({ header: { ...LIST_HEADER, kid: OTHER_KEY.kid }, key: OTHER_KEY }) },
      }),
      statusListFailure: "unknown-key",
    },
  ];
}

function hostileClaims(): Vector[] {
  const without = (name: string) =>
    Object.fromEntries(Object.entries(LIST_CLAIMS).filter(([member]) => member !== name));
  const malformed = (name: string, claims: Members | string | Buffer) =>
    unreadable("malformed", name, makeList({ claims }));
  const wrong: Record<string, readonly unknown[]> = {
    sub: [7, null, [URI]],
    iat: [String(ISSUED_AT), ISSUED_AT + 0.5, -1, 1e300, null],
    exp: [String(LIST_EXPIRES_AT), LIST_EXPIRES_AT + 0.5, -1, 1e300, null],
    ttl: ["60", 0, -60, 0.5, null],
    status_list: [null, [], LST, {}],
  };
  const bits = [1, 4, 8, 0, 3, -2, 2.5, "2", null, [2], undefined];
  const uris = [`${URI}1`, URI.slice(0, -1), `${URI}/`, `${URI}?`, URI.toUpperCase(), `${URI} `, ""];
  const good = JSON.stringify(LIST_CLAIMS);
  return [
    ...uris.map((sub) =>
      unreadable("wrong-uri", `sub is ${JSON.stringify(sub)}`, makeList({ claims: { ...LIST_CLAIMS, sub } })),
    ),
    ...["sub", "iat", "exp", "status_list"].map((name) => malformed(`no ${name}`, without(name))),
    ...Object.entries(wrong).flatMap(([name, values]) =>
      values.map((value) => malformed(`${name} is ${JSON.stringify(value)}`, { ...LIST_CLAIMS, [name]: value })),
    ),
    ...bits.map((each) =>
      malformed(`bits is ${JSON.stringify(each)}`, { ...LIST_CLAIMS, status_list: { bits: each, lst: LST } }),
    ),
    malformed("claims that are not JSON", "active"),
    malformed("claims that are an array", `[${good}]`),
    malformed("claims in invalid UTF-8", Buffer.from([0x7b, 0xc3, 0x28, 0x7d])),
    malformed("bits twice, the last wrong", good.replace('"bits":2', '"bits":2,"bits":1')),
    malformed("lst twice, the last wrong", good.replace(`"lst":"${LST}"`, `"lst":"${LST}","lst":"AAAA"`)),
    unreadable("wrong-uri", "sub twice, the last wrong", makeList({ claims: good.replace("}}", '},"sub":"x"}') })),
  ];
}

function hostileBytes(): Vector[] {
  const bytes = packStatuses(ENTRIES, 2, STATUSES);
  const zlib = compress(bytes);
  const text = (...parts: Buffer[]) => Buffer.concat(parts).toString("base64url");
  const malformed = (name: string, lst: unknown) => unreadable("malformed", name, withLst(lst));
  const wrongChecksum = Buffer.from(zlib);
  wrongChecksum.writeUInt8(zlib.readUInt8(zlib.length - 1) ^ 1, zlib.length - 1);
  const presetDictionary = deflateSync(bytes, { level: 9, dictionary: Buffer.from("badges") });
  const misnamed = Buffer.from(zlib);
  misnamed.writeUInt8(0x79, 0);
  return [
    malformed("lst is missing", undefined),
    malformed("lst is a number", 7),
    malformed("lst is a list", [LST]),
    malformed("lst is empty", ""),
    malformed("lst with padding", `${text(zlib, Buffer.alloc(0))}=`),
    malformed("lst with white space", ` ${LST}`),
    malformed("lst in base64, not base64url", zlibWithSpecialCharacters().toString("base64").replace(/=+$/, "")),
    malformed("lst that is not zlib", text(bytes.subarray(0, 64))),
    malformed("lst that is raw deflate", text(deflateRawSync(bytes))),
    malformed("lst that names another compression", text(misnamed)),
    malformed("lst that needs a dictionary", text(presetDictionary)),
    malformed("lst that is cut off by a byte", text(zlib.subarray(0, -1))),
    malformed("lst without its checksum", text(zlib.subarray(0, -4))),
    malformed("lst that is cut in half", text(zlib.subarray(0, zlib.length / 2))),
    malformed("lst with a wrong checksum", text(wrongChecksum)),
    malformed("lst with a byte after it", text(zlib, Buffer.from([0]))),
    malformed("lst with another stream after it", text(zlib, compress(Buffer.alloc(1)))),
    malformed("lst one byte larger than may be", text(compress(Buffer.alloc(262_145)))),
    malformed("lst of 16 MiB, which take 16 KiB", text(compress(Buffer.alloc(2 ** 24)))),
  ];
}

/** The service's list, in a compression whose base64 has characters that base64url has not. */
function zlibWithSpecialCharacters(): Buffer {
  for (let index = 0; index < ENTRIES; index++) {
    const zlib = compress(packStatuses(ENTRIES, 2, { [index]: 2 }));
    if (/[+/]/.test(zlib.toString("base64"))) return zlib;
  }
  throw new Error("every list is the same in base64 and base64url");
}

/** A list's bytes, apart from any JWT: `statuses` are the entries that are not zero. */
export interface StatusListEncoding {
  name: string;
  bits: number;
  /** Of the draft also lists whose entries do not have two bits. */
  lst: string;
  entries: number;
  statuses: Record<string, number>;
}

/** The examples of draft-ietf-oauth-status-list sections 4.1 and 4.2 and of its appendix, and a list of the service. */
export function statusListEncodings(): StatusListEncoding[] {
  const DRAFT = "draft-ietf-oauth-status-list";
  const ofEntries = (values: readonly number[]): Record<string, number> =>
    Object.fromEntries(values.map((value, index) => [index, value]).filter(([, value]) => value !== 0));
  const large = {
    0: 1,
    1993: 2,
    25460: 1,
    159495: 3,
    495669: 1,
    554353: 1,
    645645: 2,
    723232: 1,
    854545: 1,
    934534: 2,
    1000345: 3,
  };
  const oneBit = [1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1];
  const twoBits = [1, 2, 0, 3, 0, 1, 0, 1, 1, 2, 3, 3];
  const encoded = (name: string, bits: number, entries: number, statuses: Record<string, number>) => {
    const lst = compress(packStatuses(entries, bits, statuses)).toString("base64url");
    return { name, bits, lst, entries, statuses };
  };
  return [
    { name: `${DRAFT}, 1 bit`, bits: 1, lst: "eNrbuRgAAhcBXQ", entries: 16, statuses: ofEntries(oneBit) },
    { name: `${DRAFT}, 2 bits`, bits: 2, lst: "eNo76fITAAPfAgc", entries: 12, statuses: ofEntries(twoBits) },
    encoded(`${DRAFT}, 2 bits, 2^20 entries`, 2, 2 ** 20, large),
    encoded("4 bits", 4, 16, { 0: 15, 1: 1, 14: 8, 15: 2 }),
    encoded("8 bits", 8, 4, { 1: 255, 3: 128 }),
    encoded("a list of the service", 2, ENTRIES, STATUSES),
  ];
}
