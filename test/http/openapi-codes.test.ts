import { beforeAll, describe, expect, it, vi } from "vitest";
import { createProof } from "../../src/client/index.ts";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { eventPage } from "../../src/shared/overview-responses.ts";
import { FEED_CURSOR } from "../../src/worker/badges/changes.ts";
import { type BadgeStep, block, issueTo, setEnd, takeStep } from "../badges/life-support.ts";
import { newPhone, type Phone } from "../bound/support.ts";
import { RECORDED_EVENTS } from "../invitations/support/storage.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { type Answer, call, requestBadge, serverHeaders } from "../support/http.ts";
import { type Provider, useProviders } from "../users/provider.ts";
import { logIn, ownBadges, suspendOwn } from "../users/support.ts";
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

/**
 * Every status and code that /openapi.json lists for a route is brought about here. That a route gives no others is
 * checked by every call of every test (`test/support/documented.ts`).
 */

/** What no request brings about by itself; `unavailable.test.ts` and `rate-limit.test.ts` do. */
const BY_CIRCUMSTANCE = ["INTERNAL_ERROR", "UNAVAILABLE", "RATE_LIMITED"];

const UNKNOWN = "app_00000000000000000000";
const TOO_LARGE = " ".repeat(17 * 1024);

let application: TestApplication;
let requiring: TestApplication;
let exhausted: TestApplication;
let provider: Provider;
/** Its users are verified. */
let personal: TestApplication;

const newProvider = useProviders();

beforeAll(async () => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  application = await createApplication();
  requiring = await createApplication({ requireSecret: true });
  exhausted = await createApplication({ size: 1 });
  provider = await newProvider();
  personal = await createApplication(provider.columns);
  await requestBadge(exhausted, "phone", { userId: "user" });
  await requestBadge(application, "phone", { userId: "user" });
});

/** The expected answer, and what is sent for it. */
type Case = [expected: string, send: () => Promise<Answer>];

const device = (headers: Record<string, string> = {}) => ({ applicationid: application.id, udid: "phone", ...headers });

const badge = (body: unknown, headers = device()) => call("POST", "/v1/badge", { headers, body });
const sign = (body: unknown, headers = device()) => call("POST", "/v1/badge/sign", { headers, body });
const list = (path: string, headers = serverHeaders(application)) => call("GET", path, { headers });
const inviting = (body: unknown, headers: Record<string, string> = device()) =>
  call("POST", "/v1/invitation", { headers, body });
const revoking = (id: string, headers = serverHeaders(application), body?: unknown) =>
  call("PATCH", `/v1/invitation/${id}/revoke`, { headers, body });

type Invite = (application: TestApplication) => Promise<Invitation>;
const present = async (make: Invite) => badge({ userId: "visitor", invitationToken: (await make(application)).id });
const revoke = async (make: Invite) => revoking((await make(application)).id);

/** A call with a proof whose nonce is none of the service's. */
const proved = async (path: string, body: object) =>
  (await newPhone(application)).post(path, body, "1800000000.0123456789012345678901");

let devices = 0;

/** A device whose badge is of a user of its own. */
async function badgeHolder(): Promise<{ udid: string; userId: string; id: string }> {
  const name = `holder-${devices++}`;
  return { udid: name, userId: name, id: await issueTo(application, name, name) };
}

/** What the application's server does to a badge before its device asks. */
type Act = (id: string) => Promise<Answer>;
const stepping =
  (step: BadgeStep): Act =>
  (id) =>
    takeStep(application, id, step);
const ending: Act = (id) => setEnd(application, id, hoursAhead(-1));

async function holderAfter(act: Act): Promise<{ udid: string; userId: string; id: string }> {
  const holder = await badgeHolder();
  expect((await act(holder.id)).status).toBe(200);
  return holder;
}

async function badgeAfter(act: Act): Promise<Answer> {
  const { udid, userId } = await holderAfter(act);
  return badge({ userId }, device({ udid }));
}

async function signAfter(act: Act): Promise<Answer> {
  const { udid } = await holderAfter(act);
  return sign({ base64: "AAAA" }, device({ udid }));
}

async function badgeOfBlocked(): Promise<Answer> {
  expect((await block(application, "blocked user")).status).toBe(200);
  return badge({ userId: "blocked user" }, device({ udid: "phone of a blocked user" }));
}

