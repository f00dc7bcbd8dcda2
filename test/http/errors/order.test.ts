import { beforeAll, expect, it } from "vitest";
import contract from "../../../docs/contract.md?raw";
import { PUBLIC_ERRORS } from "../../../src/shared/error-table.ts";
import { FEED_CURSOR } from "../../../src/worker/badges/changes.ts";
import { block, issueTo, setEnd, takeStep } from "../../badges/life-support.ts";
import { newPhone } from "../../bound/support.ts";
import { addDoor } from "../../live/support.ts";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { ahead, HOUR } from "../../support/clock.ts";
import { type Answer, call, callServer, outcome, serverHeaders } from "../../support/http.ts";
import {
  CREATOR,
  claim,
  claimedInvitation,
  expiredInvitation,
  type Invitation,
  invite,
  revokedInvitation,
} from "../../support/invitations.ts";
import { RECORDED_EVENTS, readRows } from "../../support/rows.ts";
import { everythingStored } from "../../support/stored.ts";
import { newProviderKey, type Provider, useProviders } from "../../users/provider.ts";
import { logIn } from "../../users/support.ts";
import { inParallel, times } from "../support/draft.ts";
import { signIn } from "../support/people.ts";
import { NOTHING, ROUTES, type Route, requestOf, type Subjects } from "../support/routes.ts";

/**
 * Every status and code that /openapi.json lists for a route is brought about here. That a route gives no others is
 * checked by every call of every test (`test/support/documented.ts`).
 */

/** Where they are brought about: unavailable.test.ts, rate-limit.test.ts, allocator/decide/users.test.ts and bound/. */
const ELSEWHERE = ["INTERNAL_ERROR", "UNAVAILABLE", "RATE_LIMITED", "TOO_MANY_BADGES", "USE_DPOP_NONCE"];

const UNKNOWN = "app_00000000000000000000";

/** What is different from a call that is granted. */
interface Change {
  method?: string;
  /** null takes a header away. */
  headers?: Record<string, string | null>;
  query?: string;
  subjects?: Partial<Subjects>;
  /** Fields that replace the granted ones, or a whole body as it is sent. */
  body?: Record<string, unknown> | string;
}

/** One that is made anew for each call. */
type Way = Change | (() => Promise<Change>);

/** A status and code, as `outcome` writes them, and the ways to get it. The first stands for all where faults come in pairs. */
type Fault = [answer: string, ...ways: Way[]];

const header = (name: string, ...values: (string | null)[]): Change[] =>
  values.map((value) => ({ headers: { [name]: value } }));
const field = (name: string, ...values: unknown[]): Change[] => values.map((value) => ({ body: { [name]: value } }));
const query = (...queries: string[]): Change[] => queries.map((one) => ({ query: one }));
const bodies = (...values: string[]): Change[] => values.map((body) => ({ body }));

/** In each of the ways that count as missing (contract section 2). */
const noHeader = (name: string) => header(name, null, "", " \t ");
const noField = (name: string) => field(name, undefined, null, "", " \t\n");

const FAULTY_BODY: Fault = ["400 INVALID_JSON", ...bodies("[]", '{"userId":', '"text"', "null")];
const FAULTY_UDID: Fault = ["422 INVALID_UDID", ...header("udid", "bell \u0007", "u".repeat(256))];
const FAULTY_PROOF: Fault = ["401 INVALID_PROOF", ...header("dpop", "none")];
const FAULTY_ACTOR = header("actor", "%", "%ff", "%0A", "%20", "%E3%80%80%C2%A0", "%C3%A4".repeat(101));
const FAULTY_SIZES = [
  ...["ten", "0", "00", "-1", "%2B1", "1.5", "1e2", "0x10", "Infinity", "%D9%A1", "", "%205", "5%0A", "1&per_page=2"],
].map((size) => `per_page=${size}`);
const FAULTY_CURSORS = ["!", "", "none", "%20", "1", "%00", "%C3%A9", "AAAA", "W10", "e30", "A".repeat(5000)].map(
  (cursor) => `cursor=${cursor}`,
);
const FAULTY_STATES = ["none", "", "Pending", "pending&state=pending", "pending,held"].map((state) => `state=${state}`);
/** More letters that differ by case, none of them ASCII, than can be searched for. */
const LETTERS = String.fromCodePoint(...times(41).map((place) => 0x430 + place));
const faultyTimes = (...names: string[]) =>
  names.flatMap((name) => ["", "soon", "2030-01-01", "2030-01-01T00:00:00"].map((time) => `${name}=${time}`));

