import fc, { type Arbitrary } from "fast-check";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { byEffort } from "../support/effort.ts";
import { type Answer, requestBadge, serverHeaders } from "../support/http.ts";
import { everythingStored } from "../support/stored.ts";
import { STATUS_OF_CODE } from "./support/codes.ts";
import { ascii, inParallel } from "./support/draft.ts";
import { hoursAhead, invite } from "./support/invitations.ts";
import { type MalformedCall, malformedCalls, notThe, notUdid, oddSegment } from "./support/malformed-calls.ts";

const CALLS_PER_ROUTE = byEffort(500, 5000);

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

/** Straight to the Worker's entry: thousands of calls are far over the rate limits, which are not what is tested here. */
function make({ method, path, headers, body, isChunked }: MalformedCall): Promise<Answer> {
  const sent = body === undefined ? {} : { body: isChunked === true ? new Blob([body]).stream() : body };
  const request = new Request(`https://badges.example${path}`, { method, headers, ...sent });
  return callWith({ DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, REFUSED_CALL_LIMIT: UNLIMITED }, request);
}

/** @returns what is wrong with an answer, or nothing */
function faultOf(call: MalformedCall, { status, body, headers }: Answer): string | null {
  if (status === 200 && call.mayBeGranted === true) {
    const { badges } = body;
    return Array.isArray(badges) && badges.length === 0 ? null : "granted something";
  }
  const { error, ...more } = body;
  if (typeof error !== "string" || Object.keys(more).length > 0) return "not an error body";
  if (STATUS_OF_CODE.get(error) !== status) return "not of the error table";
  if (status < 400 || status >= 500) return "not the caller's fault";
  return headers.has("x-request-id") ? null : "no request ID";
}

async function expectRefused(application: TestApplication, calls: Arbitrary<MalformedCall>): Promise<void> {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const before = await everythingStored([application]);
  const faults: string[] = [];
  await inParallel(fc.sample(calls, { numRuns: CALLS_PER_ROUTE, seed }), async (call) => {
    const answer = await make(call);
    const fault = faultOf(call, answer);
    if (fault === null) return;
    const body = call.body && new TextDecoder().decode(call.body);
    faults.push(
      `${fault}: ${ascii({ ...call, body }).slice(0, 1000)} was answered ${answer.status} ${ascii(answer.body)}`,
    );
  });
  expect(faults.slice(0, 5), `seed ${seed}`).toEqual([]);
  expect(await everythingStored([application]), `seed ${seed}`).toEqual(before);
}

/** An application that has something to lose. */
async function prepare(): Promise<{ application: TestApplication; invitation: string }> {
  // Events are recorded and held: nothing is sent.
  const application = await createApplication({ webhookUrl: "https://hooks.example/", webhookHeldAt: 1 });
  expect((await requestBadge(application, "phone", { userId: "user", metadata: { os: "iOS" } })).status).toBe(201);
  return { application, invitation: (await invite(application)).id };
}

/** Reads whose address is odd are answered with nothing, or not found. */
const reading = (path: string, headers: Record<string, string>): MalformedCall => ({
  method: "GET",
  path,
  headers,
  mayBeGranted: true,
});

