import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import worker from "../../src/worker/index.ts";
import { fromSomewhere } from "../support/address.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

const DEMO_APPLICATION_ID = 'app_0123456789"<b>';

async function getDocs(variables: object): Promise<{ html: string; headers: Headers }> {
  const execution = createExecutionContext();
  const request = fromSomewhere(new Request("https://badges.example/docs"));
  const response = await worker.fetch(request, { ...env, ...variables }, execution);
  const html = await response.text();
  await waitOnExecutionContext(execution);
  expect(response.status).toBe(200);
  return { html, headers: response.headers };
}

describe("/docs and the demo application (contract section 11)", () => {
  it("has the application's ID locally, escaped, and caches may not store that page", async () => {
    const { html, headers } = await getDocs({ DEMO_APPLICATION_ID });
    expect(html).toContain('data-application-id="app_0123456789&quot;<b>"');
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.has("etag")).toBe(false);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
  });

  it.each([
    ["in production, whatever is set", { ENVIRONMENT: "production", DEMO_APPLICATION_ID }],
    ["locally when none is set", {}],
  ])("is the plain page %s", async (_, variables) => {
    const { html, headers } = await getDocs(variables);
    expect(html).toContain('<div id="reference">');
    expect(html).not.toMatch(/app_|data-application-id/);
    expect(headers.get("cache-control")).toBe("public, max-age=300");
    expect(headers.has("etag")).toBe(true);
  });
});