let application: TestApplication;
let foreign: TestApplication;
/** Invitations of another application, in every state. */
let foreignInvitations: string[];
let disabled: TestApplication;
let requiring: TestApplication;
let proving: TestApplication;
let exhausted: TestApplication;
let provider: Provider;
let personal: TestApplication;
/** `Authorization` of nobody in the application whose users are verified. */
let wrongTokens: string[];

const newProvider = useProviders();

/** More than one, since each may call 60 times a minute. */
const PHONES = times(4).map((place) => `phone ${place}`);

beforeAll(async () => {
  provider = await newProvider();
  application = await createApplication();
  foreign = await createApplication();
  foreignInvitations = [];
  for (const make of [invite, claimedInvitation, revokedInvitation, lapsedInvitation]) {
    foreignInvitations.push((await make(foreign)).token);
  }
  disabled = await createApplication({ disabledAt: 1 });
  requiring = await createApplication({ requireSecret: true });
  proving = await createApplication({ requireProof: true });
  exhausted = await createApplication({ size: 1 });
  personal = await createApplication(provider.columns);
  const forged = `Bearer ${await provider.token("user", {}, { key: await newProviderKey("ES256", provider.key.jwk.kid) })}`;
  wrongTokens = ["Basic dTpw", "Bearer nonsense", `Bearer ${personal.secret}`, forged];
  for (const wrong of [{ exp: 1 }, { aud: "another-app" }, { iss: "https://else.example" }]) {
    wrongTokens.push(await bearer("user", wrong));
  }
  await issueTo(exhausted, "first", "first");
  for (const phone of PHONES) await issueTo(application, phone, "user");
  expect((await block(application, "blocked user")).status).toBe(200);
  // Their objects read what they have of D1 with the first call.
  for (const one of [requiring, proving, personal]) expect((await block(one, "nobody")).status).toBe(200);
});

const bearer = async (user: string, more = {}) => `Bearer ${await provider.token(user, more)}`;

let devices = 0;

/** Headers of somebody who may make the call. Each call that changes something is by another device. */
async function grantedHeaders({ by, method, path, name }: Route): Promise<Change["headers"]> {
  if (path.startsWith("/v1/user/")) return { applicationid: personal.id, authorization: await bearer("user") };
  if (by === null) return {};
  const headers = by === "device" ? { applicationid: application.id } : serverHeaders(application);
  const udid = name === "POST /v1/badge/sign" ? PHONES[devices++ % PHONES.length] : `device ${devices++}`;
  return method === "POST" ? { ...headers, udid: udid ?? "" } : headers;
}

/** The route's call, as it is granted but for these changes. */
async function send(route: Route, ...ways: Way[]): Promise<Answer> {
  const changes = await Promise.all(ways.map((way) => (typeof way === "function" ? way() : way)));
  const whole = Object.assign({}, ...changes);
  const merged = (part: "headers" | "subjects") => Object.assign({}, ...changes.map((change) => change[part]));
  const subjects = { ...NOTHING, application: application.id, ...merged("subjects") };
  const { path, body: granted } = requestOf(route, subjects);
  const search = changes.flatMap(({ query = [] }) => query).join("&");
  const headers = Object.entries<string | null>({ ...(await grantedHeaders(route)), ...merged("headers") });
  const bodies = [granted, ...changes.map(({ body }) => body)].filter((body) => body !== undefined);
  const fields = bodies.length > 0 ? Object.assign({}, ...bodies) : undefined;
  return call(whole.method ?? route.method, path + (search && `${path.includes("?") ? "&" : "?"}${search}`), {
    headers: Object.fromEntries(headers.flatMap(([name, value]) => (value === null ? [] : [[name, value]]))),
    body: bodies.find((body) => typeof body === "string") ?? fields,
  });
}

