import { beforeAll, describe, expect, it, vi } from "vitest";
import { app } from "../../../src/worker/http/app.ts";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { type Answer, call, serverHeaders } from "../../support/http.ts";
import { linesOf } from "../../support/log-lines.ts";
import { outcome } from "../support/draft.ts";
import { hoursAhead, invite } from "../support/invitations.ts";
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

/** A path with something in the place of its parameters. */
const filled = (path: string) => path.replace(/:\w+/g, "something");

/** What the service answers when it grants, refuses and does not know: each kind of answer on each kind of route. */
async function answersOf(application: TestApplication, headers: Record<string, string>): Promise<[string, Answer][]> {
  const device = { applicationid: application.id, udid: "phone", ...headers };
  const server = { ...serverHeaders(application), ...headers };
  const { id } = await invite(application);
  const calls: [string, string, Parameters<typeof call>[2]][] = [
    ["POST", "/v1/badge", { headers: device, body: { userId: "user" } }],
    ["POST", "/v1/badge", { headers }],
    ["POST", "/v1/badge", { headers: device, body: "not JSON" }],
    ["POST", "/v1/badge", { headers: device, body: "x".repeat(20_000) }],
    ["DELETE", "/v1/badge", { headers }],
    ["OPTIONS", "/v1/badge", { headers: { "access-control-request-method": "POST", ...headers } }],
    ["POST", "/v1/badge/sign", { headers: device, body: { base64: "AAAA" } }],
    ["POST", "/v1/badge/sign", { headers: { ...device, udid: "no badge" }, body: { base64: "AAAA" } }],
    ["GET", "/v1/user/badges", { headers: device }],
    ["PATCH", "/v1/user/badges/17/suspend", { headers: device }],
    ["GET", "/v1/badges", { headers: server }],
    ["HEAD", "/v1/badges", { headers: server }],
    ["GET", "/v1/badges?per_page=0", { headers: server }],
    ["GET", "/v1/users/user/badges", { headers: server }],
    ["GET", "/v1/invitation", { headers: { ...device, invitationtoken: id } }],
    ["GET", "/v1/invitation", { headers: { ...device, invitationtoken: "inv_unknown" } }],
    ["POST", "/v1/invitation", { headers: device, body: { expiresAt: hoursAhead(1) } }],
    ["POST", "/v1/invitation", { headers: device }],
    ["PATCH", `/v1/invitation/${id}/revoke`, { headers: server }],
    ["PATCH", "/v1/invitation/unknown/revoke", { headers: server }],
    ["GET", `/v1/applications/${application.id}/jwks.json`, { headers }],
    ["GET", "/v1/applications/unknown/jwks.json", { headers }],
    ["GET", "/health", { headers }],
    ["GET", "/unknown", { headers }],
    // And every route when somebody calls it who may not.
    ...ROUTES.filter(({ by }) => by !== null).map((route): (typeof calls)[number] => [
      route.method,
      requestOf(route, NOTHING).path,
      { headers },
    ]),
  ];
  const answers: [string, Answer][] = [];
  for (const [method, path, options] of calls) answers.push([`${method} ${path}`, await call(method, path, options)]);
  return answers;
}

