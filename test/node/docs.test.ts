import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { byEffort } from "../support/effort.ts";
import { until } from "../support/until.ts";
import { faultsOf } from "./support/axe.ts";
import { CHROMIUM_FLAGS, findChromium } from "./support/chromium.ts";
import { type Harness, startHarness } from "./support/harness.ts";

/** Milliseconds: two browsers' worth of work on a busy machine. */
const LIMIT = 120_000;

/** On a busy machine Chromium sometimes stops drawing a page for good: then a test opens another one. */
const RETRIES = 3;

const DESKTOP = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };
type Size = typeof DESKTOP;
type Theme = "light" | "dark";
/** The list of routes: the only part of the page that a phone does not have. */
const SIDEBAR = "aside";

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

  it("returns the page, with a request ID and a policy that allows no other host", async () => {
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

  it("refers to no file of another host", async () => {
    const html = await (await get("/docs")).text();
    const files = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path]) => path ?? "");
    expect(files.length).toBeGreaterThan(3);
    for (const path of files) {
      expect(path).toMatch(/^\/[^/]/);
      expect((await get(path)).status, path).toBe(200);
    }
  });

  it("redirects from /docs/ to the page", async () => {
    const { url, status } = await get("/docs/");
    expect({ url, status }).toEqual({ url: `${service.origin}/docs`, status: 200 });
  });

  it("responds to unknown files and other methods as to every path", async () => {
    for (const path of ["/docs/nothing", "/docs/docs.html", "/docs.html", "/docs/scalar.js/"]) {
      const response = await get(path, { redirect: "manual" });
      expect([response.status, await response.json()], path).toEqual([404, { error: "NOT_FOUND" }]);
    }
    const posted = await get("/docs/scalar.js", { method: "POST" });
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });
});