/** The pieces of a call that a change touches. Two faults of one piece exclude each other, all others can come together. */
const partsOf = ({ headers = {}, query = "", subjects = {}, body = {} }: Change): string[] => [
  ...[...Object.keys(headers), ...new URLSearchParams(query).keys(), ...Object.keys(subjects)],
  ...(typeof body === "string" ? ["body"] : Object.keys(body).map((name) => `body.${name}`)),
];

function canMeet(one: Way, other: Way): boolean {
  if (typeof one === "function" || typeof other === "function") return false;
  const isWithin = (part: string, whole: string) => part === whole || part.startsWith(`${whole}.`);
  return !partsOf(one).some((part) => partsOf(other).some((place) => isWithin(part, place) || isWithin(place, part)));
}

/** An `applicationid` that is there but of no use. */
function uselessApplication(): Change[] {
  const near = [application.id.toUpperCase(), `${application.id}x`];
  return header("applicationid", UNKNOWN, "no application ID", disabled.id, ...near);
}

const noApplication = (missing: string, useless = missing): Fault[] => [
  [missing, ...noHeader("applicationid")],
  [useless, ...uselessApplication()],
];

/** The call is another application's, whose server has to show its secret. */
const noRequiredSecret = (): Change[] =>
  [null, "", " \t "].map((applicationsecret) => ({ headers: { applicationid: requiring.id, applicationsecret } }));

/** The call is another application's, whose only number is taken. */
const noNumberLeft = (more: Change["headers"] = {}): Change => {
  return { headers: { applicationid: exhausted.id, ...more }, body: { invitationToken: null } };
};

/** Up to the INVALID_ codes. */
const badgeForm = (): Fault[] => [
  ...noApplication("422 UNDEFINED_APPLICATIONID", "401 INVALID_APPLICATIONID"),
  ["422 UNDEFINED_UDID", ...noHeader("udid")],
  FAULTY_BODY,
  ["422 UNDEFINED_USERID", ...noField("userId")],
  FAULTY_UDID,
  ["422 INVALID_USERID", ...field("userId", 17, "u".repeat(256), "..")],
  ["422 INVALID_METADATA", ...field("metadata", { os: 17 }, "text")],
  ["422 INVALID_INVITATIONTOKEN", ...field("invitationToken", 17, {}, [], true)],
];

function listFaults(): Fault[] {
  const { id, secret } = application;
  const wrong = ["wrong", foreign.secret, id, secret.slice(0, -1), `${secret}x`, secret.toLowerCase()];
  return [
    ...noApplication("401 INVALID_CREDENTIALS"),
    ["401 INVALID_CREDENTIALS", ...noHeader("applicationsecret")],
    ["401 INVALID_CREDENTIALS", ...header("applicationsecret", ...wrong, `${secret},${secret}`)],
    ["422 INVALID_PER_PAGE", ...query(...FAULTY_SIZES)],
    ["422 INVALID_CURSOR", ...query(...FAULTY_CURSORS)],
  ];
}

/** One whose expiry the service has recorded. */
async function lapsedInvitation(of: { id: string }): Promise<Invitation> {
  const made = await expiredInvitation(of);
  expect(outcome(await claim(of, "late", "user", made.token))).toBe("410 EXPIRED_INVITATION");
  return made;
}

const token = async (made: Promise<Invitation>): Promise<Change> => ({ body: { invitationToken: (await made).token } });
const ofInvitation = async (made: Promise<Invitation>): Promise<Change> => ({
  subjects: { invitation: (await made).token },
});