const server = (method: string, path: string, body?: unknown, headers = serverHeaders(application)) =>
  call(method, path, { headers, ...(body !== undefined && { body }) });
const rebind = (id: string, body?: unknown) => server("PATCH", `/v1/badges/${id}/rebind`, body);
const replaying = (id: string, body?: unknown, headers?: Record<string, string>) =>
  server("POST", `/v1/events/${id}/replay`, body, headers);

/** The event of a badge of an application that has a webhook URL. */
async function replayEvent(): Promise<Answer> {
  const recording = await createApplication(RECORDED_EVENTS);
  await issueTo(recording, "phone", "user");
  const { body } = await list("/v1/events", serverHeaders(recording));
  const { events } = eventPage.parse(body);
  return replaying(String(events[0]?.id), undefined, serverHeaders(recording));
}

/** @returns number of a badge whose place an invitation's has taken */
async function replacedBadge(): Promise<string> {
  const { udid, userId, id } = await badgeHolder();
  const invitationToken = (await invite(application)).id;
  expect((await badge({ userId, invitationToken }, device({ udid }))).status).toBe(201);
  return id;
}

const named = (method: string, path: string, body?: unknown): Case => [
  "422 INVALID_ACTOR",
  () => server(method, path, body, { ...serverHeaders(application), udid: "server", actor: "%" }),
];

/** A call by somebody who may only look. */
const looking = (method: string, path: string, body?: unknown): Case => [
  "403 READ_ONLY",
  async () => server(method, path, body, await signIn(application, "viewer")),
];

/** A step with the change number that the badge had before another one. */
const changedBadge = async (path: string, body?: unknown): Promise<Answer> => {
  const { id } = await badgeHolder();
  expect((await setEnd(application, id, hoursAhead(1))).status).toBe(200);
  return server("PATCH", `/v1/badges/${id}${path}`, body, { ...serverHeaders(application), "if-match": '"1"' });
};

/** What every change of a badge has. */
const changing = (path: string, body?: unknown): Case[] => [
  named("PATCH", `/v1/badges/17${path}`, body),
  looking("PATCH", `/v1/badges/17${path}`, body),
  ["412 CHANGED_BADGE", () => changedBadge(path, body)],
];

/** Of a visitor's badge that has not begun. */
async function earlySign(): Promise<Answer> {
  const holder = await badgeHolder();
  const path = `/v1/badges/${holder.id}`;
  expect((await server("PATCH", path, { startsAt: hoursAhead(1) })).status).toBe(200);
  return sign({ base64: "AAAA" }, device({ udid: holder.udid }));
}

/** With the invitation of another user. */
async function wrongUser(): Promise<Answer> {
  const { body } = await inviting({ expiresAt: hoursAhead(1), userId: "somebody else" });
  return badge({ userId: "user", invitationToken: body.id });
}

const invitingMany = (
  body: unknown,
  headers: Record<string, string> = { ...serverHeaders(application), udid: "server" },
) => call("POST", "/v1/invitations", { headers, body });

const FILTER_CASES: Case[] = [
  ["422 INVALID_STATE", () => list("/v1/badges?state=none")],
  ["422 INVALID_NAME", () => list("/v1/badges?q=a")],
  ["422 INVALID_EXPIRESAT", () => list("/v1/badges?endsBefore=soon")],
];

/** A call with a token that is bound to a key, and what `make` makes of the two. */
async function withBoundToken(
  send: (token: string, dpop: string) => Promise<Answer>,
  make: (phone: Phone, token: string) => Promise<string>,
): Promise<Answer> {
  const phone = await newPhone(personal);
  const token = await provider.token("user", { cnf: { jkt: await phone.thumbprint() } });
  return send(token, await make(phone, token));
}

/** A proof that is right but for its nonce, which is none of the service's. */
const staleOwn = (method: string, path: string) =>
  withBoundToken(
    (token, dpop) =>
      call(method, path, { headers: { applicationid: personal.id, authorization: `Bearer ${token}`, dpop } }),
    ({ key }, udid) =>
      createProof({
        key,
        applicationId: personal.id,
        method,
        url: `https://badges.example${path}`,
        udid,
        nonce: "1800000000.0123456789012345678901",
      }),
  );