describe.skipIf(executablePath === null)(
  "/docs in a browser (contract section 11)",
  { timeout: LIMIT, retry: RETRIES },
  () => {
    let browser: Browser;
    /** Of all pages, from their first moment to their last. */
    const foreignRequests: string[] = [];
    const complaints: string[] = [];

    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: executablePath ?? "", args: CHROMIUM_FLAGS });
    }, LIMIT);

    afterAll(async () => {
      await browser?.close();
    }, LIMIT);

    async function open(viewport: Size, colorScheme: Theme): Promise<Page> {
      const context = await browser.newContext({ viewport, colorScheme });
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

    /**
     * By default one page, which follows the theme and the size: to load it takes seconds. `npm run test:full` loads one
     * of each size.
     */
    const pages = new Map<Size, Page>();
    const loadedFor = byEffort(
      () => DESKTOP,
      (viewport: Size) => viewport,
    );
    /** The badge that a page has got: it is one device. */
    const badges = new WeakMap<Page, string>();

    /** The page for the tests of a group. A test that is retried gets another one. */
    function pageOfGroup(viewport: Size, theme: Theme): () => Page {
      let page: Page | undefined;
      beforeEach(async ({ task }) => {
        page = pages.get(loadedFor(viewport));
        if (page !== undefined && (task.result?.retryCount ?? 0) > 0) {
          await page.context().close();
          page = undefined;
        }
        page ??= await open(viewport, theme);
        pages.set(loadedFor(viewport), page);
        await page.setViewportSize(viewport);
        await page.emulateMedia({ colorScheme: theme });
        await page.locator(`body.${theme}-mode`).waitFor();
      }, LIMIT);
      return () => {
        if (page === undefined) throw new Error("only a test has a page");
        return page;
      };
    }

    /** Opens the form of a call, as a reader does. */
    async function openForm(page: Page, anchor: string, summary: string) {
      await page.goto(`${service.origin}/docs#${anchor}`);
      const route = page.getByRole("region", { name: summary, exact: true });
      await page.bringToFront();
      const button = route.getByRole("button", { name: /^Test Request/ });
      await button.click();
      return { route, button, dialog: page.getByRole("dialog") };
    }

    const LOOKS = [
      ["light", "desktop", DESKTOP, false],
      ["dark", "phone", PHONE, byEffort(true, false)],
    ] as const;

    describe("dark on a desktop", () => {
      const pageHere = pageOfGroup(DESKTOP, "dark");

      // Each theme and each width is looked at whole below; this is what only the two together show. Before a form is
      // opened: it has a sidebar of its own.
      it("has no fault that axe-core finds in the sidebar", async () => {
        const page = pageHere();
        await page.locator(SIDEBAR).getByText("Get a badge number").waitFor();
        expect(await faultsOf(page, SIDEBAR)).toEqual([]);
      });

      it("shows each credential once, by its own name, and no value that Scalar made up", async () => {
        const page = pageHere();
        const { dialog } = await openForm(page, "tag/badges/GET/v1/badges", "Page all badges of the application");
        const headers = await dialog.getByRole("combobox", { name: "Key" }).allInnerTexts();
        expect(headers.filter((name) => /^(application|udid)/.test(name))).toEqual([
          "applicationid",
          "applicationsecret",
        ]);
        const html = await page.content();
        expect(html).not.toMatch(/YOUR_SECRET_TOKEN|QUxMIFlPVVI/);
        expect(html).not.toContain(service.applicationSecret);
        await page.keyboard.press("Escape");
      });

      it("finds the keys of a door when somebody searches for: verify signature", async () => {
        const page = pageHere();
        await page
          .locator(SIDEBAR)
          .getByRole("button", { name: /search/i })
          .first()
          .click();
        await page.keyboard.type("verify signature");
        await page
          .getByRole("option", { name: /Public keys to verify signatures/ })
          .first()
          .waitFor();
        await page.keyboard.press("Escape");
      });
    });

    describe.each(LOOKS)("%s on a %s", (theme, _, viewport) => {
      const pageHere = pageOfGroup(viewport, theme);

      it("gets a badge of the demo application when a call is tried unchanged, in a form without fault", async () => {
        const page = pageHere();
        const { route, button, dialog } = await openForm(page, "tag/devices/POST/v1/badge", "Get a badge number");
        const answered = page.waitForResponse(`${service.origin}/v1/badge`);
        await dialog.getByRole("button", { name: "Send" }).first().click();
        const answer = await answered;
        const { badgeId } = await answer.json();
        const before = badges.get(page);
        badges.set(page, badgeId);
        expect([answer.status(), badgeId]).toEqual(before === undefined ? [201, expect.any(String)] : [200, before]);
        await dialog.getByText(before === undefined ? "201 Created" : "200 OK").waitFor();
        await dialog.getByText(`"${badgeId}"`).waitFor();
        expect(await widthOf(page)).toBe(viewport.width);
        expect(await faultsOf(page, "[role=dialog]")).toEqual([]);
        await page.keyboard.press("Escape");
        await until(async () =>
          expect(await button.evaluate((element) => element === document.activeElement)).toBe(true),
        );
        expect(await route.innerText()).toContain(`applicationid: ${service.applicationId}`);
      });
    });

    // After the forms: on a page that is drawn whole they take twice as long.
    describe.each(LOOKS)("%s on a %s, read to its end", (theme, _, viewport, isTriedAlone) => {
      const pageHere = pageOfGroup(viewport, theme);

      // To read a page to its end takes as long as all the other tests of it.
      it.skipIf(isTriedAlone)(
        "shows every route and webhook of the document, and its guide, and fits the screen (a phone has 390 px)",
        async () => {
          const page = pageHere();
          const { headings, widest } = await readAll(page);
          expect(await page.title()).toContain("Badge Distribution Service");
          const { paths, webhooks } = openApiDocument(Date.now());
          const routes = Object.values({ ...paths, ...webhooks }).flatMap((item) => Object.values(item));
          for (const { summary } of routes) expect(headings).toContain(summary);
          for (const chapter of ["Errors", "Limits", "Versions", "Decisions"]) expect(headings).toContain(chapter);
          expect(widest).toBe(viewport.width);
        },
      );

      // A page of some 100,000 elements.
      it.runIf(byEffort(false, true))("has no fault that axe-core finds", async () => {
        const page = pageHere();
        await readAll(page);
        expect(await faultsOf(page)).toEqual([]);
      });
    });

    describe("light on a desktop, after all that", () => {
      const pageHere = pageOfGroup(DESKTOP, "light");

      it("has done all that without console errors and without requests to another host", () => {
        expect(complaints).toEqual([]);
        expect(foreignRequests).toEqual([]);
      });

      it("cannot send requests to another host, whatever script runs in it", async () => {
        const refused = await pageHere().evaluate(async () => {
          const violations: string[] = [];
          document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
          await fetch("https://example.com/").catch(() => undefined);
          await new Promise((resolve) => setTimeout(resolve, 100));
          return violations;
        });
        expect(refused).toEqual(["connect-src"]);
      });
    });
  },
);

const widthOf = (page: Page): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth);

/** Enough for every screen to be drawn in few steps. */
const READING_HEIGHT = 4000;

/** What a reader finds who goes down the whole page. */
interface Reading {
  headings: string[];
  /** Pixels: the widest that the page became. */
  widest: number;
}

const readings = new WeakMap<Page, Reading>();

/** Goes down a page screen by screen, because what is not seen is not drawn. Once is enough: what is drawn stays. */
async function readAll(page: Page): Promise<Reading> {
  const before = readings.get(page);
  if (before !== undefined) return before;
  const size = page.viewportSize() ?? DESKTOP;
  // A page in the background draws no frames.
  await page.bringToFront();
  await page.setViewportSize({ width: size.width, height: READING_HEIGHT });
  const reading = await page.evaluate(async () => {
    const { documentElement: root } = document;
    const headings = new Set<string>();
    let widest = 0;
    for (let top = 0; top < root.scrollHeight; top += window.innerHeight - 100) {
      window.scrollTo(0, top);
      await Promise.race([
        new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))),
        new Promise((resolve) => setTimeout(resolve, 1000)),
      ]);
      widest = Math.max(widest, root.scrollWidth);
      for (const heading of document.querySelectorAll("h1, h2, h3, h4"))
        headings.add(heading.textContent?.trim() ?? "");
    }
    return { headings: [...headings], widest };
  });
  await page.setViewportSize(size);
  readings.set(page, reading);
  return reading;
}