const unknownInvitations = (): Change[] =>
  ["inv_unknown", ...foreignInvitations].map((invitation) => ({ subjects: { invitation } }));

const revokeFaults = async (): Promise<Fault[]> => [
  ["404 UNKNOWN_INVITATION", ...unknownInvitations()],
  ["409 CLAIMED_INVITATION", await ofInvitation(claimedInvitation(application))],
  ["410 EXPIRED_INVITATION", await ofInvitation(lapsedInvitation(application))],
];

interface Ordered {
  route: string;
  /** In which way the call is granted, unless in the route's usual one. */
  granted?: Way;
  faults: () => Promise<Fault[]>;
}

/** The routes for which the contract has an order of checks. */
const ORDERED: Ordered[] = [
  {
    route: "POST /v1/badge",
    faults: async () => [
      ...badgeForm(),
      FAULTY_PROOF,
      ["401 INVALID_PROOF", { headers: { applicationid: proving.id, dpop: null } }],
      ["404 UNKNOWN_INVITATION", ...field("invitationToken", "inv_unknown", ...foreignInvitations)],
      ["409 CLAIMED_INVITATION", await token(claimedInvitation(application))],
      ["410 REVOKED_INVITATION", await token(revokedInvitation(application))],
      ["410 EXPIRED_INVITATION", await token(lapsedInvitation(application))],
      ["503 NUMBERS_EXHAUSTED", noNumberLeft()],
    ],
  },
  {
    route: "POST /v1/badge",
    granted: async () => ({ headers: { applicationid: personal.id, authorization: await bearer("user") } }),
    faults: async () => [
      ...badgeForm(),
      ["401 INVALID_USERTOKEN", ...header("authorization", "", ...wrongTokens, await bearer("other"))],
      FAULTY_PROOF,
      ["404 UNKNOWN_INVITATION", ...field("invitationToken", "inv_unknown")],
    ],
  },
  {
    route: "POST /v1/badge/sign",
    faults: async () => [
      ...noApplication("401 INVALID_APPLICATIONID"),
      ["422 UNDEFINED_UDID", ...noHeader("udid")],
      FAULTY_BODY,
      ["422 UNDEFINED_BASE64", ...noField("base64")],
      FAULTY_UDID,
      ["422 INVALID_BASE64", ...field("base64", "aGVsbG8", 17)],
      FAULTY_PROOF,
      ["401 INVALID_PROOF", { headers: { applicationid: proving.id, dpop: null } }],
      ["404 UNKNOWN_BADGE", ...header("udid", "a phone without a badge")],
    ],
  },
  { route: "GET /v1/badges", faults: async () => listFaults() },
  { route: "GET /v1/users/{id}/badges", faults: async () => listFaults() },
  {
    route: "GET /v1/invitation",
    granted: async () => ({ headers: { invitationtoken: (await invite(application)).token } }),
    faults: async () => [
      ...noApplication("401 INVALID_APPLICATIONID"),
      ["422 INVALID_INVITATIONTOKEN", ...noHeader("invitationtoken")],
      ["404 UNKNOWN_INVITATION", ...header("invitationtoken", "inv_unknown", ...foreignInvitations)],
    ],
  },
  {
    route: "POST /v1/invitation",
    granted: async () => ({ headers: { applicationsecret: null } }),
    faults: async () => [
      ...noApplication("401 INVALID_APPLICATIONID"),
      ["401 INVALID_CREDENTIALS", ...header("applicationsecret", "wrong")],
      ["401 INVALID_CREDENTIALS", ...noRequiredSecret()],
      ["422 UNDEFINED_UDID", ...noHeader("udid")],
      FAULTY_BODY,
      ["422 UNDEFINED_EXPIRESAT", ...noField("expiresAt")],
      FAULTY_UDID,
      ["422 INVALID_EXPIRESAT", ...field("expiresAt", "2000-01-01T00:00:00Z", 17)],
      ["503 NUMBERS_EXHAUSTED", noNumberLeft({ applicationsecret: null })],
    ],
  },
  {
    route: "PATCH /v1/invitation/{id}/revoke",
    granted: async () => ({
      headers: { applicationsecret: null, udid: CREATOR },
      ...(await ofInvitation(invite(application))),
    }),
    faults: async () => [
      ...noApplication("401 INVALID_APPLICATIONID"),
      ["401 INVALID_CREDENTIALS", ...header("applicationsecret", "wrong")],
      ["401 INVALID_CREDENTIALS", ...noRequiredSecret()],
      ["401 INVALID_CREDENTIALS", { headers: { udid: null, applicationsecret: null } }],
      ["404 UNKNOWN_INVITATION", ...header("udid", "another device", "u".repeat(256))],
      ...(await revokeFaults()),
    ],
  },
  {
    route: "PATCH /v1/invitation/{id}/revoke",
    granted: () => ofInvitation(invite(application)),
    faults: async () => [
      ...noApplication("401 INVALID_APPLICATIONID"),
      ["401 INVALID_CREDENTIALS", ...header("applicationsecret", "wrong", null)],
      ...(await revokeFaults()),
    ],
  },
];

