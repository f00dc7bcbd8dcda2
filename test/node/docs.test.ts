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
type Look = readonly ["light" | "dark", string, typeof DESKTOP];
const DARK_PHONE: Look = ["dark", "phone", PHONE];
const LOOKS: readonly Look[] = [["light", "desktop", DESKTOP], DARK_PHONE];
/** The list of routes: the only part of the page that a phone does not have. */
const SIDEBAR = "aside";

describe.skipIf(!HAS_CHROMIUM)("/docs in a browser (contract section 11)", { timeout: LIMIT, retry: RETRIES }, () => {
  const { openContext, conduct } = browserOfFile();
  let service: Harness;
  /** One for all tests, since to load it takes seconds. A test that is retried gets another one. */
  let opened: Page | undefined;

  beforeAll(async () => {
    service = await startHarness();
  }, LIMIT);

  beforeEach(async ({ task }) => {
    if ((task.result?.retryCount ?? 0) === 0) return;
    await opened?.context().close();
    opened = undefined;
  }, LIMIT);

  /** The page in this theme and size. */
  async function show(colorScheme: Look[0], viewport: Look[2]): Promise<Page> {
    if (opened === undefined) {
      const context = await openContext(service.origin, { viewport, colorScheme });
      context.setDefaultTimeout(LIMIT);
      opened = await context.newPage();
      await opened.goto(`${service.origin}/docs`);
      await opened.getByRole("heading", { name: "Badge Distribution Service", level: 1 }).waitFor();
    }
    await opened.setViewportSize(viewport);
    await opened.emulateMedia({ colorScheme });
    await opened.locator(`body.${colorScheme}-mode`).waitFor();
    return opened;
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

  const { paths, webhooks } = openApiDocument(Date.now());
  const routes = Object.values({ ...paths, ...webhooks }).flatMap((item) => Object.values(item));
  const summaries = routes.map(({ summary }) => summary);
  const chapters = ["Errors", "Limits", "Versions", "Decisions"];

  // Before a form is opened: it has a sidebar of its own.
  it("/docs lists every route and webhook and has the guide, without an axe-core violation", async () => {
    const page = await show("light", DESKTOP);
    const sidebar = page.locator(SIDEBAR).first();
    await sidebar.getByText("Get a badge number").waitFor();
    expect(await page.title()).toContain("Badge Distribution Service");
    const listed = (await sidebar.innerText()).split("\n");
    expect(summaries.filter((summary) => !listed.includes(summary))).toEqual([]);
    // A search for these words finds the key set.
    expect(listed).toEqual(expect.arrayContaining([expect.stringMatching(/Public keys to verify signatures/)]));
    for (const name of chapters) await page.getByRole("heading", { name, exact: true }).first().waitFor();
    for (const theme of byEffort(["light"] as const, ["light", "dark"] as const)) {
      expect(await faultsOf(await show(theme, DESKTOP), SIDEBAR)).toEqual([]);
    }
  });

  it("/docs shows each credential once, by its own name, and no value that Scalar made up", async () => {
    const page = await show("light", DESKTOP);
    const { dialog } = await openForm(page, "tag/badges/GET/v1/badges", "List all badges of the application");
    const headers = await dialog.getByRole("combobox", { name: "Key" }).allInnerTexts();
    const credentials = headers.filter((name) => /^(application|udid)/.test(name));
    expect(credentials).toEqual(["applicationid", "applicationsecret"]);
    const html = await page.content();
    expect(html).not.toMatch(/YOUR_SECRET_TOKEN|QUxMIFlPVVI/);
    expect(html).not.toContain(service.demo.applicationSecret);
    await page.keyboard.press("Escape");
  });

  // By default the other theme and width than above.
  it.each(byEffort([DARK_PHONE], LOOKS))(
    "trying a call unchanged in /docs gets a badge of the demo application, without an axe-core violation, %s on a %s",
    async (theme, _, viewport) => {
      const page = await show(theme, viewport);
      const { route, button, dialog } = await openForm(page, "tag/devices/POST/v1/badge", "Get a badge number");
      const answered = page.waitForResponse(`${service.origin}/v1/badge`);
      await dialog.getByRole("button", { name: "Send" }).first().click();
      const answer = await answered;
      const { badgeId } = await answer.json();
      expect([answer.status(), badgeId]).toEqual([201, expect.any(String)]);
      await dialog.getByText("201 Created").waitFor();
      await dialog.getByText(`"${badgeId}"`).waitFor();
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(viewport.width);
      expect(await faultsOf(page, "[role=dialog]")).toEqual([]);
      await page.keyboard.press("Escape");
      await until(async () =>
        expect(await button.evaluate((element) => element === document.activeElement)).toBe(true),
      );
      expect(await route.innerText()).toContain(`applicationid: ${service.demo.applicationId}`);
    },
  );

  // After the forms: on a page that is drawn whole they take twice as long. To read it to its end, some 100,000
  // elements, takes as long as all the other tests of it.
  it.runIf(byEffort(false, true)).each(LOOKS)(
    "/docs fits the screen (390 px on a phone) with every route, webhook and the guide, without an axe-core violation, %s on a %s",
    async (theme, _, viewport) => {
      const page = await show(theme, viewport);
      const { headings, widest } = await readAll(page);
      expect(headings).toEqual(expect.arrayContaining([...summaries, ...chapters]));
      expect(widest).toBe(viewport.width);
      expect(await faultsOf(page)).toEqual([]);
    },
  );

  it("/docs causes no console errors and no requests to another host", () => {
    expect(conduct).toEqual({ foreignRequests: [], complaints: [] });
  });
});

/** Enough for every screen to be drawn in few steps. */
const READING_HEIGHT = 4000;

/**
 * Goes down a page screen by screen, because what is not seen is not drawn.
 *
 * @returns its headings, and the pixels of the widest that it became
 */
async function readAll(page: Page): Promise<{ headings: string[]; widest: number }> {
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