async function endedOwn(): Promise<Answer> {
  const id = await ownBadge();
  expect((await takeStep(personal, id, "revoke")).status).toBe(200);
  return suspendOwn(personal, id, await provider.token("user"));
}

/** A badge of a person who has logged in. */
async function ownBadge(): Promise<string> {
  const issued = await logIn(personal, await provider.token("user"), { userId: "user" });
  return String(issued.body.badgeId);
}

const CASES: Record<string, Case[]> = {
  "POST /v1/badge": [
    ["200", () => badge({ userId: "user" })],
    ["201", () => badge({ userId: "new user" })],
    ["400 INVALID_JSON", () => badge("{")],
    ["401 INVALID_APPLICATIONID", () => badge({}, device({ applicationid: UNKNOWN }))],
    ["401 INVALID_USERTOKEN", () => logIn(personal, null)],
    ["401 INVALID_PROOF", () => badge({ userId: "user" }, device({ DPoP: "none" }))],
    ["401 USE_DPOP_NONCE", async () => proved("/v1/badge", { userId: "user" })],
    ["403 SUSPENDED_BADGE", () => badgeAfter(stepping("suspend"))],
    ["403 REVOKED_BADGE", () => badgeAfter(stepping("revoke"))],
    ["403 EXPIRED_BADGE", () => badgeAfter(ending)],
    ["403 BLOCKED_USER", badgeOfBlocked],
    ["403 WRONG_USER", wrongUser],
    ["404 UNKNOWN_INVITATION", () => badge({ userId: "user", invitationToken: "inv_unknown" })],
    ["405 METHOD_NOT_ALLOWED", () => call("PUT", "/v1/badge")],
    ["409 CLAIMED_INVITATION", () => present(claimedInvitation)],
    ["410 EXPIRED_INVITATION", () => present(expiredInvitation)],
    ["410 REVOKED_INVITATION", () => present(revokedInvitation)],
    ["413 PAYLOAD_TOO_LARGE", () => badge(TOO_LARGE)],
    ["422 UNDEFINED_APPLICATIONID", () => badge({}, device({ applicationid: "" }))],
    ["422 UNDEFINED_UDID", () => badge({}, device({ udid: " " }))],
    ["422 UNDEFINED_USERID", () => badge({})],
    ["422 INVALID_UDID", () => badge({ userId: "user" }, device({ udid: "x".repeat(256) }))],
    ["422 INVALID_USERID", () => badge({ userId: 17 })],
    ["422 INVALID_METADATA", () => badge({ userId: "user", metadata: [] })],
    ["422 INVALID_INVITATIONTOKEN", () => badge({ userId: "user", invitationToken: 17 })],
    ["503 NUMBERS_EXHAUSTED", () => requestBadge(exhausted, "phone", { userId: "new user" })],
  ],
  "POST /v1/badge/sign": [
    ["200", () => sign({ base64: "AAAA" })],
    ["400 INVALID_JSON", () => sign("[]")],
    ["401 INVALID_APPLICATIONID", () => sign({}, device({ applicationid: "" }))],
    ["401 INVALID_PROOF", () => sign({ base64: "AAAA" }, device({ DPoP: "none" }))],
    ["401 USE_DPOP_NONCE", async () => proved("/v1/badge/sign", { base64: "AAAA" })],
    ["403 SUSPENDED_BADGE", () => signAfter(stepping("suspend"))],
    ["403 REVOKED_BADGE", () => signAfter(stepping("revoke"))],
    ["403 EXPIRED_BADGE", () => signAfter(ending)],
    ["403 EARLY_BADGE", earlySign],
    ["404 UNKNOWN_BADGE", () => sign({ base64: "AAAA" }, device({ udid: "stranger" }))],
    ["405 METHOD_NOT_ALLOWED", () => call("GET", "/v1/badge/sign")],
    ["413 PAYLOAD_TOO_LARGE", () => sign(TOO_LARGE)],
    ["422 UNDEFINED_UDID", () => sign({}, device({ udid: "" }))],
    ["422 UNDEFINED_BASE64", () => sign({})],
    ["422 INVALID_UDID", () => sign({ base64: "AAAA" }, device({ udid: "x".repeat(256) }))],
    ["422 INVALID_BASE64", () => sign({ base64: "A" })],
  ],
  "GET /v1/user/badges": [
    ["200", async () => ownBadges(personal, await provider.token("user"))],
    ["401 INVALID_APPLICATIONID", () => ownBadges({ id: UNKNOWN }, null)],
    ["401 INVALID_USERTOKEN", () => ownBadges(personal, null)],
    [
      "401 INVALID_PROOF",
      () =>
        withBoundToken(
          (token, dpop) => ownBadges(personal, token, { dpop }),
          async () => "none",
        ),
    ],
    ["401 USE_DPOP_NONCE", () => staleOwn("GET", "/v1/user/badges")],
    ["405 METHOD_NOT_ALLOWED", () => call("POST", "/v1/user/badges")],
  ],
  "PATCH /v1/user/badges/{id}/suspend": [
    ["200", async () => suspendOwn(personal, await ownBadge(), await provider.token("user"))],
    ["401 INVALID_APPLICATIONID", () => suspendOwn({ id: UNKNOWN }, "17", null)],
    ["401 INVALID_USERTOKEN", () => suspendOwn(personal, "17", null)],
    [
      "401 INVALID_PROOF",
      () =>
        withBoundToken(
          (token, dpop) => suspendOwn(personal, "17", token, { dpop }),
          async () => "none",
        ),
    ],
    ["401 USE_DPOP_NONCE", () => staleOwn("PATCH", "/v1/user/badges/17/suspend")],
    ["404 UNKNOWN_BADGE", async () => suspendOwn(personal, "17", await provider.token("user"))],
    ["405 METHOD_NOT_ALLOWED", () => call("GET", "/v1/user/badges/17/suspend")],
    ["409 ENDED_BADGE", endedOwn],
    [
      "413 PAYLOAD_TOO_LARGE",
      () => call("PATCH", "/v1/user/badges/17/suspend", { headers: { applicationid: personal.id }, body: TOO_LARGE }),
    ],
  ],
  ...Object.fromEntries(
    (
      [
        ["GET /v1/badges", "/v1/badges"],
        ["GET /v1/users/{id}/badges", "/v1/users/user/badges"],
      ] as const
    ).map(([route, path]): [string, Case[]] => [
      route,
      [
        ["200", () => list(path)],
        ["401 INVALID_CREDENTIALS", () => call("GET", path)],
        ["405 METHOD_NOT_ALLOWED", () => call("POST", path)],
        ["422 INVALID_PER_PAGE", () => list(`${path}?per_page=none`)],
        ["422 INVALID_CURSOR", () => list(`${path}?cursor=none`)],
        named("GET", path),
        ...(route === "GET /v1/badges" ? FILTER_CASES : []),
      ],
    ]),
  ),
  "GET /v1/users": [
    ["200", () => list("/v1/users?state=blocked")],
    named("GET", "/v1/users?state=blocked"),
    ["401 INVALID_CREDENTIALS", () => call("GET", "/v1/users?state=blocked")],
    ["405 METHOD_NOT_ALLOWED", () => call("POST", "/v1/users")],
    ["422 INVALID_PER_PAGE", () => list("/v1/users?state=blocked&per_page=none")],
    ["422 INVALID_CURSOR", () => list("/v1/users?state=blocked&cursor=none")],
    ["422 INVALID_STATE", () => list("/v1/users")],
  ],
  "GET /v1/history": [
    ["200", () => list("/v1/history")],
    named("GET", "/v1/history"),
    ["401 INVALID_CREDENTIALS", () => call("GET", "/v1/history")],
    ["404 UNKNOWN_BADGE", () => list("/v1/history?badge=none")],
    ["405 METHOD_NOT_ALLOWED", () => call("POST", "/v1/history")],
    ["422 INVALID_PER_PAGE", () => list("/v1/history?per_page=none")],
    ["422 INVALID_CURSOR", () => list("/v1/history?cursor=none")],
    ["422 INVALID_USERID", () => list("/v1/history?user=a&user=b")],
  ],
  "POST /v1/invitation": [
    ["201", () => inviting({ expiresAt: hoursAhead(1) })],
    named("POST", "/v1/invitation", { expiresAt: hoursAhead(1) }),
    looking("POST", "/v1/invitation", { expiresAt: hoursAhead(1) }),
    ["422 INVALID_STARTSAT", () => inviting({ expiresAt: hoursAhead(1), badgeStartsAt: "soon" })],
    ["422 INVALID_NAME", () => inviting({ expiresAt: hoursAhead(1), name: "x".repeat(101) })],
    ["422 INVALID_USERID", () => inviting({ expiresAt: hoursAhead(1), userId: ".." })],
    ["400 INVALID_JSON", () => inviting("17")],
    ["401 INVALID_APPLICATIONID", () => inviting({}, device({ applicationid: "" }))],
    ["401 INVALID_CREDENTIALS", () => inviting({}, device({ applicationid: requiring.id }))],
    ["405 METHOD_NOT_ALLOWED", () => call("GET", "/v1/invitation")],
    ["413 PAYLOAD_TOO_LARGE", () => inviting(TOO_LARGE)],
    ["422 UNDEFINED_UDID", () => inviting({}, device({ udid: "" }))],
    ["422 UNDEFINED_EXPIRESAT", () => inviting({})],
    ["422 INVALID_UDID", () => inviting({ expiresAt: hoursAhead(1) }, device({ udid: "x".repeat(256) }))],
    ["422 INVALID_EXPIRESAT", () => inviting({ expiresAt: hoursAhead(-1) })],
    ["422 INVALID_BADGEEXPIRESAT", () => inviting({ expiresAt: hoursAhead(1), badgeExpiresAt: "soon" })],
    [
      "422 INVALID_IDEMPOTENCYKEY",
      () => inviting({ expiresAt: hoursAhead(1) }, device({ "idempotency-key": "x".repeat(256) })),
    ],
    ["503 NUMBERS_EXHAUSTED", () => inviting({ expiresAt: hoursAhead(1) }, device({ applicationid: exhausted.id }))],
  ],
  "POST /v1/invitations": [
    ["200", () => invitingMany({ invitations: [{ expiresAt: hoursAhead(1), name: "Ann" }, {}] })],
    ["400 INVALID_JSON", () => invitingMany("[]")],
    ["401 INVALID_CREDENTIALS", () => invitingMany({}, device())],
    ["405 METHOD_NOT_ALLOWED", () => call("PUT", "/v1/invitations")],
    ["413 PAYLOAD_TOO_LARGE", () => invitingMany(" ".repeat(256 * 1024 + 1))],
    ["422 UNDEFINED_UDID", () => invitingMany({}, serverHeaders(application))],
    ["422 INVALID_UDID", () => invitingMany({}, { ...serverHeaders(application), udid: "x".repeat(256) })],
    ["422 INVALID_INVITATIONS", () => invitingMany({ invitations: [] })],
    [
      "422 INVALID_IDEMPOTENCYKEY",
      () =>
        invitingMany(
          { invitations: [{ expiresAt: hoursAhead(1) }] },
          { ...serverHeaders(application), udid: "server", "idempotency-key": "x".repeat(256) },
        ),
    ],
    named("POST", "/v1/invitations", {}),
    looking("POST", "/v1/invitations", {}),
  ],
  "PATCH /v1/invitation/{id}/revoke": [
    named("PATCH", "/v1/invitation/any/revoke"),
    looking("PATCH", "/v1/invitation/any/revoke"),
    ["200", () => revoke(invite)],
    ["401 INVALID_APPLICATIONID", () => revoking("any", { applicationid: UNKNOWN })],
    ["401 INVALID_CREDENTIALS", () => revoking("any", { applicationid: application.id, applicationsecret: "wrong" })],
    ["404 UNKNOWN_INVITATION", () => revoking("unknown")],
    ["405 METHOD_NOT_ALLOWED", () => call("POST", "/v1/invitation/any/revoke")],
    ["409 CLAIMED_INVITATION", () => revoke(claimedInvitation)],
    ["410 EXPIRED_INVITATION", () => revoke(expiredInvitation)],
    ["413 PAYLOAD_TOO_LARGE", () => revoking("any", serverHeaders(application), TOO_LARGE)],
  ],
  "GET /v1/badges/{id}": [
    named("GET", "/v1/badges/17"),
    ["200", async () => server("GET", `/v1/badges/${(await badgeHolder()).id}`)],
    ["401 INVALID_CREDENTIALS", () => call("GET", "/v1/badges/17")],
    ["404 UNKNOWN_BADGE", () => server("GET", "/v1/badges/17")],
    ["405 METHOD_NOT_ALLOWED", () => call("POST", "/v1/badges/17")],
  ],
  "PATCH /v1/badges/{id}/rebind": [
    ...changing("/rebind"),
    ["400 INVALID_JSON", () => rebind("17", "{")],
    ["200", async () => rebind((await badgeHolder()).id)],
    ["401 INVALID_CREDENTIALS", () => call("PATCH", "/v1/badges/17/rebind")],
    ["404 UNKNOWN_BADGE", () => rebind("17")],
    ["405 METHOD_NOT_ALLOWED", () => call("POST", "/v1/badges/17/rebind")],
    ["409 ENDED_BADGE", async () => rebind(await replacedBadge())],
    ["413 PAYLOAD_TOO_LARGE", () => rebind("17", TOO_LARGE)],
  ],
  "PATCH /v1/badges/{id}": [
    ...changing("", { expiresAt: null }),
    ["422 INVALID_STARTSAT", () => server("PATCH", "/v1/badges/17", { startsAt: "soon" })],
    ["200", async () => setEnd(application, (await badgeHolder()).id, null)],
    ["400 INVALID_JSON", () => server("PATCH", "/v1/badges/17", "{")],
    ["401 INVALID_CREDENTIALS", () => call("PATCH", "/v1/badges/17", { body: {} })],
    ["404 UNKNOWN_BADGE", () => setEnd(application, "17", null)],
    ["405 METHOD_NOT_ALLOWED", () => call("DELETE", "/v1/badges/17")],
    ["409 ENDED_BADGE", async () => setEnd(application, await replacedBadge(), null)],
    ["413 PAYLOAD_TOO_LARGE", () => server("PATCH", "/v1/badges/17", TOO_LARGE)],
    ["422 UNDEFINED_EXPIRESAT", () => server("PATCH", "/v1/badges/17", {})],
    ["422 INVALID_EXPIRESAT", () => setEnd(application, "17", "soon")],
  ],
  ...Object.fromEntries(
    (["suspend", "resume", "revoke"] as const).map((step): [string, Case[]] => [
      `PATCH /v1/badges/{id}/${step}`,
      [
        ...changing(`/${step}`),
        ["400 INVALID_JSON", () => server("PATCH", `/v1/badges/17/${step}`, { reason: 17 })],
        ["200", async () => takeStep(application, (await badgeHolder()).id, step)],
        ["401 INVALID_CREDENTIALS", () => call("PATCH", `/v1/badges/17/${step}`)],
        ["404 UNKNOWN_BADGE", () => takeStep(application, "17", step)],
        ["405 METHOD_NOT_ALLOWED", () => call("POST", `/v1/badges/17/${step}`)],
        ["409 ENDED_BADGE", async () => takeStep(application, await replacedBadge(), step)],
        ["413 PAYLOAD_TOO_LARGE", () => server("PATCH", `/v1/badges/17/${step}`, TOO_LARGE)],
      ],
    ]),
  ),
  ...Object.fromEntries(
    (["block", "unblock", "erase"] as const).map((step): [string, Case[]] => [
      `PATCH /v1/users/{id}/${step}`,
      [
        named("PATCH", `/v1/users/nobody/${step}`),
        looking("PATCH", `/v1/users/nobody/${step}`),
        ["400 INVALID_JSON", () => server("PATCH", `/v1/users/nobody/${step}`, "17")],
        ["200", () => server("PATCH", `/v1/users/nobody/${step}`)],
        ["401 INVALID_CREDENTIALS", () => call("PATCH", `/v1/users/nobody/${step}`)],
        ["405 METHOD_NOT_ALLOWED", () => call("POST", `/v1/users/nobody/${step}`)],
        ["413 PAYLOAD_TOO_LARGE", () => server("PATCH", `/v1/users/nobody/${step}`, TOO_LARGE)],
        ["422 INVALID_USERID", () => server("PATCH", `/v1/users/${"x".repeat(256)}/${step}`)],
      ],
    ]),
  ),
  "GET /v1/changes": [
    named("GET", "/v1/changes"),
    ["200", () => list("/v1/changes")],
    ["401 INVALID_CREDENTIALS", () => call("GET", "/v1/changes")],
    ["405 METHOD_NOT_ALLOWED", () => call("POST", "/v1/changes")],
    [
      "410 EXPIRED_CURSOR",
      () => list(`/v1/changes?cursor=${FEED_CURSOR.encode({ epoch: "", change: 1_000_000_000 })}`),
    ],
    ["422 INVALID_PER_PAGE", () => list("/v1/changes?per_page=none")],
    ["422 INVALID_CURSOR", () => list("/v1/changes?cursor=none")],
  ],
  ...Object.fromEntries(
    (
      [
        ["GET /v1/users/{id}", "/v1/users/nobody"],
        ["GET /v1/application", "/v1/application"],
        ["GET /v1/stats", "/v1/stats"],
      ] as const
    ).map(([route, path]): [string, Case[]] => [
      route,
      [
        named("GET", path),
        ["200", () => list(path)],
        ["401 INVALID_CREDENTIALS", () => call("GET", path)],
        ["405 METHOD_NOT_ALLOWED", () => call("POST", path)],
      ],
    ]),
  ),
  ...Object.fromEntries(
    ["/v1/invitations", "/v1/events"].map((path): [string, Case[]] => [
      `GET ${path}`,
      [
        named("GET", path),
        ["200", () => list(path)],
        ["401 INVALID_CREDENTIALS", () => call("GET", path)],
        ["405 METHOD_NOT_ALLOWED", () => call("PUT", path)],
        ["422 INVALID_PER_PAGE", () => list(`${path}?per_page=none`)],
        ["422 INVALID_CURSOR", () => list(`${path}?cursor=none`)],
        ["422 INVALID_STATE", () => list(`${path}?state=none`)],
      ],
    ]),
  ),
  "POST /v1/events/{id}/replay": [
    named("POST", "/v1/events/any/replay"),
    looking("POST", "/v1/events/any/replay"),
    ["202", replayEvent],
    ["401 INVALID_CREDENTIALS", () => call("POST", "/v1/events/any/replay")],
    ["404 UNKNOWN_EVENT", () => replaying("any")],
    ["405 METHOD_NOT_ALLOWED", () => call("GET", "/v1/events/any/replay")],
    ["413 PAYLOAD_TOO_LARGE", () => replaying("any", TOO_LARGE)],
  ],
  "GET /v1/applications/{applicationId}/jwks.json": [
    ["200", () => call("GET", `/v1/applications/${application.id}/jwks.json`)],
    ["404 UNKNOWN_APPLICATION", () => call("GET", `/v1/applications/${UNKNOWN}/jwks.json`)],
    ["405 METHOD_NOT_ALLOWED", () => call("POST", "/v1/applications/any/jwks.json")],
  ],
  "GET /v1/applications/{applicationId}/status/{n}": [
    ["200", async () => call("GET", `/v1/applications/${(await createApplication({ statusList: true })).id}/status/0`)],
    ["404 UNKNOWN_STATUSLIST", () => call("GET", `/v1/applications/${application.id}/status/0`)],
    ["405 METHOD_NOT_ALLOWED", () => call("POST", "/v1/applications/any/status/0")],
    ["501 NOT_IMPLEMENTED", () => call("GET", `/v1/applications/${application.id}/status/0?time=1800000000`)],
  ],
  ...Object.fromEntries(
    ["/health", "/openapi.json", "/docs"].map((path): [string, Case[]] => [
      `GET ${path}`,
      [
        ["200", () => call("GET", path)],
        ["405 METHOD_NOT_ALLOWED", () => call("DELETE", path)],
      ],
    ]),
  ),
};

/** Status and code of each answer that the document lists for a route. */
const DOCUMENTED = Object.entries(openApiDocument(Date.now()).paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]): [string, string[]] => [
    `${method.toUpperCase()} ${path}`,
    Object.entries(operation.responses).flatMap(([status, { content }]) =>
      Number(status) < 400
        ? [status]
        : Object.keys(content?.["application/json"]?.examples ?? {}).map((code) => `${status} ${code}`),
    ),
  ]),
);

describe.each(DOCUMENTED)(
  "%s gives what /openapi.json lists (contract sections 2 to 6, 12 to 15, 19 and 22)",
  (route, listed) => {
    const cases = CASES[route] ?? [];

    it("all of which are tried here", () => {
      const expected = listed.filter((answer) => !BY_CIRCUMSTANCE.some((code) => answer.endsWith(code)));
      expect(cases.map(([answer]) => answer).sort()).toEqual(expected.sort());
    });

    it.each(cases)("%s", async (expected, send) => {
      expect(outcome(await send())).toBe(expected);
    });
  },
);