/** A device whose badge is of a user of its own. */
async function badgeHolder(): Promise<{ udid: string; userId: string; id: string }> {
  const name = `holder-${devices++}`;
  return { udid: name, userId: name, id: await issueTo(application, name, name) };
}

const ofBadge = async (badge: string): Promise<Change> => ({ subjects: { badge } });

/** A badge whose place an invitation's has taken. */
async function replacedBadge(): Promise<Change> {
  const { udid, userId, id } = await badgeHolder();
  const { token } = await invite(application);
  expect((await claim(application, udid, userId, token)).status).toBe(201);
  return ofBadge(id);
}

/** With the change number that the badge had before another change. */
async function changedBadge(): Promise<Change> {
  const { id } = await badgeHolder();
  expect((await setEnd(application, id, ahead(HOUR))).status).toBe(200);
  return { ...(await ofBadge(id)), headers: { "if-match": '"1"' } };
}

/** The call of a device after its application's server has done something to its badge. */
const after = (act: (id: string) => Promise<Answer>) => async (): Promise<Change> => {
  const { udid, userId, id } = await badgeHolder();
  expect((await act(id)).status).toBe(200);
  return { headers: { udid }, body: { userId } };
};
async function wrongUser(): Promise<Change> {
  const body = { expiresAt: ahead(HOUR), userId: "somebody else" };
  const { id } = (await callServer(application, "POST", "/v1/invitation", body, { udid: CREATOR })).body;
  return { body: { invitationToken: id } };
}

/** The event of a badge of an application that has a webhook URL. */
async function replayable(): Promise<Change> {
  const recording = await createApplication(RECORDED_EVENTS);
  await issueTo(recording, "phone", "user");
  const [event] = (await readRows(recording)).events;
  return { headers: serverHeaders(recording), subjects: { event: event?.id ?? "" } };
}

/** The badge of a person who has logged in. */
async function ownBadge(): Promise<Change> {
  const issued = await logIn(personal, await provider.token("user"), { userId: "user" });
  return ofBadge(String(issued.body.badgeId));
}

async function endedOwn(): Promise<Change> {
  const own = await ownBadge();
  expect((await takeStep(personal, own.subjects?.badge ?? "", "revoke")).status).toBe(200);
  return own;
}

/** A person's token is bound to a key. */
async function unprovedToken(): Promise<Change> {
  const jkt = await (await newPhone(personal)).thumbprint();
  return { headers: { authorization: await bearer("user", { cnf: { jkt } }), dpop: "none" } };
}

/** The ways to get an answer, by status and code. */
type Ways = Record<string, (route: Route) => Way[]>;

const withLists = async () => serverHeaders(await createApplication({ statusList: true }));
const newInvitation = () => ofInvitation(invite(application));
const queried =
  (...queries: string[]) =>
  () =>
    query(...queries);

