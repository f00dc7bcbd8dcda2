import { deflateSync } from "node:zlib";
import { OTHER_KEY, STRANGERS_KEY } from "./keys.ts";
import { unreadable } from "./status-hostile.ts";
import {
  badgeAt,
  claimsAt,
  ENTRIES,
  LIST,
  LIST_CLAIMS,
  LIST_EXPIRES_AT,
  LIST_HEADER,
  lists,
  makeList,
  NEVER,
  packStatuses,
  STATUSES,
  URI,
  withLst,
  withStatuses,
} from "./status-tokens.ts";
import { CLAIMS, HEADER, ISSUED_AT, makeJwt, part, signedParts } from "./tokens.ts";
import { accept, type Circumstances, IN_SET, refuse, type Vector } from "./vector.ts";

/** Badge signatures with a `status` claim (contract section 14). */
export function statusVectors(): Vector[] {
  return [
    ...statusOutcomes(),
    ...freshnessVectors(),
    ...missingVectors(),
    ...claimVectors(),
    ...confusedKindVectors(),
    ...orderVectors(),
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
