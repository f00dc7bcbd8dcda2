import { beforeAll, describe, expect, it } from "vitest";
import { createDpopProof } from "../../src/client/index.ts";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { eventPage } from "../../src/shared/event-responses.ts";
import { FEED_CURSOR } from "../../src/worker/badges/changes.ts";
import { crowded } from "../allocator/support.ts";
import { type BadgeStep, block, issueTo, setEnd, takeStep } from "../badges/life-support.ts";
import { newPhone } from "../bound/support.ts";
import { RECORDED_EVENTS } from "../invitations/support/storage.ts";
import { addDoor } from "../live/support.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { type Answer, call, callServer, requestBadge, serverHeaders } from "../support/http.ts";
import { type Provider, useProviders } from "../users/provider.ts";
import { logIn, suspendOwn } from "../users/support.ts";
import { outcome } from "./support/draft.ts";
import {
  claimedInvitation,
  expiredInvitation,
  hoursAhead,
  type Invitation,
  invite,
  revokedInvitation,
} from "./support/invitations.ts";
import { signIn } from "./support/people.ts";
import { NOTHING, ROUTES, type Route, requestOf, type Subjects } from "./support/routes.ts";

/**
 * Every status and code that /openapi.json lists for a route is brought about here. That a route gives no others is
 * checked by every call of every test (`test/support/documented.ts`).
 */

/** What no request brings about by itself; `unavailable.test.ts` and `rate-limit.test.ts` do. */
const BY_CIRCUMSTANCE = ["INTERNAL_ERROR", "UNAVAILABLE", "RATE_LIMITED"];

const UNKNOWN = "app_00000000000000000000";
const FOREIGN_NONCE = "1800000000.0123456789012345678901";
/** For every route: many invitations may have 256 KiB. */
const TOO_LARGE = " ".repeat(256 * 1024 + 1);

let application: TestApplication;
let requiring: TestApplication;
let exhausted: TestApplication;
let provider: Provider;
/** Its users are verified. */
let personal: TestApplication;

const newProvider = useProviders();

beforeAll(async () => {
  application = await createApplication();
  requiring = await createApplication({ requireSecret: true });
  exhausted = await createApplication({ size: 1 });
  provider = await newProvider();
  personal = await createApplication(provider.columns);
  await requestBadge(exhausted, "phone", { userId: "user" });
  await requestBadge(application, "phone", { userId: "user" });
});

type Headers = Record<string, string>;

/** What is sent, by the answer that it gets. */
type Cases = Record<string, () => Promise<Answer>>;

const device = (more: Headers = {}): Headers => ({ applicationid: application.id, udid: "phone", ...more });
const server = (more: Headers = {}): Headers => ({ ...serverHeaders(application), udid: "server", ...more });

const isOfPerson = ({ path }: Route) => path.startsWith("/v1/user/");

/** Headers of somebody who may make the call. */
async function grantedHeaders(route: Route): Promise<Headers> {
  if (isOfPerson(route)) {
    return { applicationid: personal.id, authorization: `Bearer ${await provider.token("user")}` };
  }
  return route.by === "device" ? device() : route.by === null ? {} : server();
}

interface Sent {
  subjects?: Partial<Subjects>;
  /** Beside those that are granted. */
  headers?: Headers;
  query?: string;
  body?: unknown;
}

