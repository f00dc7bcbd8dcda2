import type { Page } from "playwright-core";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { byEffort } from "../support/effort.ts";
import { until } from "../support/until.ts";
import { faultsOf } from "./support/axe.ts";
import { browserOfFile, HAS_CHROMIUM } from "./support/browser.ts";
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

let service: Harness;

beforeAll(async () => {
  service = await startHarness();
}, LIMIT);

describe.skipIf(!HAS_CHROMIUM)("/docs in a browser (contract section 11)", { timeout: LIMIT, retry: RETRIES }, () => {
  const { openContext, conduct } = browserOfFile();

  async function open(viewport: Size, colorScheme: Theme): Promise<Page> {
    const context = await openContext(service.origin, { viewport, colorScheme });
    context.setDefaultTimeout(LIMIT);
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

  type Look = readonly [Theme, string, Size];
  const DARK_PHONE: Look = ["dark", "phone", PHONE];
  const LOOKS: readonly Look[] = [["light", "desktop", DESKTOP], DARK_PHONE];
  const { paths, webhooks } = openApiDocument(Date.now());
  const routes = Object.values({ ...paths, ...webhooks }).flatMap((item) => Object.values(item));
  const summaries = routes.map(({ summary }) => summary);
  const chapters = ["Errors", "Limits", "Versions", "Decisions"];

  // Before a form is opened: it has a sidebar of its own.
  describe.each(byEffort(["light"] as const, ["light", "dark"] as const))("%s on a desktop", (theme) => {
    const pageHere = pageOfGroup(DESKTOP, theme);

    it("/docs lists every route and webhook and has the guide, without an axe-core violation", async () => {
      const page = pageHere();
      const sidebar = page.locator(SIDEBAR).first();
      await sidebar.getByText("Get a badge number").waitFor();
      expect(await page.title()).toContain("Badge Distribution Service");
      const listed = (await sidebar.innerText()).split("\n");
      expect(summaries.filter((summary) => !listed.includes(summary))).toEqual([]);
      // A search for these words finds the key set.
      expect(listed).toEqual(expect.arrayContaining([expect.stringMatching(/Public keys to verify signatures/)]));
      for (const name of chapters) await page.getByRole("heading", { name, exact: true }).first().waitFor();
      expect(await faultsOf(page, SIDEBAR)).toEqual([]);
    });

    it("/docs shows each credential once, by its own name, and no value that Scalar made up", async () => {
      const page = pageHere();
      const { dialog } = await openForm(page, "tag/badges/GET/v1/badges", "List all badges of the application");
      const headers = await dialog.getByRole("combobox", { name: "Key" }).allInnerTexts();
      expect(headers.filter((name) => /^(application|udid)/.test(name))).toEqual([
        "applicationid",
        "applicationsecret",
      ]);
      const html = await page.content();
      expect(html).not.toMatch(/YOUR_SECRET_TOKEN|QUxMIFlPVVI/);
      expect(html).not.toContain(service.demo.applicationSecret);
      await page.keyboard.press("Escape");
    });
  });

  // By default the other theme and width than above.
  describe.each(byEffort([DARK_PHONE], LOOKS))("%s on a %s", (theme, _, viewport) => {
    const pageHere = pageOfGroup(viewport, theme);

    it("trying a call unchanged in /docs gets a badge of the demo application, without an axe-core violation", async () => {
      const page = pageHere();
      const { route, button, dialog } = await openForm(page, "tag/devices/POST/v1/badge", "Get a badge number");
      const answered = page.waitForResponse(`${service.origin}/v1/badge`);
      await dialog.getByRole("button", { name: "Send" }).first().click();
      const answer = await answered;
      const { badgeId } = await answer.json();
      expect([answer.status(), badgeId]).toEqual([201, expect.any(String)]);
      await dialog.getByText("201 Created").waitFor();
      await dialog.getByText(`"${badgeId}"`).waitFor();
      expect(await widthOf(page)).toBe(viewport.width);
      expect(await faultsOf(page, "[role=dialog]")).toEqual([]);
      await page.keyboard.press("Escape");
      await until(async () =>
        expect(await button.evaluate((element) => element === document.activeElement)).toBe(true),
      );
      expect(await route.innerText()).toContain(`applicationid: ${service.demo.applicationId}`);
    });
  });

  // After the forms: on a page that is drawn whole they take twice as long. To read it to its end, some 100,000
  // elements, takes as long as all the other tests of it.
  describe.runIf(byEffort(false, true)).each(LOOKS)("%s on a %s, read to its end", (theme, _, viewport) => {
    const pageHere = pageOfGroup(viewport, theme);

    it("/docs fits the screen (390 px on a phone) with every route, webhook and the guide, without an axe-core violation", async () => {
      const page = pageHere();
      const { headings, widest } = await readAll(page);
      expect(headings).toEqual(expect.arrayContaining([...summaries, ...chapters]));
      expect(widest).toBe(viewport.width);
      expect(await faultsOf(page)).toEqual([]);
    });
  });

  describe("light on a desktop, after all that", () => {
    const pageHere = pageOfGroup(DESKTOP, "light");

    it("/docs causes no console errors and no requests to another host", () => {
      expect(conduct).toEqual({ foreignRequests: [], complaints: [] });
    });

    it("scripts in /docs cannot send requests to another host", async () => {
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
});

const widthOf = (page: Page): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth);

/** Enough for every screen to be drawn in few steps. */
const READING_HEIGHT = 4000;

/** What a reader finds who goes down the whole page. */
interface Reading {
  headings: string[];
  /** Pixels: the widest that the page became. */
  widest: number;
}

/** Goes down a page screen by screen, because what is not seen is not drawn. */
async function readAll(page: Page): Promise<Reading> {
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
  return reading;
}