/** What routes answer that have no order of checks. */
const COMMON: Ways = {
  "200": ({ name }) => [name.startsWith("PATCH /v1/badges/") ? async () => ofBadge((await badgeHolder()).id) : {}],
  "400 INVALID_JSON": () => bodies("[]"),
  "401 INVALID_APPLICATIONID": () => [...noHeader("applicationid"), ...uselessApplication()],
  "401 INVALID_CREDENTIALS": ({ method }) => [
    ...header("applicationid", null, UNKNOWN, foreign.id),
    ...header("applicationsecret", null, "", foreign.secret),
    { headers: { applicationsecret: null, authorization: `Bearer ${application.secret}` } },
    { headers: serverHeaders(disabled) },
    // Whatever else is wrong.
    { headers: { applicationsecret: null }, query: "state=none&per_page=0", ...(method !== "GET" && { body: "{" }) },
  ],
  // Of a person.
  "401 INVALID_USERTOKEN": () => [
    ...[...noHeader("authorization"), ...header("authorization", ...wrongTokens)],
    // Whose application names no issuer.
    ...header("applicationid", application.id),
  ],
  "401 INVALID_PROOF": () => [unprovedToken],
  "403 DOOR_ONLY": ({ name }) => [async () => ({ headers: await addDoor(application, name) })],
  "403 READ_ONLY": () => [
    async () => ({ headers: await signIn(application, "viewer") }),
    async () => ({ headers: await signIn(application, "viewer"), body: "{" }),
  ],
  "403 SUSPENDED_BADGE": () => [after((id) => takeStep(application, id, "suspend"))],
  "403 REVOKED_BADGE": () => [after((id) => takeStep(application, id, "revoke"))],
  "403 EXPIRED_BADGE": () => [after((id) => setEnd(application, id, ahead(-HOUR)))],
  "404 UNKNOWN_BADGE": ({ name }) => [{}, async () => ofBadge(await issueTo(foreign, name, "user"))],
  "404 UNKNOWN_INVITATION": unknownInvitations,
  "405 METHOD_NOT_ALLOWED": () => [{ method: "PUT" }],
  "409 ENDED_BADGE": () => [replacedBadge],
  "412 CHANGED_BADGE": () => [changedBadge],
  // A list of invitations may have 256 KiB.
  "413 PAYLOAD_TOO_LARGE": ({ name }) => bodies(" ".repeat((name === "POST /v1/invitations" ? 256 : 16) * 1024 + 1)),
  "422 INVALID_ACTOR": () => FAULTY_ACTOR,
  "422 INVALID_CURSOR": queried(...FAULTY_CURSORS),
  "422 INVALID_IDEMPOTENCYKEY": () => header("idempotency-key", "x".repeat(256)),
  "422 INVALID_NAME": queried("q=", "q=a", `q=${"x".repeat(256)}`, "q=ab&q=cd", `q=${LETTERS}`),
  "422 INVALID_PER_PAGE": queried(...FAULTY_SIZES),
  "422 INVALID_STATE": queried(...FAULTY_STATES),
  "422 INVALID_UDID": () => header("udid", "x".repeat(256)),
  "422 INVALID_USERID": () => [{ subjects: { user: encodeURIComponent("\u{1f600}".repeat(129)) } }],
  "422 UNDEFINED_UDID": () => noHeader("udid"),
};