describe("every response (contract section 6)", () => {
  let application: TestApplication;
  let answers: [string, Answer][];
  beforeAll(async () => {
    application = await createApplication({ statusList: true });
    answers = await answersOf(application, ORIGIN);
  });

  it("every response has a request ID of its own", () => {
    const ids = answers.map(([, { headers }]) => headers.get("x-request-id"));
    for (const id of ids) expect(id).toMatch(/^[\w-]{16,}$/);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("a response has the caller's request ID if that is one word and caches may not store the response", async () => {
    for (const [name, { headers }] of await answersOf(application, TRACE)) {
      if (headers.get("cache-control") !== "no-store") continue;
      expect(`${name} ${headers.get("x-request-id")}`).toBe(`${name} trace-1_A=`);
    }
    for (const useless of ["", "two words", "<script>", "a,b", "x".repeat(256)]) {
      const { headers } = await call("GET", "/health", { headers: { "x-request-id": useless } });
      expect(headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
    }
  });

  it("a response has a request ID of the service's own, also logged, if caches may store it", async () => {
    const lines = vi.spyOn(console, "log").mockImplementation(() => {});
    const keySet = `/v1/applications/${application.id}/jwks.json`;
    const statusList = `/v1/applications/${application.id}/status/0`;
    for (const path of [keySet, statusList, "/openapi.json", "/docs", "/docs/scalar.js"]) {
      lines.mockClear();
      const answer = await call("GET", path, { headers: TRACE });
      expect([path, answer.status]).toEqual([path, 200]);
      const id = answer.headers.get("x-request-id");
      expect([path, id]).toEqual([path, expect.stringMatching(/^[\w-]{36}$/)]);
      expect(linesOf(lines)).toContainEqual(expect.objectContaining({ event: "request", requestId: id }));
    }
    const { headers } = await call("GET", `${keySet}x`, { headers: TRACE });
    expect(headers.get("x-request-id")).toBe("trace-1_A=");
  });

  it("every response is JSON that caches do not store, except the key set, and an error has its code and nothing else", () => {
    const keySet = `GET /v1/applications/${application.id}/jwks.json`;
    for (const [name, { status, body, headers }] of answers) {
      const expected = name === keySet ? "public, max-age=300" : "no-store";
      expect(`${name} ${headers.get("cache-control")}`).toBe(`${name} ${expected}`);
      if (status === 204) continue;
      expect(`${name} ${headers.get("content-type")}`).toBe(`${name} application/json`);
      if (status >= 400) expect(body, name).toEqual({ error: expect.stringMatching(/^[A-Z_]+$/) });
    }
  });

  it("every response has the security headers, and does not reveal the service's software", () => {
    for (const [name, { headers }] of answers) {
      expect(`${name} ${headers.get("strict-transport-security")}`).toMatch(/ max-age=[1-9]\d{6,}/);
      expect(`${name} ${headers.get("x-content-type-options")}`).toBe(`${name} nosniff`);
      expect(`${name} ${headers.get("x-frame-options")}`).toBe(`${name} SAMEORIGIN`);
      expect(`${name} ${headers.get("referrer-policy")}`).toBe(`${name} no-referrer`);
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

describe("unknown paths (contract section 6)", () => {
  const near = [
    "/v1/badge/",
    "//v1/badge",
    "/V1/badge",
    "/v1/badges/17/any",
    "/v1/users//badges",
    "/v1/users/a/b/badges",
  ];
  const others = ["/", "/v1", "/v2/badge", "/v1/applications", "/v1/invitation//revoke", "/favicon.ico", "/%", "/%zz"];

  it.each([...near, ...others])("%s is not found, by any method", async (path) => {
    for (const method of ["GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"]) {
      expect(`${method} ${outcome(await call(method, path))}`).toBe(`${method} 404 NOT_FOUND`);
    }
  });
});

describe("other methods of known paths (contract section 6)", () => {
  it("other methods are tried on every route of /openapi.json", () => {
    expect([...KNOWN_PATHS.keys()]).toEqual(expect.arrayContaining(ROUTES.map(({ path }) => pattern(path))));
  });

  it.each([...KNOWN_PATHS])(
    "other methods are not allowed on %s, and Allow names those that are",
    async (path, methods) => {
      const allowed = [
        ...methods,
        ...(methods.has("GET") ? ["HEAD"] : []),
        ...(OPEN_PATHS.includes(path) ? ["OPTIONS"] : []),
      ];
      const others = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"];
      for (const method of others.filter((other) => !allowed.includes(other))) {
        const { status, body, headers } = await call(method, filled(path));
        expect(`${method} ${status}`).toBe(`${method} 405`);
        expect(headers.get("allow")?.split(", ").toSorted()).toEqual(allowed.toSorted());
        expect(headers.has("access-control-allow-origin")).toBe(OPEN_PATHS.includes(path));
        if (method !== "HEAD") expect(body).toEqual({ error: "METHOD_NOT_ALLOWED" });
      }
    },
  );
});

describe("web pages of other origins (contract sections 6, 15 and 22)", () => {
  it("web pages of other origins may read an invitation after a preflight, which lets none of them create one", async () => {
    const preflight = await call("OPTIONS", READ_ONLY_PATH, {
      headers: { ...ORIGIN, "access-control-request-method": "GET" },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-origin")).toBe("*");
    expect(preflight.headers.get("access-control-allow-methods")).toBe("GET");
    // A POST needs `udid`: without it here, browsers send none (Fetch, CORS-preflight fetch).
    const allowed = "applicationid,invitationtoken,x-request-id";
    expect(preflight.headers.get("access-control-allow-headers")).toBe(allowed);
  });

  it.each(OPEN_PATHS.filter((path) => path !== READ_ONLY_PATH))("may call %s, after a preflight too", async (path) => {
    const [method = ""] = KNOWN_PATHS.get(path) ?? [];
    const preflight = await call("OPTIONS", filled(path), {
      headers: {
        ...ORIGIN,
        "access-control-request-method": method,
        "access-control-request-headers": "applicationid,content-type,udid",
      },
    });
    expect(preflight.status).toBe(204);
    const listOf = (name: string) => preflight.headers.get(name)?.split(",") ?? [];
    expect(preflight.headers.get("access-control-allow-origin")).toBe("*");
    expect(listOf("access-control-allow-methods")).toContain(method);
    const allowed = ["applicationid", "udid", "content-type", "authorization", "dpop", "bookmark"];
    expect(listOf("access-control-allow-headers")).toEqual(expect.arrayContaining(allowed));
    // A secret has no place in a web page.
    expect(listOf("access-control-allow-headers")).not.toContain("applicationsecret");
    expect(preflight.headers.has("access-control-allow-credentials")).toBe(false);
    // A browser asks once a day, not before each login.
    expect(preflight.headers.get("access-control-max-age")).toBe("86400");
  });
});
