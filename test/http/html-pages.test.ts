import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import worker from "../../src/worker/index.ts";
import { fromSomewhere } from "../support/address.ts";

/** A page, as the Worker has it with some of its variables replaced. */
async function get(path: string, variables: object): Promise<{ status: number; text: string; headers: Headers }> {
  const execution = createExecutionContext();
  const request = fromSomewhere(new Request(`https://badges.example${path}`));
  const response = await worker.fetch(request, { ...env, ...variables }, execution);
  const text = await response.text();
  await waitOnExecutionContext(execution);
  return { status: response.status, text, headers: response.headers };
}

describe('CONSOLE = "off" in wrangler.toml (contract section 19)', () => {
  it.each(["/console", "/console/", "/console/console.js", "/console/console.css"])(
    'CONSOLE = "off" removes %s',
    async (path) => {
      expect(await get(path, { CONSOLE: "off" })).toMatchObject({ status: 404, text: '{"error":"NOT_FOUND"}' });
      expect((await get(path, { CONSOLE: "on" })).status).toBeLessThan(400);
    },
  );

  it('CONSOLE = "off" removes the link to the console from the reference', async () => {
    expect((await get("/docs", { CONSOLE: "on" })).text).toContain('href="/console"');
    const { status, text } = await get("/docs", { CONSOLE: "off" });
    expect(status).toBe(200);
    expect(text).not.toContain("/console");
    expect(text).toContain('<div id="reference">');
  });

  it("the console is there where CONSOLE is not set, as in a configuration of release 1.0", async () => {
    expect((await get("/console", { CONSOLE: undefined })).status).toBe(200);
  });
});

describe('PASS = "off" in wrangler.toml (contract section 27)', () => {
  it.each(["/pass", "/pass/", "/pass/pass.js", "/pass/pass.css"])('PASS = "off" removes %s', async (path) => {
    expect(await get(path, { PASS: "off" })).toMatchObject({ status: 404, text: '{"error":"NOT_FOUND"}' });
    expect((await get(path, { PASS: "on" })).status).toBeLessThan(400);
  });

  it("the page /pass is there where PASS is not set, with a policy that lets no other host in", async () => {
    const { status, headers } = await get("/pass", { PASS: undefined });
    expect(status).toBe(200);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("content-security-policy")).not.toMatch(/https?:|\*|unsafe/);
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  });
});

const DEMO_APPLICATION_ID = 'app_0123456789"<b>';

describe("/docs and the demo application (contract section 11)", () => {
  it("/docs/ redirects to /docs for good", async () => {
    const { status, headers } = await get("/docs/", {});
    expect([status, headers.get("location")]).toEqual([308, "/docs"]);
  });

  it("/docs has the demo application's ID locally, escaped, and caches may not store that page", async () => {
    const { status, text, headers } = await get("/docs", { DEMO_APPLICATION_ID });
    expect(status).toBe(200);
    expect(text).toContain('data-application-id="app_0123456789&quot;<b>"');
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.has("etag")).toBe(false);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
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
