import { beforeAll, describe, expect, it, vi } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { type Answer, call, requestBadge, serverHeaders } from "../support/http.ts";
import { outcome } from "./support/draft.ts";
import {
  claimedInvitation,
  expiredInvitation,
  hoursAhead,
  type Invitation,
  invite,
  revokedInvitation,
} from "./support/invitations.ts";

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

beforeAll(async () => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  application = await createApplication();
  requiring = await createApplication({ requireSecret: true });
  exhausted = await createApplication({ size: 1 });
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

const CASES: Record<string, Case[]> = {
  "POST /v1/badge": [
    ["200", () => badge({ userId: "user" })],
    ["201", () => badge({ userId: "new user" })],
    ["400 INVALID_JSON", () => badge("{")],
    ["401 INVALID_APPLICATIONID", () => badge({}, device({ applicationid: UNKNOWN }))],
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
    ["404 UNKNOWN_BADGE", () => sign({ base64: "AAAA" }, device({ udid: "stranger" }))],
    ["405 METHOD_NOT_ALLOWED", () => call("GET", "/v1/badge/sign")],
    ["413 PAYLOAD_TOO_LARGE", () => sign(TOO_LARGE)],
    ["422 UNDEFINED_UDID", () => sign({}, device({ udid: "" }))],
    ["422 UNDEFINED_BASE64", () => sign({})],
    ["422 INVALID_UDID", () => sign({ base64: "AAAA" }, device({ udid: "x".repeat(256) }))],
    ["422 INVALID_BASE64", () => sign({ base64: "A" })],
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
      ],
    ]),
  ),
  "POST /v1/invitation": [
    ["201", () => inviting({ expiresAt: hoursAhead(1) })],
    ["400 INVALID_JSON", () => inviting("17")],
    ["401 INVALID_APPLICATIONID", () => inviting({}, device({ applicationid: "" }))],
    ["401 INVALID_CREDENTIALS", () => inviting({}, device({ applicationid: requiring.id }))],
    ["405 METHOD_NOT_ALLOWED", () => call("GET", "/v1/invitation")],
    ["413 PAYLOAD_TOO_LARGE", () => inviting(TOO_LARGE)],
    ["422 UNDEFINED_UDID", () => inviting({}, device({ udid: "" }))],
    ["422 UNDEFINED_EXPIRESAT", () => inviting({})],
    ["422 INVALID_UDID", () => inviting({ expiresAt: hoursAhead(1) }, device({ udid: "x".repeat(256) }))],
    ["422 INVALID_EXPIRESAT", () => inviting({ expiresAt: hoursAhead(-1) })],
    ["503 NUMBERS_EXHAUSTED", () => inviting({ expiresAt: hoursAhead(1) }, device({ applicationid: exhausted.id }))],
  ],
  "PATCH /v1/invitation/{id}/revoke": [
    ["200", () => revoke(invite)],
    ["401 INVALID_APPLICATIONID", () => revoking("any", { applicationid: UNKNOWN })],
    ["401 INVALID_CREDENTIALS", () => revoking("any", { applicationid: application.id, applicationsecret: "wrong" })],
    ["404 UNKNOWN_INVITATION", () => revoking("unknown")],
    ["405 METHOD_NOT_ALLOWED", () => call("POST", "/v1/invitation/any/revoke")],
    ["409 CLAIMED_INVITATION", () => revoke(claimedInvitation)],
    ["410 EXPIRED_INVITATION", () => revoke(expiredInvitation)],
    ["413 PAYLOAD_TOO_LARGE", () => revoking("any", serverHeaders(application), TOO_LARGE)],
  ],
  "GET /v1/applications/{applicationId}/jwks.json": [
    ["200", () => call("GET", `/v1/applications/${application.id}/jwks.json`)],
    ["404 UNKNOWN_APPLICATION", () => call("GET", `/v1/applications/${UNKNOWN}/jwks.json`)],
    ["405 METHOD_NOT_ALLOWED", () => call("POST", "/v1/applications/any/jwks.json")],
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

describe.each(DOCUMENTED)("%s gives what /openapi.json lists (contract sections 2 to 6)", (route, listed) => {
  const cases = CASES[route] ?? [];

  it("all of which is tried here", () => {
    const expected = listed.filter((answer) => !BY_CIRCUMSTANCE.some((code) => answer.endsWith(code)));
    expect(cases.map(([answer]) => answer).sort()).toEqual(expected.sort());
  });

  it.each(cases)("%s", async (expected, send) => {
    expect(outcome(await send())).toBe(expected);
  });
});
