import { deflateRawSync, deflateSync } from "node:zlib";
import type { StatusListFailure } from "../../verify/badge-signature.ts";
import { OTHER_KEY, SIGNING_KEY, STRANGERS_KEY } from "./keys.ts";
import {
  badgeAt,
  compress,
  ENTRIES,
  LIST,
  LIST_CLAIMS,
  LIST_EXPIRES_AT,
  LIST_HEADER,
  LST,
  lists,
  makeList,
  packStatuses,
  STATUSES,
  URI,
  withLst,
} from "./status-tokens.ts";
import { ISSUED_AT, type Members, part } from "./tokens.ts";
import { KEY_SET, refuse, type Vector } from "./vector.ts";

/** Lists that are not what they should be (contract section 14). */
export function hostileListVectors(): Vector[] {
  return [...hostileHeaders(), ...hostileClaims(), ...hostileBytes()];
}

/** A list that cannot be used. Not even where missing and stale lists are accepted: somebody put it there. */
export function unreadable(statusListFailure: StatusListFailure, name: string, list: string): Vector {
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
