import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll } from "vitest";

/** Milliseconds: a browser's work on a busy machine. */
export const LIMIT = 240_000;

/** As few of Chromium's own requests as it lets itself be told, and no host but this computer. */
const CHROMIUM_FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-renderer-backgrounding",
  "--disable-backgrounding-occluded-windows",
  "--disable-background-timer-throttling",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/**
 * The browser for tests: `CHROMIUM_PATH`, else where Debian installs it, else `chromium` on the PATH.
 *
 * @returns null where there is none
 * @throws Error when `CHROMIUM_PATH` names none: somebody wants the tests to run
 */
function findChromium(): string | null {
  const wanted = process.env.CHROMIUM_PATH;
  if (wanted && !existsSync(wanted)) throw new Error(`CHROMIUM_PATH is ${wanted}, where nothing is`);
  const folders = process.env.PATH?.split(delimiter) ?? [];
  const candidates = ["/usr/bin/chromium", ...folders.map((folder) => join(folder, "chromium"))];
  return wanted || (candidates.find((path) => existsSync(path)) ?? null);
}

const executablePath = findChromium();
if (executablePath === null) {
  console.warn("SKIPPED: there is no Chromium on this machine, so no page is opened (CHROMIUM_PATH names one)");
}

export const HAS_CHROMIUM = executablePath !== null;

/**
 * A browser of the file's own, from the first context that a test opens until the file has ended, and what its pages did that no
 * page of this service may, from their first moment to their last.
 *
 * @param isExpected messages of the browser's console that are no complaints
 */
export function browserOfFile(isExpected: (message: string) => boolean = () => false) {
  /** URLs of other hosts, and errors and warnings in the browser's console. */
  const conduct: Record<"foreignRequests" | "complaints", string[]> = { foreignRequests: [], complaints: [] };
  let browser: Promise<Browser> | undefined;
  afterAll(async () => (await browser)?.close(), LIMIT);

  /** A context for pages of the service at this origin. */
  async function openContext(origin: string, options: BrowserContextOptions): Promise<BrowserContext> {
    // Playwright switches the cache off that keeps a page and its memory for Back.
    const ignoreDefaultArgs = ["--disable-back-forward-cache"];
    browser ??= chromium.launch({ executablePath: executablePath ?? "", args: CHROMIUM_FLAGS, ignoreDefaultArgs });
    const context = await (await browser).newContext({ locale: "en-GB", ...options });
    context.setDefaultTimeout(30_000);
    context.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(`${origin}/`) && !/^(data|blob|mailto):/.test(url)) conduct.foreignRequests.push(url);
    });
    context.on("console", (message) => {
      if (!["error", "warning"].includes(message.type()) || isExpected(message.text())) return;
      conduct.complaints.push(message.text());
    });
    context.on("weberror", (error) => conduct.complaints.push(String(error.error())));
    return context;
  }

  return { openContext, conduct };
}

/** What Chromium says of every response that is an error. */
export const isFailedLoad = (message: string): boolean => message.startsWith("Failed to load resource");

/** Fills in the form of the page /console, which is open. */
export async function signIn(page: Page, applicationId: string, applicationSecret: string): Promise<void> {
  await page.getByLabel("Application ID").fill(applicationId);
  await page.getByLabel("Secret", { exact: true }).fill(applicationSecret);
  await page.getByRole("button", { name: "Sign in" }).click();
}
