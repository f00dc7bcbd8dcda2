import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { CHROMIUM_FLAGS, findChromium } from "./support/chromium.ts";
import { type Harness, startHarness } from "./support/harness.ts";

/** Milliseconds: two browsers' worth of work on a busy machine. */
const LIMIT = 240_000;

const executablePath = findChromium();
if (executablePath === null) {
  console.warn("SKIPPED: there is no Chromium on this machine, so /docs is not looked at (CHROMIUM_PATH names one)");
}

let service: Harness;

beforeAll(async () => {
  vi.stubEnv("WRANGLER_LOG", "error");
  service = await startHarness();
}, LIMIT);

afterAll(async () => {
  await service?.close();
});

describe("/docs over HTTP (contract sections 6 and 11)", () => {
  const get = (path: string, init: RequestInit = {}) => fetch(`${service.origin}${path}`, init);

  it("answers the page, with a request ID and a policy that allows no other host", async () => {
    for (const method of ["GET", "HEAD"]) {
      const { status, headers } = await get("/docs", { method, redirect: "manual" });
      expect(status).toBe(200);
      expect(headers.get("content-type")).toMatch(/^text\/html/);
      expect(headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
      const policy = headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self';");
      expect(policy).not.toMatch(/https?:|\*/);
    }
  });

  it("names in the page no file of another host", async () => {
    const html = await (await get("/docs")).text();
    const files = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path]) => path ?? "");
    expect(files.length).toBeGreaterThan(3);
    for (const path of files) {
      expect(path).toMatch(/^\/[^/]/);
      expect((await get(path)).status, path).toBe(200);
    }
  });

  it("leads from /docs/ to the page", async () => {
    const { url, status } = await get("/docs/");
    expect({ url, status }).toEqual({ url: `${service.origin}/docs`, status: 200 });
  });

  it("answers what is not there, and other methods, like every path", async () => {
    for (const path of ["/docs/nothing", "/docs/docs.html", "/docs.html", "/docs/scalar.js/"]) {
      const response = await get(path, { redirect: "manual" });
      expect([response.status, await response.json()], path).toEqual([404, { error: "NOT_FOUND" }]);
    }
    const posted = await get("/docs/scalar.js", { method: "POST" });
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });
});

describe.skipIf(executablePath === null)("/docs in a browser (contract section 11)", { timeout: LIMIT }, () => {
  let browser: Browser;
  let desktop: Page;
  let phone: Page;
  /** The whole page, as it is on the phone. */
  let reading: { headings: string[]; widest: number };
  /** Of both pages, from their first moment to their last. */
  const foreignRequests: string[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: executablePath ?? "", args: CHROMIUM_FLAGS });
    desktop = await open({ width: 1440, height: 900 });
    phone = await open({ width: 390, height: 844 });
    reading = await readAll(phone);
  }, LIMIT);

  afterAll(async () => {
    await browser?.close();
  }, LIMIT);

  async function open(viewport: { width: number; height: number }): Promise<Page> {
    const context = await browser.newContext({ viewport });
    context.setDefaultTimeout(LIMIT);
    context.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(`${service.origin}/`) && !/^(data|blob):/.test(url)) foreignRequests.push(url);
    });
    context.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    context.on("weberror", (error) => complaints.push(String(error.error())));
    const page = await context.newPage();
    await page.goto(`${service.origin}/docs`);
    await page.getByRole("heading", { name: "Badge Distribution Service", level: 1 }).waitFor();
    return page;
  }

  it("shows every route and webhook of the document, and its guide", async () => {
    expect(await desktop.title()).toContain("Badge Distribution Service");
    const { paths, webhooks } = openApiDocument(Date.now());
    const routes = Object.values({ ...paths, ...webhooks }).flatMap((item) => Object.values(item));
    for (const { summary } of routes) expect(reading.headings).toContain(summary);
    for (const chapter of ["Errors", "Limits", "Versions", "Decisions"]) expect(reading.headings).toContain(chapter);
  });

  it("fits a phone of 390 px from top to bottom", () => {
    expect(reading.widest).toBe(390);
  });

  it("gets a badge of the running service when a call is tried, on a desktop and on a phone", async () => {
    for (const page of [desktop, phone]) {
      await page.goto(`${service.origin}/docs#tag/devices/POST/v1/badge`);
      const route = page.getByRole("region", { name: "Get a badge number" });
      await route.getByRole("button", { name: /^Test Request/ }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Value", { exact: true }).first().fill(service.applicationId);
      const answered = page.waitForResponse(`${service.origin}/v1/badge`);
      await dialog.getByRole("button", { name: "Send" }).first().click();
      const answer = await answered;
      expect(answer.status()).toBe(201);
      const { badgeId } = await answer.json();
      await dialog.getByText("201 Created").waitFor();
      await dialog.getByText(`"${badgeId}"`).waitFor();
      expect(await widthOf(page)).toBe(page.viewportSize()?.width);
    }
  });

  it("does all that without a complaint in the console and without asking another host", () => {
    expect(complaints).toEqual([]);
    expect(foreignRequests).toEqual([]);
  });

  it("cannot ask another host, whatever script runs in it", async () => {
    const refused = await desktop.evaluate(async () => {
      const violations: string[] = [];
      document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
      await fetch("https://example.com/").catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 100));
      return violations;
    });
    expect(refused).toEqual(["connect-src"]);
  });
});

const widthOf = (page: Page): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth);

/** Goes down the page screen by screen, because what is not seen is not drawn. */
function readAll(page: Page): Promise<{ headings: string[]; widest: number }> {
  return page.evaluate(async () => {
    const { documentElement: root } = document;
    const headings = new Set<string>();
    let widest = 0;
    for (let top = 0; top < root.scrollHeight; top += window.innerHeight - 100) {
      window.scrollTo(0, top);
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      widest = Math.max(widest, root.scrollWidth);
      for (const heading of document.querySelectorAll("h1, h2, h3, h4"))
        headings.add(heading.textContent?.trim() ?? "");
    }
    return { headings: [...headings], widest };
  });
}
