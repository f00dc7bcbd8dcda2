import { beforeAll, describe, expect, it } from "vitest";
import { app } from "../../../src/worker/http/app.ts";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { ahead, HOUR } from "../../support/clock.ts";
import { type Answer, call, outcome, serverHeaders } from "../../support/http.ts";
import { invite } from "../../support/invitations.ts";
import { log } from "../../support/log.ts";
import { NOTHING, ROUTES, requestOf } from "../support/routes.ts";

const ORIGIN = { origin: "https://app.example" };
const TRACE = { "x-request-id": "trace-1_A=" };

/** Every path that the service knows, with the methods it has for it. */
const KNOWN_PATHS = new Map<string, Set<string>>();
for (const { path, method } of app.routes) {
  if (path.includes("*") || method === "ALL") continue;
  KNOWN_PATHS.set(path, (KNOWN_PATHS.get(path) ?? new Set()).add(method));
}

/** As the Worker writes it. */
const pattern = (path: string) => path.replace(/\?.*/, "").replaceAll(/\{(\w+)\}/g, ":$1");

/** Any web page may call these: what devices call, and what doors read (contract section 6). */
const OPEN_PATHS = ROUTES.filter(({ by, path }) => by === "device" || path.startsWith("/v1/applications/")).map(
  ({ path }) => pattern(path),
);

/** Web pages may read it (contract section 27), and not create what a server creates there (section 5). */
const READ_ONLY_PATH = "/v1/invitation";

const filled = (path: string) => path.replace(/:\w+/g, "something");

/** What the service answers when it grants, refuses and does not know, and on every route to somebody who may not call it. */
async function answersOf(application: TestApplication, headers: Record<string, string>): Promise<[string, Answer][]> {
  const device = { applicationid: application.id, udid: "phone", ...headers };
  const server = { ...serverHeaders(application), ...headers };
  const { token: invitationtoken } = await invite(application);
  const keySet = `/v1/applications/${application.id}/jwks.json`;
  const calls: [string, Record<string, string>, unknown?][] = [
    ["POST /v1/badge", device, { userId: "user" }],
    ["POST /v1/badge", device, "not JSON"],
    ["POST /v1/badge", device, "x".repeat(20_000)],
    ["OPTIONS /v1/badge", { "access-control-request-method": "POST", ...headers }],
    ["POST /v1/badge/sign", device, { base64: "AAAA" }],
    ["GET /v1/badges?per_page=0", server],
    ["GET /v1/invitation", { ...device, invitationtoken }],
    ["POST /v1/invitation", device, { expiresAt: ahead(HOUR) }],
    [`PATCH /v1/invitation/${invitationtoken}/revoke`, server],
  ];
  const routes = ROUTES.filter(({ by }) => by !== null).map((one) => `${one.method} ${requestOf(one, NOTHING).path}`);
  const others = ["DELETE /v1/badge", "GET /v1/applications/unknown/jwks.json", "GET /health", "GET /unknown"];
  for (const name of [...routes, ...others, `GET ${keySet}`]) calls.push([name, headers]);
  for (const name of ["GET /v1/badges", "HEAD /v1/badges"]) calls.push([name, server]);
  const answers: [string, Answer][] = [];
  for (const [name, sent, body] of calls) {
    const [method = "", path = ""] = name.split(" ");
    answers.push([name, await call(method, path, { headers: sent, body })]);
  }
  return answers;
}

