import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { app } from "../../../src/worker/http/app.ts";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { type Answer, call, requestBadge, serverHeaders, sign } from "../../support/http.ts";
import { linesOf } from "../../support/log-lines.ts";
import { outcome } from "../support/draft.ts";
import { hoursAhead, invite } from "../support/invitations.ts";
import { NOTHING, ROUTES, requestOf } from "../support/routes.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

const ORIGIN = { origin: "https://app.example" };

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
    ["OPTIONS", "/v1/badge", { headers: { ...ORIGIN, "access-control-request-method": "POST", ...headers } }],
    ["POST", "/v1/badge/sign", { headers: device, body: { base64: "AAAA" } }],
    ["POST", "/v1/badge/sign", { headers: { ...device, udid: "no badge" }, body: { base64: "AAAA" } }],
    ["GET", "/v1/user/badges", { headers: device }],
    ["GET", "/v1/user/badges", { headers }],
    ["PATCH", "/v1/user/badges/17/suspend", { headers: device }],
    ["GET", "/v1/badges", { headers: server }],
    ["HEAD", "/v1/badges", { headers: server }],
    ["GET", "/v1/badges", { headers }],
    ["GET", "/v1/badges?per_page=0", { headers: server }],
    ["GET", "/v1/users/user/badges", { headers: server }],
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
  beforeAll(async () => {
    application = await createApplication({ statusList: true });
  });

  it("has a request ID of its own", async () => {
    const ids = (await answersOf(application, {})).map(([, { headers }]) => headers.get("x-request-id"));
    for (const id of ids) expect(id).toMatch(/^[\w-]{16,}$/);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("has the caller's request ID if that is one word and caches may not store the response", async () => {
    for (const [name, { headers }] of await answersOf(application, { "x-request-id": "trace-1_A=" })) {
      if (headers.get("cache-control") !== "no-store") continue;
      expect(`${name} ${headers.get("x-request-id")}`).toBe(`${name} trace-1_A=`);
    }
    for (const useless of ["", "two words", "<script>", "a,b", "x".repeat(256)]) {
      const { headers } = await call("GET", "/health", { headers: { "x-request-id": useless } });
      expect(headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
    }
  });

  it("has a request ID of the service's own, also logged, if caches may store the response", async () => {
    const lines = vi.spyOn(console, "log").mockImplementation(() => {});
    const keySet = `/v1/applications/${application.id}/jwks.json`;
    const statusList = `/v1/applications/${application.id}/status/0`;
    for (const path of [keySet, statusList, "/openapi.json", "/docs", "/docs/scalar.js"]) {
      const headers = { "x-request-id": "trace-1_A=" };
      lines.mockClear();
      const answer = await call("GET", path, { headers });
      expect([path, answer.status]).toEqual([path, 200]);
      const id = answer.headers.get("x-request-id");
      expect([path, id]).toEqual([path, expect.stringMatching(/^[\w-]{36}$/)]);
      expect(linesOf(lines)).toContainEqual(expect.objectContaining({ event: "request", requestId: id }));
    }
    const { headers } = await call("GET", `${keySet}x`, { headers: { "x-request-id": "trace-1_A=" } });
    expect(headers.get("x-request-id")).toBe("trace-1_A=");
  });

  it("is not stored by caches, except the key set", async () => {
    const keySet = `GET /v1/applications/${application.id}/jwks.json`;
    for (const [name, { headers }] of await answersOf(application, {})) {
      const expected = name === keySet ? "public, max-age=300" : "no-store";
      expect(`${name} ${headers.get("cache-control")}`).toBe(`${name} ${expected}`);
    }
  });

  it("has the security headers: HSTS, no type sniffing, no frames, no referrer", async () => {
    for (const [name, { headers }] of await answersOf(application, {})) {
      expect(`${name} ${headers.get("strict-transport-security")}`).toMatch(/ max-age=[1-9]\d{6,}/);
      expect(`${name} ${headers.get("x-content-type-options")}`).toBe(`${name} nosniff`);
      expect(`${name} ${headers.get("x-frame-options")}`).toBe(`${name} SAMEORIGIN`);
      expect(`${name} ${headers.get("referrer-policy")}`).toBe(`${name} no-referrer`);
    }
  });

  it("is JSON, and an error has its code and nothing else", async () => {
    for (const [name, { status, body, headers }] of await answersOf(application, {})) {
      if (status === 204) continue;
      expect(`${name} ${headers.get("content-type")}`).toBe(`${name} application/json`);
      if (status < 400) continue;
      expect(body, name).toEqual({ error: expect.stringMatching(/^[A-Z_]+$/) });
    }
  });

  it("does not reveal the service's software", async () => {
    for (const [name, { headers }] of await answersOf(application, {})) {
      for (const telling of ["server", "x-powered-by", "via", "server-timing"]) {
        expect(headers.has(telling), `${telling} of ${name}`).toBe(false);
      }
    }
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
  it("are tried on every route of /openapi.json", () => {
    expect([...KNOWN_PATHS.keys()]).toEqual(expect.arrayContaining(ROUTES.map(({ path }) => pattern(path))));
  });

  it.each([...KNOWN_PATHS])("are not allowed on %s, and Allow names those that are", async (path, methods) => {
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
      if (method !== "HEAD") expect(body).toEqual({ error: "METHOD_NOT_ALLOWED" });
    }
  });
});

describe("web pages of other origins (contract section 6)", () => {
  const corsHeaders = ({ headers }: Answer) => [...headers.keys()].filter((name) => name.startsWith("access-control"));

  it.each(OPEN_PATHS)("may call %s, after a preflight too", async (path) => {
    const [method = ""] = KNOWN_PATHS.get(path) ?? [];
    const preflight = await call("OPTIONS", filled(path), {
      headers: {
        ...ORIGIN,
        "access-control-request-method": method,
        "access-control-request-headers": "applicationid,content-type,udid",
      },
    });
    expect(preflight.status).toBe(204);
    const listOf = (name: string) =>
      preflight.headers
        .get(name)
        ?.split(",")
        .map((item) => item.trim()) ?? [];
    expect(preflight.headers.get("access-control-allow-origin")).toBe("*");
    expect(listOf("access-control-allow-methods")).toContain(method);
    expect(listOf("access-control-allow-headers")).toEqual(
      expect.arrayContaining(["applicationid", "udid", "content-type"]),
    );
    // A secret has no place in a web page.
    expect(listOf("access-control-allow-headers")).not.toContain("applicationsecret");
    expect(preflight.headers.has("access-control-allow-credentials")).toBe(false);
  });

  it("can read the responses of open routes, errors included", async () => {
    const application = await createApplication();
    const granted = [
      await requestBadge(application, "phone", { userId: "user" }),
      await sign(application, "phone", { base64: "AAAA" }),
      await call("GET", `/v1/applications/${application.id}/jwks.json`, { headers: ORIGIN }),
    ];
    const refused = [
      await requestBadge(application, "phone", {}),
      await requestBadge({ id: "unknown" }, "phone", { userId: "user" }),
      await requestBadge(application, "phone", "x".repeat(20_000)),
      await sign(application, "another phone", { base64: "AAAA" }),
      await call("GET", "/v1/applications/unknown/jwks.json", { headers: ORIGIN }),
      await call("DELETE", "/v1/badge", { headers: ORIGIN }),
    ];
    for (const { headers } of [...granted, ...refused]) {
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(headers.get("access-control-expose-headers")).toMatch(/x-request-id/i);
    }
  });

  it("may not call a server's routes, nor unknown ones", async () => {
    const application = await createApplication();
    const headers = { ...serverHeaders(application), udid: "phone", ...ORIGIN };
    const preflight = { ...ORIGIN, "access-control-request-method": "GET" };
    const paths = [...KNOWN_PATHS.keys()].filter((path) => !OPEN_PATHS.includes(path)).map(filled);
    for (const path of [...paths, "/unknown"]) {
      for (const method of ["GET", "POST", "PATCH"])
        expect(corsHeaders(await call(method, path, { headers }))).toEqual([]);
      const asked = await call("OPTIONS", path, { headers: preflight });
      expect(corsHeaders(asked)).toEqual([]);
      expect([404, 405]).toContain(asked.status);
    }
  });
});