/** What only this route answers, or in a way of its own. */
const OWN: Record<string, Ways> = {
  "POST /v1/badge": {
    "200": () => header("udid", "phone 0"),
    "201": () => [{}],
    "403 BLOCKED_USER": () => field("userId", "blocked user"),
    "403 WRONG_USER": () => [wrongUser],
  },
  "POST /v1/badge/sign": {
    "403 EARLY_BADGE": () => [
      after((id) => callServer(application, "PATCH", `/v1/badges/${id}`, { startsAt: ahead(HOUR) })),
    ],
  },
  "GET /v1/user/badges": {
    // fetch sends no body with GET.
    "413 PAYLOAD_TOO_LARGE": () => header("content-length", "16385"),
  },
  "PATCH /v1/user/badges/{id}/suspend": {
    "200": () => [ownBadge],
    "409 ENDED_BADGE": () => [endedOwn],
  },
  "GET /v1/badges": {
    "422 INVALID_EXPIRESAT": queried(...faultyTimes("endsBefore")),
    "422 INVALID_STATE": queried("state=pending", "order=oldest", ...FAULTY_STATES),
  },
  "GET /v1/badges/{id}": { "200": () => [async () => ofBadge((await badgeHolder()).id)] },
  "PATCH /v1/badges/{id}": {
    "422 UNDEFINED_EXPIRESAT": () => bodies("{}"),
    "422 INVALID_EXPIRESAT": () => field("expiresAt", "soon"),
    "422 INVALID_STARTSAT": () => field("startsAt", "soon"),
  },
  "GET /v1/live": {
    "200": () => [async () => ({ headers: await withLists() })],
    "404 UNKNOWN_STATUSLIST": queried("have=1"),
    "422 INVALID_CURSOR": queried("have=none"),
  },
  "GET /v1/history": {
    "404 UNKNOWN_BADGE": queried("badge=none"),
    "422 INVALID_USERID": queried("user=a&user=b"),
    "422 INVALID_ACTOR": () => [...FAULTY_ACTOR, ...query("actor=", `actor=${"x".repeat(101)}`)],
    "422 INVALID_EXPIRESAT": queried(...faultyTimes("since", "until")),
    "422 INVALID_STATE": queried("action=badge:opened"),
  },
  "GET /v1/changes": {
    "410 EXPIRED_CURSOR": queried(`cursor=${FEED_CURSOR.encode({ epoch: "", change: 1_000_000_000 })}`),
  },
  "GET /v1/invitations": { "422 INVALID_EXPIRESAT": queried(...faultyTimes("from", "until")) },
  "GET /v1/access": { "403 READ_ONLY": () => [async () => ({ headers: await signIn(application, "reception") })] },
  "POST /v1/events/{id}/replay": {
    "202": () => [replayable],
    "404 UNKNOWN_EVENT": () => [{}, async () => ({ subjects: (await replayable()).subjects ?? {} })],
  },
  "GET /v1/invitation": {
    "200": () => [async () => ({ headers: { invitationtoken: (await invite(application)).token } })],
  },
  "POST /v1/invitation": {
    "201": () => [{}],
    "422 INVALID_BADGEEXPIRESAT": () => field("badgeExpiresAt", "soon"),
    "422 INVALID_STARTSAT": () => field("badgeStartsAt", "soon"),
    "422 INVALID_NAME": () => field("name", "x".repeat(101)),
    "422 INVALID_USERID": () => field("userId", "..", "\u{1f600}".repeat(129)),
  },
  "POST /v1/invitations": {
    "200": () => field("invitations", [{ expiresAt: ahead(HOUR), name: "Ann" }, {}]),
    "422 INVALID_INVITATIONS": () => field("invitations", []),
  },
  "PATCH /v1/invitation/{id}/erase": { "200": () => [newInvitation] },
  "PATCH /v1/invitation/{id}/revoke": { "200": () => [newInvitation] },
  "GET /v1/applications/{applicationId}/jwks.json": {
    "404 UNKNOWN_APPLICATION": () => [{ subjects: { application: UNKNOWN } }],
  },
  "GET /v1/applications/{applicationId}/status/{n}": {
    "200": () => [async () => ({ subjects: { application: (await withLists()).applicationid ?? "" } })],
    "404 UNKNOWN_STATUSLIST": () => [{}],
    "501 NOT_IMPLEMENTED": queried("time=1800000000"),
  },
};

