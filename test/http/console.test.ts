import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import worker from "../../src/worker/index.ts";
import { fromSomewhere } from "../support/address.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

async function get(path: string, variables: object): Promise<{ status: number; text: string }> {
  const execution = createExecutionContext();
  const request = fromSomewhere(new Request(`https://badges.example${path}`));
  const response = await worker.fetch(request, { ...env, ...variables }, execution);
  const text = await response.text();
  await waitOnExecutionContext(execution);
  return { status: response.status, text };
}

describe('CONSOLE = "off" in wrangler.toml (contract section 19)', () => {
  it.each(["/console", "/console/", "/console/console.js", "/console/console.css"])("removes %s", async (path) => {
    expect(await get(path, { CONSOLE: "off" })).toEqual({ status: 404, text: '{"error":"NOT_FOUND"}' });
    expect((await get(path, { CONSOLE: "on" })).status).toBeLessThan(400);
  });

  it("removes the link to it from the reference", async () => {
    expect((await get("/docs", { CONSOLE: "on" })).text).toContain('href="/console"');
    const { status, text } = await get("/docs", { CONSOLE: "off" });
    expect(status).toBe(200);
    expect(text).not.toContain("/console");
    expect(text).toContain('<div id="reference">');
  });

  it("leaves it where nothing is set, as in a configuration of release 1.0", async () => {
    expect((await get("/console", { CONSOLE: undefined })).status).toBe(200);
  });
});