describe(`${CALLS_PER_ROUTE} malformed calls (contract sections 6 and 7) are refused with a code and change nothing`, () => {
  it("of POST /v1/badge", async () => {
    const { application } = await prepare();
    const { id } = application;
    const headers = { applicationid: id, udid: "phone" };
    const sound = { method: "POST", path: "/v1/badge", headers, body: { userId: "user" } };
    const wrong = { applicationid: notThe(id), udid: notUdid };
    await expectRefused(application, malformedCalls(sound, wrong, ["POST"]));
  });

  it("of POST /v1/badge/sign", async () => {
    const { application } = await prepare();
    const { id } = application;
    const headers = { applicationid: id, udid: "phone" };
    const sound = { method: "POST", path: "/v1/badge/sign", headers, body: { base64: "AAAA" } };
    const wrong = { applicationid: notThe(id), udid: notUdid };
    await expectRefused(application, malformedCalls(sound, wrong, ["POST"]));
  });

  it("of POST /v1/invitation", async () => {
    const { application } = await prepare();
    const { id, secret } = application;
    const headers = { ...serverHeaders(application), udid: "phone" };
    const sound = { method: "POST", path: "/v1/invitation", headers, body: { expiresAt: hoursAhead(1) } };
    const wrongSecret = notThe(secret).filter((text) => text !== null && text.trim() !== "");
    const wrong = { applicationid: notThe(id), applicationsecret: wrongSecret, udid: notUdid };
    await expectRefused(application, malformedCalls(sound, wrong, ["POST"]));
  });

  it("of PATCH /v1/invitation/:id/revoke", async () => {
    const { application, invitation } = await prepare();
    const headers = serverHeaders(application);
    const sound = { method: "PATCH", path: `/v1/invitation/${invitation}/revoke`, headers };
    const wrong = { applicationid: notThe(application.id), applicationsecret: notThe(application.secret) };
    const odd = oddSegment.map((segment) => ({ method: "PATCH", path: `/v1/invitation/${segment}/revoke`, headers }));
    await expectRefused(application, fc.oneof(malformedCalls(sound, wrong, ["PATCH"]), odd));
  });

  it("of GET /v1/badges", async () => {
    const { application } = await prepare();
    const headers = serverHeaders(application);
    const sound = { method: "GET", path: "/v1/badges", headers };
    const wrong = { applicationid: notThe(application.id), applicationsecret: notThe(application.secret) };
    const name = fc.constantFrom("per_page", "cursor");
    const value = fc.oneof(
      oddSegment,
      fc.constantFrom("0", "-1", "1e3", "", "%20", "AAAA", "=", "1&per_page=1&cursor=x"),
    );
    const odd = fc
      .tuple(name, value.filter(isNoPage))
      .map(([key, text]) => reading(`/v1/badges?${key}=${text}`, headers));
    await expectRefused(application, fc.oneof(malformedCalls(sound, wrong, ["GET"]), odd));
  });

  it("of GET /v1/users/{id}/badges", async () => {
    const { application } = await prepare();
    const headers = serverHeaders(application);
    const sound = { method: "GET", path: "/v1/users/user/badges", headers };
    const wrong = { applicationid: notThe(application.id), applicationsecret: notThe(application.secret) };
    const odd = oddSegment
      .map((segment) => `/v1/users/${segment}/badges`)
      // URLs resolve "." and ".." as steps of the path (RFC 3986 section 5.2.4): /v1/users/../badges is /v1/badges.
      .filter((path) => new URL(path, "https://badges.example").pathname.startsWith("/v1/users/"))
      .map((path) => reading(path, headers));
    await expectRefused(application, fc.oneof(malformedCalls(sound, wrong, ["GET"]), odd));
  });

  it("of GET /v1/applications/:applicationId/jwks.json", async () => {
    const { application } = await prepare();
    const sound = { method: "GET", path: `/v1/applications/${application.id}/jwks.json`, headers: {} };
    const odd = oddSegment.map((segment) => ({ ...sound, path: `/v1/applications/${segment}/jwks.json` }));
    await expectRefused(application, fc.oneof(malformedCalls(sound, {}, ["GET"]), odd));
  });

  it("of GET /health and of paths that nobody knows", async () => {
    const { application } = await prepare();
    const sound = { method: "GET", path: "/health", headers: serverHeaders(application) };
    const odd = fc
      .tuple(fc.constantFrom("/", "/v1/", "/v1/badge/", "/health/", "/openapi.json/"), oddSegment)
      .map(([start, segment]) => ({ ...sound, path: start + segment }));
    await expectRefused(application, fc.oneof(malformedCalls(sound, {}, ["GET"]), odd));
  });
});

/** Whether a query value is not, by chance, a page that there is. */
function isNoPage(value: string): boolean {
  return !/^0*[1-9]\d*$/.test(decodeURIComponentOr(value));
}

function decodeURIComponentOr(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