/** What the document has to list for every route of a kind. */
function neededOf({ name, method, by }: Route): string[] {
  const isOfServer = by === "server" || by === "either";
  const ofChange = ["413 PAYLOAD_TOO_LARGE", ...(isOfServer ? ["403 READ_ONLY"] : [])];
  const ofServer = [
    "401 INVALID_CREDENTIALS",
    ...(name === "GET /v1/live" ? [] : ["403 DOOR_ONLY", "422 INVALID_ACTOR"]),
  ];
  const ofAny = ["405 METHOD_NOT_ALLOWED", ...(by === "device" ? ["401 INVALID_APPLICATIONID"] : [])];
  return [...ofAny, ...(isOfServer ? ofServer : []), ...(method === "GET" ? [] : ofChange)];
}

interface Case {
  answer: string;
  ways: Way[];
}

/** Each fault alone; and each pair that can come together, which answers the code of the earlier one. */
function casesInOrder(faults: readonly Fault[], granted: Way): Case[] {
  const alone = faults.flatMap(([answer, ...ways]) => ways.map((way) => ({ answer, ways: [granted, way] })));
  const pairs = faults.flatMap(([answer, way], place) => {
    const later = faults.slice(place + 1).flatMap(([, other]) => (way && other && canMeet(way, other) ? [other] : []));
    return later.map((other) => ({ answer, ways: [granted, way ?? {}, other] }));
  });
  return [...alone, ...pairs];
}

it.each(ROUTES)(
  "$name gives each status and code that /openapi.json lists for it, in the contract's order (contract sections 2 to 6, 12 to 15, 19, 22 to 24 and 27)",
  async (route) => {
    const cases: Case[] = [];
    for (const { granted = {}, faults } of ORDERED.filter((one) => one.route === route.name)) {
      const once = typeof granted === "function" ? await granted() : granted;
      cases.push(...casesInOrder(await faults(), once));
    }
    const listed = route.answers.filter((answer) => !ELSEWHERE.some((code) => answer.endsWith(code)));
    expect(listed).toEqual(expect.arrayContaining(neededOf(route)));
    for (const answer of listed) {
      const isTried = cases.some((one) => one.answer === answer);
      const ways = OWN[route.name]?.[answer]?.(route) ?? (isTried ? [] : COMMON[answer]?.(route)) ?? [];
      cases.push(...ways.map((way) => ({ answer, ways: [way] })));
    }
    expect(listed.filter((answer) => !cases.some((one) => one.answer === answer))).toEqual([]);
    const isStatic = ({ answer, ways }: Case) => answer >= "400" && ways.every((way) => typeof way !== "function");
    const applications = [application, requiring, proving, exhausted, personal];
    const before = await everythingStored(applications);
    await expectAnswers(route, cases.filter(isStatic));
    expect(await everythingStored(applications), "what is refused changes nothing").toEqual(before);
    await expectAnswers(
      route,
      cases.filter((one) => !isStatic(one)),
    );
  },
);

async function expectAnswers(route: Route, cases: readonly Case[]): Promise<void> {
  const textOf = ({ ways }: Case, answer: string) => `${JSON.stringify(ways).slice(0, 200)} ${answer}`;
  const found = await inParallel(cases, async (one) => textOf(one, outcome(await send(route, ...one.ways))));
  expect(found).toEqual(cases.map((one) => textOf(one, one.answer)));
}

it("the error table of the contract decides the service's responses (contract section 6)", () => {
  const section = contract.slice(contract.indexOf("\n## 6."), contract.indexOf("\n## 7."));
  const expected = [...section.matchAll(/^\| (\d{3}) \|(.*)$/gm)].flatMap(([, status, codes = ""]) =>
    (codes.match(/\b[A-Z][A-Z_0-9]{5,}\b/g) ?? []).map((code) => [code, Number(status)] as const),
  );
  const entries = Object.entries(PUBLIC_ERRORS).map(([code, { status }]) => [code, status] as const);
  expect(new Map(entries)).toEqual(new Map(expected));
  expect(expected).toHaveLength(entries.length);
});