describe("every response (contract section 6)", () => {
  let application: TestApplication;
  let answers: [string, Answer][];
  beforeAll(async () => {
    application = await createApplication({ statusList: true });
    answers = await answersOf(application, ORIGIN);
  });

  it("a response has the caller's request ID if that is one word, and one of the service's own, also logged, if caches may store it", async () => {
    for (const [name, { headers }] of await answersOf(application, TRACE)) {
      if (headers.get("cache-control") !== "no-store") continue;
      expect(`${name} ${headers.get("x-request-id")}`).toBe(`${name} trace-1_A=`);
    }
    const ids = answers.map(([, { headers }]) => headers.get("x-request-id"));
    expect(new Set(ids).size).toBe(ids.length);
    for (const useless of ["", "two words", "<script>", "a,b", "x".repeat(256)]) {
      const { headers } = await call("GET", "/health", { headers: { "x-request-id": useless } });
      expect(headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
    }
    const publicPath = `/v1/applications/${application.id}`;
    const files = ["/openapi.json", "/docs", "/docs/scalar.js"];
    for (const path of [`${publicPath}/jwks.json`, `${publicPath}/status/0`, ...files]) {
      const answer = await call("GET", path, { headers: TRACE });
      const requestId = answer.headers.get("x-request-id");
      expect([path, answer.status, requestId]).toEqual([path, 200, expect.stringMatching(/^[\w-]{36}$/)]);
      expect(log.lines()).toContainEqual(expect.objectContaining({ event: "request", requestId }));
    }
  });

  it("every response is JSON that caches do not store, except the key set, and an error has its code and nothing else; it has security headers, and does not reveal the service's software", () => {
    const keySet = `GET /v1/applications/${application.id}/jwks.json`;
    for (const [name, { status, body, headers }] of answers) {
      expect({ name, ...Object.fromEntries(headers) }).toMatchObject({
        name,
        "cache-control": name === keySet ? "public, max-age=300" : "no-store",
        ...(status !== 204 && { "content-type": "application/json" }),
        "strict-transport-security": expect.stringMatching(/^max-age=[1-9]\d{6,}/),
        "x-content-type-options": "nosniff",
        "x-frame-options": "SAMEORIGIN",
        "referrer-policy": "no-referrer",
      });
      if (status >= 400) expect(body, name).toEqual({ error: expect.stringMatching(/^[A-Z_]+$/) });
      for (const telling of ["server", "x-powered-by", "via", "server-timing"]) {
        expect(headers.has(telling), `${telling} of ${name}`).toBe(false);
      }
    }
  });

  it("web pages of any origin can read responses of the open routes, errors included, and of no other", () => {
    const isOpen = (name: string) =>
      name !== `POST ${READ_ONLY_PATH}` &&
      OPEN_PATHS.some((path) => new RegExp(`^\\w+ ${path.replaceAll(/:\w+/g, "[^/]+")}$`).test(name));
    const read = new Set<string>();
    for (const [name, { status, headers }] of answers) {
      const cors = [...headers].filter(([header]) => header.startsWith("access-control"));
      if (!isOpen(name)) expect([name, cors]).toEqual([name, []]);
      else {
        expect([name, headers.get("access-control-allow-origin")]).toEqual([name, "*"]);
        expect(headers.get("access-control-expose-headers")?.split(",")).toEqual(
          expect.arrayContaining(["x-request-id", "retry-after", "dpop-nonce", "www-authenticate", "bookmark"]),
        );
        read.add(`${name.split("/").at(-1)} ${status}`);
      }
    }
    const answered = ["badge 201", "badge 400", "badge 405", "badge 413", "badge 422", "sign 200", "jwks.json 200"];
    expect([...read]).toEqual(expect.arrayContaining(answered));
  });
});

describe("unknown paths and methods (contract section 6)", () => {
  it("a path that no route has is not found, by any method", async () => {
    const near = ["/v1/badge/", "//v1/badge", "/V1/badge", "/v1/badges/17/any"];
    const ofUsers = ["/v1/users//badges", "/v1/users/a/b/badges"];
    const others = ["/", "/v2/badge", "/v1/applications", "/v1/invitation//revoke", "/favicon.ico", "/%", "/%zz"];
    for (const path of [...near, ...ofUsers, ...others]) {
      for (const method of ["GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"]) {
        expect(`${method} ${path} ${outcome(await call(method, path))}`).toBe(`${method} ${path} 404 NOT_FOUND`);
      }
    }
  });

  it("other methods of a path are not allowed, and Allow names those that are", async () => {
    for (const [path, methods] of KNOWN_PATHS) {
      const isOpen = OPEN_PATHS.includes(path);
      const allowed = [...methods, ...(methods.has("GET") ? ["HEAD"] : []), ...(isOpen ? ["OPTIONS"] : [])];
      const others = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"];
      for (const method of others.filter((other) => !allowed.includes(other))) {
        const { status, body, headers } = await call(method, filled(path));
        expect(`${method} ${path} ${status}`).toBe(`${method} ${path} 405`);
        expect(headers.get("allow")?.split(", ").toSorted()).toEqual(allowed.toSorted());
        expect(headers.has("access-control-allow-origin")).toBe(isOpen);
        if (method !== "HEAD") expect(body).toEqual({ error: "METHOD_NOT_ALLOWED" });
      }
    }
  });
});

it("web pages of other origins may call the open routes after a preflight, with no secret, and read an invitation without creating one (contract sections 6, 15 and 22)", async () => {
  for (const path of OPEN_PATHS) {
    const preflight = await call("OPTIONS", filled(path), {
      headers: { ...ORIGIN, "access-control-request-method": "POST" },
    });
    const listOf = (name: string) => preflight.headers.get(`access-control-${name}`)?.split(",") ?? [];
    expect([path, preflight.status, ...listOf("allow-origin")]).toEqual([path, 204, "*"]);
    const allowed = listOf("allow-headers");
    if (path === READ_ONLY_PATH) {
      // A POST needs `udid`: without it here, browsers send none (Fetch, CORS-preflight fetch).
      expect(listOf("allow-methods")).toEqual(["GET"]);
      expect(allowed).toEqual(["applicationid", "invitationtoken", "x-request-id"]);
      continue;
    }
    expect(listOf("allow-methods")).toEqual(expect.arrayContaining([...(KNOWN_PATHS.get(path) ?? [])]));
    const needed = ["applicationid", "udid", "content-type", "authorization", "dpop", "bookmark"];
    expect(allowed).toEqual(expect.arrayContaining(needed));
    // A secret has no place in a web page.
    expect(allowed).not.toContain("applicationsecret");
    expect(preflight.headers.has("access-control-allow-credentials")).toBe(false);
    // A browser asks once a day, not before each login.
    expect(listOf("max-age")).toEqual(["86400"]);
  }
});