/** The call of a route by somebody who may make it, but for what is given. */
async function send(route: Route, { subjects, headers, query = "", body }: Sent = {}): Promise<Answer> {
  const { path, body: granted } = requestOf(route, { ...NOTHING, application: application.id, ...subjects });
  return call(route.method, query === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${query}`, {
    headers: { ...(await grantedHeaders(route)), ...headers },
    body: body ?? granted,
  });
}

let devices = 0;

/** A device whose badge is of a user of its own. */
async function badgeHolder(): Promise<{ udid: string; userId: string; id: string }> {
  const name = `holder-${devices++}`;
  return { udid: name, userId: name, id: await issueTo(application, name, name) };
}

/** @returns number of a badge whose place an invitation's has taken */
async function replacedBadge(): Promise<string> {
  const { udid, userId, id } = await badgeHolder();
  const invitationToken = (await invite(application)).id;
  expect((await requestBadge(application, udid, { userId, invitationToken })).status).toBe(201);
  return id;
}

const LISTS = [
  ...["GET /v1/badges", "GET /v1/users/{id}/badges", "GET /v1/users", "GET /v1/history", "GET /v1/changes"],
  ...["GET /v1/invitations", "GET /v1/events", "GET /v1/access", "GET /v1/doors"],
];
/** They change something, and refuse no body. */
const WITHOUT_BODY = [
  ...["PATCH /v1/invitation/{id}/revoke", "PATCH /v1/user/badges/{id}/suspend", "POST /v1/events/{id}/replay"],
];
const BY_UDID = ["POST /v1/badge", "POST /v1/badge/sign", "POST /v1/invitation", "POST /v1/invitations"];

/** What every route of a kind answers. */
function commonCases(route: Route): Cases {
  const { name, method, by } = route;
  const isChange = method !== "GET";
  const isOfServer = by === "server" || by === "either";
  const wrong = by === "server" ? { applicationid: UNKNOWN } : { applicationsecret: "wrong" };
  // Of what there is.
  const isGranted =
    name.startsWith("PATCH /v1/users/") ||
    (!isChange && name !== "GET /v1/live" && !/\/badges\/\{id\}$|\{n\}/.test(name));
  return {
    "405 METHOD_NOT_ALLOWED": () => call("PUT", requestOf(route, NOTHING).path),
    ...(isGranted && { "200": () => send(route) }),
    ...(isOfServer && {
      "401 INVALID_CREDENTIALS": () => send(route, { headers: wrong }),
      ...(name !== "GET /v1/live" && { "422 INVALID_ACTOR": () => send(route, { headers: { actor: "%" } }) }),
    }),
    ...((by === "device" || by === "either") && {
      "401 INVALID_APPLICATIONID": () => send(route, { headers: { applicationid: UNKNOWN } }),
    }),
    ...(isOfServer &&
      name !== "GET /v1/live" && {
        "403 DOOR_ONLY": async () => send(route, { headers: await addDoor(application, name) }),
      }),
    ...(isOfServer &&
      isChange && {
        "403 READ_ONLY": async () => send(route, { headers: await signIn(application, "viewer") }),
      }),
    ...(isChange && { "413 PAYLOAD_TOO_LARGE": () => send(route, { body: TOO_LARGE }) }),
    ...(isChange && !WITHOUT_BODY.includes(name) && { "400 INVALID_JSON": () => send(route, { body: "[]" }) }),
    ...(BY_UDID.includes(name) && {
      "422 UNDEFINED_UDID": () => send(route, { headers: { udid: " " } }),
      "422 INVALID_UDID": () => send(route, { headers: { udid: "x".repeat(256) } }),
    }),
    ...(LISTS.includes(name) && {
      "422 INVALID_PER_PAGE": () => send(route, { query: "per_page=none" }),
      "422 INVALID_CURSOR": () => send(route, { query: "cursor=none" }),
    }),
    ...(name.startsWith("PATCH /v1/users/") && {
      "422 INVALID_USERID": () => send(route, { subjects: { user: "x".repeat(256) } }),
    }),
    ...(name.startsWith("PATCH /v1/badges/{id}") && casesOfChange(route)),
  };
}

/** What every change of a badge answers. */
const casesOfChange = (route: Route): Cases => ({
  "200": async () => send(route, { subjects: { badge: (await badgeHolder()).id } }),
  "404 UNKNOWN_BADGE": () => send(route),
  "409 ENDED_BADGE": async () => send(route, { subjects: { badge: await replacedBadge() } }),
  // With the change number that the badge had before another change.
  "412 CHANGED_BADGE": async () => {
    const { id } = await badgeHolder();
    expect((await setEnd(application, id, hoursAhead(1))).status).toBe(200);
    return send(route, { subjects: { badge: id }, headers: { "if-match": '"1"' } });
  },
});

/** The route's call with another body. */
const badge = (body: unknown, more?: Headers) => call("POST", "/v1/badge", { headers: device(more), body });
const sign = (body: unknown, more?: Headers) => call("POST", "/v1/badge/sign", { headers: device(more), body });
const inviting = (body: object, more?: Headers) =>
  call("POST", "/v1/invitation", { headers: device(more), body: { expiresAt: hoursAhead(1), ...body } });
const describing = (invitationtoken: string) =>
  call("GET", "/v1/invitation", { headers: { applicationid: application.id, invitationtoken } });
const invitingMany = (body: unknown, more?: Headers) =>
  call("POST", "/v1/invitations", { headers: server(more), body });
const erasing = (id: string) => callServer(application, "PATCH", `/v1/invitation/${id}/erase`);
const revoking = (id: string) => callServer(application, "PATCH", `/v1/invitation/${id}/revoke`);
const list = (path: string) => callServer(application, "GET", path);
const setTimes = (body: object) => call("PATCH", "/v1/badges/17", { headers: server(), body });

type Invite = (application: TestApplication) => Promise<Invitation>;
const present = async (make: Invite) => badge({ userId: "visitor", invitationToken: (await make(application)).id });
const revoke = async (make: Invite) => revoking((await make(application)).id);

/** A call with a proof whose nonce is none of the service's. */
const proved = async (path: string, body: object) => (await newPhone(application)).post(path, body, FOREIGN_NONCE);

/** What the application's server does to a badge before its device asks. */
type Act = (id: string) => Promise<Answer>;
const stepping =
  (step: BadgeStep): Act =>
  (id) =>
    takeStep(application, id, step);
const ending: Act = (id) => setEnd(application, id, hoursAhead(-1));
/** The badge is of a visitor and has not begun. */
const postponing: Act = (id) =>
  call("PATCH", `/v1/badges/${id}`, { headers: server(), body: { startsAt: hoursAhead(1) } });

async function holderAfter(act: Act): Promise<{ udid: string; userId: string }> {
  const holder = await badgeHolder();
  expect((await act(holder.id)).status).toBe(200);
  return holder;
}

async function badgeAfter(act: Act): Promise<Answer> {
  const { udid, userId } = await holderAfter(act);
  return badge({ userId }, { udid });
}

const signAfter = async (act: Act) => sign({ base64: "AAAA" }, { udid: (await holderAfter(act)).udid });

async function badgeOfBlocked(): Promise<Answer> {
  expect((await block(application, "blocked user")).status).toBe(200);
  return badge({ userId: "blocked user" }, { udid: "phone of a blocked user" });
}

/** With the invitation of another user. */
async function wrongUser(): Promise<Answer> {
  const { body } = await inviting({ userId: "somebody else" });
  return badge({ userId: "user", invitationToken: body.id });
}

/** The event of a badge of an application that has a webhook URL. */
async function replayEvent(): Promise<Answer> {
  const recording = await createApplication(RECORDED_EVENTS);
  await issueTo(recording, "phone", "user");
  const headers = serverHeaders(recording);
  const { events } = eventPage.parse((await call("GET", "/v1/events", { headers })).body);
  return call("POST", `/v1/events/${events[0]?.id}/replay`, { headers });
}

/** The number of a badge of a person who has logged in. */
async function ownBadge(): Promise<string> {
  const issued = await logIn(personal, await provider.token("user"), { userId: "user" });
  return String(issued.body.badgeId);
}

async function endedOwn(): Promise<Answer> {
  const id = await ownBadge();
  expect((await takeStep(personal, id, "revoke")).status).toBe(200);
  return suspendOwn(personal, id, await provider.token("user"));
}

/** What both calls of a person answer, whose token may be bound to a key. */
function casesOfPerson(method: string, path: string): Cases {
  const sendBound = async (prove: (phone: Awaited<ReturnType<typeof newPhone>>, token: string) => Promise<string>) => {
    const phone = await newPhone(personal);
    const token = await provider.token("user", { cnf: { jkt: await phone.thumbprint() } });
    const dpop = await prove(phone, token);
    return call(method, path, { headers: { applicationid: personal.id, authorization: `Bearer ${token}`, dpop } });
  };
  const url = `https://badges.example${path}`;
  return {
    "401 INVALID_USERTOKEN": () => call(method, path, { headers: { applicationid: personal.id } }),
    "401 INVALID_PROOF": () => sendBound(async () => "none"),
    "401 USE_DPOP_NONCE": () =>
      sendBound(({ key }, udid) =>
        createDpopProof({ key, applicationId: personal.id, method, url, udid, nonce: FOREIGN_NONCE }),
      ),
  };
}

const LONG_KEY = { "idempotency-key": "x".repeat(256) };

/** What only this route answers, or in a way of its own. */
const OWN_CASES: Record<string, Cases> = {
  "POST /v1/badge": {
    "200": () => badge({ userId: "user" }),
    "201": () => badge({ userId: "new user" }),
    "401 INVALID_USERTOKEN": () => logIn(personal, null),
    "401 INVALID_PROOF": () => badge({ userId: "user" }, { DPoP: "none" }),
    "401 USE_DPOP_NONCE": () => proved("/v1/badge", { userId: "user" }),
    "403 SUSPENDED_BADGE": () => badgeAfter(stepping("suspend")),
    "403 REVOKED_BADGE": () => badgeAfter(stepping("revoke")),
    "403 EXPIRED_BADGE": () => badgeAfter(ending),
    "403 BLOCKED_USER": badgeOfBlocked,
    "403 WRONG_USER": wrongUser,
    "404 UNKNOWN_INVITATION": () => badge({ userId: "user", invitationToken: "inv_unknown" }),
    "409 CLAIMED_INVITATION": () => present(claimedInvitation),
    "409 TOO_MANY_BADGES": async () => badge({ userId: "mallory" }, { applicationid: (await crowded(10_000)).id }),
    "410 EXPIRED_INVITATION": () => present(expiredInvitation),
    "410 REVOKED_INVITATION": () => present(revokedInvitation),
    "422 UNDEFINED_APPLICATIONID": () => badge({}, { applicationid: "" }),
    "422 UNDEFINED_USERID": () => badge({}),
    "422 INVALID_USERID": () => badge({ userId: 17 }),
    "422 INVALID_METADATA": () => badge({ userId: "user", metadata: [] }),
    "422 INVALID_INVITATIONTOKEN": () => badge({ userId: "user", invitationToken: 17 }),
    "503 NUMBERS_EXHAUSTED": () => badge({ userId: "new user" }, { applicationid: exhausted.id }),
  },
  "POST /v1/badge/sign": {
    "200": () => sign({ base64: "AAAA" }),
    "401 INVALID_PROOF": () => sign({ base64: "AAAA" }, { DPoP: "none" }),
    "401 USE_DPOP_NONCE": () => proved("/v1/badge/sign", { base64: "AAAA" }),
    "403 SUSPENDED_BADGE": () => signAfter(stepping("suspend")),
    "403 REVOKED_BADGE": () => signAfter(stepping("revoke")),
    "403 EXPIRED_BADGE": () => signAfter(ending),
    "403 EARLY_BADGE": () => signAfter(postponing),
    "404 UNKNOWN_BADGE": () => sign({ base64: "AAAA" }, { udid: "stranger" }),
    "422 UNDEFINED_BASE64": () => sign({}),
    "422 INVALID_BASE64": () => sign({ base64: "A" }),
  },
  "GET /v1/user/badges": {
    ...casesOfPerson("GET", "/v1/user/badges"),
    // fetch sends no body with GET.
    "413 PAYLOAD_TOO_LARGE": () =>
      call("GET", "/v1/user/badges", { headers: { applicationid: personal.id, "content-length": "16385" } }),
  },
  "PATCH /v1/user/badges/{id}/suspend": {
    ...casesOfPerson("PATCH", "/v1/user/badges/17/suspend"),
    "200": async () => suspendOwn(personal, await ownBadge(), await provider.token("user")),
    "404 UNKNOWN_BADGE": async () => suspendOwn(personal, "17", await provider.token("user")),
    "409 ENDED_BADGE": endedOwn,
  },
  "GET /v1/badges": {
    "422 INVALID_STATE": () => list("/v1/badges?state=none"),
    "422 INVALID_NAME": () => list("/v1/badges?q=a"),
    "422 INVALID_EXPIRESAT": () => list("/v1/badges?endsBefore=soon"),
  },
  "GET /v1/badges/{id}": {
    "200": async () => list(`/v1/badges/${(await badgeHolder()).id}`),
    "404 UNKNOWN_BADGE": () => list("/v1/badges/17"),
  },
  "PATCH /v1/badges/{id}": {
    "422 UNDEFINED_EXPIRESAT": () => setTimes({}),
    "422 INVALID_EXPIRESAT": () => setTimes({ expiresAt: "soon" }),
    "422 INVALID_STARTSAT": () => setTimes({ startsAt: "soon" }),
  },
  "GET /v1/live": {
    "200": async () =>
      call("GET", "/v1/live", { headers: serverHeaders(await createApplication({ statusList: true })) }),
    "404 UNKNOWN_STATUSLIST": () => list("/v1/live?have=1"),
    "422 INVALID_CURSOR": () => list("/v1/live?have=none"),
  },
  "GET /v1/users": { "422 INVALID_STATE": () => list("/v1/users") },
  "GET /v1/history": {
    "404 UNKNOWN_BADGE": () => list("/v1/history?badge=none"),
    "422 INVALID_USERID": () => list("/v1/history?user=a&user=b"),
    "422 INVALID_EXPIRESAT": () => list("/v1/history?since=yesterday"),
    "422 INVALID_STATE": () => list("/v1/history?action=none"),
  },
  "GET /v1/changes": {
    "410 EXPIRED_CURSOR": () => {
      return list(`/v1/changes?cursor=${FEED_CURSOR.encode({ epoch: "", change: 1_000_000_000 })}`);
    },
  },
  "GET /v1/invitations": {
    "422 INVALID_STATE": () => list("/v1/invitations?state=none"),
    "422 INVALID_NAME": () => list("/v1/invitations?q=a"),
    "422 INVALID_EXPIRESAT": () => list("/v1/invitations?from=today"),
  },
  "GET /v1/access": {
    "403 READ_ONLY": async () => call("GET", "/v1/access", { headers: await signIn(application, "reception") }),
  },
  "GET /v1/events": { "422 INVALID_STATE": () => list("/v1/events?state=none") },
  "POST /v1/events/{id}/replay": {
    "202": replayEvent,
    "404 UNKNOWN_EVENT": () => call("POST", "/v1/events/any/replay", { headers: server() }),
  },
  "GET /v1/invitation": {
    "200": async () => describing((await invite(application)).id),
    "404 UNKNOWN_INVITATION": () => describing("inv_unknown"),
    "422 INVALID_INVITATIONTOKEN": () => describing(" "),
  },
  "POST /v1/invitation": {
    "201": () => inviting({}),
    "401 INVALID_CREDENTIALS": () => inviting({}, { applicationid: requiring.id }),
    "422 UNDEFINED_EXPIRESAT": () => inviting({ expiresAt: null }),
    "422 INVALID_EXPIRESAT": () => inviting({ expiresAt: hoursAhead(-1) }),
    "422 INVALID_BADGEEXPIRESAT": () => inviting({ badgeExpiresAt: "soon" }),
    "422 INVALID_STARTSAT": () => inviting({ badgeStartsAt: "soon" }),
    "422 INVALID_NAME": () => inviting({ name: "x".repeat(101) }),
    "422 INVALID_USERID": () => inviting({ userId: ".." }),
    "422 INVALID_IDEMPOTENCYKEY": () => inviting({}, LONG_KEY),
    "503 NUMBERS_EXHAUSTED": () => inviting({}, { applicationid: exhausted.id }),
  },
  "POST /v1/invitations": {
    "200": () => invitingMany({ invitations: [{ expiresAt: hoursAhead(1), name: "Ann" }, {}] }),
    "422 INVALID_INVITATIONS": () => invitingMany({ invitations: [] }),
    "422 INVALID_IDEMPOTENCYKEY": () => invitingMany({ invitations: [{ expiresAt: hoursAhead(1) }] }, LONG_KEY),
  },
  "PATCH /v1/invitation/{id}/erase": {
    "200": async () => erasing((await invite(application)).id),
    "404 UNKNOWN_INVITATION": () => erasing("unknown"),
  },
  "PATCH /v1/invitation/{id}/revoke": {
    "200": () => revoke(invite),
    "404 UNKNOWN_INVITATION": () => revoking("unknown"),
    "409 CLAIMED_INVITATION": () => revoke(claimedInvitation),
    "410 EXPIRED_INVITATION": () => revoke(expiredInvitation),
  },
  "GET /v1/applications/{applicationId}/jwks.json": {
    "404 UNKNOWN_APPLICATION": () => call("GET", `/v1/applications/${UNKNOWN}/jwks.json`),
  },
  "GET /v1/applications/{applicationId}/status/{n}": {
    "200": async () => call("GET", `/v1/applications/${(await createApplication({ statusList: true })).id}/status/0`),
    "404 UNKNOWN_STATUSLIST": () => call("GET", `/v1/applications/${application.id}/status/0`),
    "501 NOT_IMPLEMENTED": () => call("GET", `/v1/applications/${application.id}/status/0?time=1800000000`),
  },
};

/** Status and code of each answer that the document lists, by route. */
const DOCUMENTED = new Map(
  Object.entries(openApiDocument(Date.now()).paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { responses }]): [string, string[]] => [
      `${method.toUpperCase()} ${path}`,
      Object.entries(responses).flatMap(([status, { content }]) =>
        Number(status) < 400
          ? [status]
          : Object.keys(content?.["application/json"]?.examples ?? {}).map((code) => `${status} ${code}`),
      ),
    ]),
  ),
);

describe.each(ROUTES)(
  "$name gives what /openapi.json lists (contract sections 2 to 6, 12 to 15, 19 and 22)",
  (route) => {
    const cases = { ...commonCases(route), ...OWN_CASES[route.name] };

    it("all of which are tried here", () => {
      const expected = DOCUMENTED.get(route.name)?.filter(
        (answer) => !BY_CIRCUMSTANCE.some((code) => answer.endsWith(code)),
      );
      expect(Object.keys(cases).sort()).toEqual(expected?.sort());
    });

    it.each(Object.entries(cases))("%s", async (expected, act) => {
      expect(outcome(await act())).toBe(expected);
    });
  },
);
