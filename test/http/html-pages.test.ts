import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import worker from "../../src/worker/index.ts";
import { fromSomewhere } from "../support/address.ts";

/** A page, as the Worker has it with some of its variables replaced. */
async function get(
  path: string,
  variables: object,
  known = "",
): Promise<{ status: number; text: string; headers: Headers }> {
  const execution = createExecutionContext();
  const request = fromSomewhere(new Request(`https://badges.example${path}`, { headers: { "if-none-match": known } }));
  const response = await worker.fetch(request, { ...env, ...variables }, execution);
  const text = await response.text();
  await waitOnExecutionContext(execution);
  return { status: response.status, text, headers: response.headers };
}

const policyOf = (headers: Headers) => headers.get("content-security-policy")?.split("; ").toSorted();

/** What every page may do: run and call what the service has, and nothing that another kind does not name. */
const OWN_FILES_ONLY = [
  ...["default-src 'none'", "script-src 'self'", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
];

describe("the policy of a page (contract sections 11, 19 and 27)", () => {
  it.each(["/console", "/pass"])("%s runs its own files only, in no frame, and no text becomes code", async (path) => {
    const { headers } = await get(path, {});
    const strict = ["style-src 'self'", "img-src 'self'", "require-trusted-types-for 'script'", "trusted-types 'none'"];
    expect(policyOf(headers)).toEqual([...OWN_FILES_ONLY, ...strict].toSorted());
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
  });

  it("/docs runs its own scripts only, in no frame, and calls no other service", async () => {
    const { headers } = await get("/docs", {});
    const scalar = ["style-src 'self' 'unsafe-inline'", "img-src 'self' data:", "font-src 'self' data:"];
    expect(policyOf(headers)).toEqual([...OWN_FILES_ONLY, ...scalar].toSorted());
  });

  it.each([
    ["/console", ["/console", "/console/console.js"]],
    ["/pass", ["/pass", "/pass/pass.js"]],
    ["/docs", ["/docs/scalar.js"]],
  ])("browsers ask again for the files of %s, and its address has no slash at its end", async (path, files) => {
    for (const one of files) {
      expect((await get(one, {})).headers.get("cache-control")).toBe("no-cache");
    }
    const { status, headers } = await get(`${path}/`, {});
    expect([status, headers.get("location")]).toEqual([308, path]);
    // A page's own file would come without its policy.
    for (const none of [`${path}/nothing`, `${path}.html`, `${path}${path}.html`]) {
      expect(await get(none, {}), none).toMatchObject({ status: 404, text: '{"error":"NOT_FOUND"}' });
    }
  });
});

describe('CONSOLE = "off" and PASS = "off" in wrangler.toml (contract sections 19 and 27)', () => {
  it.each(["console", "pass"])('"off" removes the page /%s, which is there where nothing is set', async (name) => {
    const variable = name.toUpperCase();
    for (const path of [`/${name}`, `/${name}/`, `/${name}/${name}.js`, `/${name}/${name}.css`]) {
      const off = await get(path, { [variable]: "off" });
      expect(off).toMatchObject({ status: 404, text: '{"error":"NOT_FOUND"}' });
      expect((await get(path, { [variable]: "on" })).status).toBeLessThan(400);
    }
    const { status, headers } = await get(`/${name}`, { [variable]: undefined });
    expect([status, headers.get("referrer-policy")]).toEqual([200, "no-referrer"]);
  });
});

it("/docs links to the console only where the service has it", async () => {
  const on = await get("/docs", { CONSOLE: "on" });
  expect(on.text).toContain('href="/console"');
  const known = on.headers.get("etag") ?? "";
  expect((await get("/docs", { CONSOLE: "on" }, known)).status).toBe(304);
  const { status, text, headers } = await get("/docs", { CONSOLE: "off" }, known);
  expect([status, headers.has("etag")]).toEqual([200, false]);
  expect(text).not.toContain('href="/console"');
});

it.each<[string, () => Promise<Response>]>([
  ["responds with an error", async () => new Response("no", { status: 500 })],
  ["does not respond", () => Promise.reject(new Error("Network connection lost."))],
])(
  "a page is unavailable while the platform's store of assets %s, and no cache keeps that (contract section 6)",
  async (_, fetch) => {
    for (const path of ["/docs", "/openapi.json"]) {
      const { status, text, headers } = await get(path, { ASSETS: { fetch } });
      expect([status, text, headers.get("cache-control")]).toEqual([503, '{"error":"UNAVAILABLE"}', "no-store"]);
    }
  },
);

it("the page for visitors finds its files also behind a proxy that has it below a path (contract section 27)", async () => {
  const { text } = await get("/pass", {});
  const files = Array.from(text.matchAll(/(?:href|src)="([^"]*)"/g), ([, name = ""]) => name);
  expect(files.map((name) => new URL(name, "https://example.com/badges/pass").pathname)).toEqual(
    ["docs/icon.svg", "pass/pass.css", "pass/pass.js"].map((name) => `/badges/${name}`),
  );
});

const DEMO_APPLICATION_ID = 'app_0123456789"<b>';

describe("/docs and the demo application (contract section 11)", () => {
  it("/docs has the demo application's ID locally, escaped, and caches may not store that page", async () => {
    const { status, text, headers } = await get("/docs", { DEMO_APPLICATION_ID });
    expect(status).toBe(200);
    expect(text).toContain('data-application-id="app_0123456789&quot;<b>"');
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.has("etag")).toBe(false);
    expect(headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
  });

  it.each([
    ["in production, whatever is set", { ENVIRONMENT: "production", DEMO_APPLICATION_ID }],
    ["locally when none is set", {}],
  ])("/docs of a service without a demo application is the plain page %s", async (_, variables) => {
    const { status, text, headers } = await get("/docs", variables);
    expect(status).toBe(200);
    expect(text).toContain('<div id="reference">');
    expect(text).not.toMatch(/app_|data-application-id/);
    expect(headers.get("cache-control")).toBe("public, max-age=300");
    expect(headers.has("etag")).toBe(true);
  });
});
