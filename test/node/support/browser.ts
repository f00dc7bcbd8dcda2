import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

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

/** @param ignoreDefaultArgs flags of Playwright's to leave out */
export const launchChromium = (ignoreDefaultArgs: string[] = []): Promise<Browser> =>
  chromium.launch({ executablePath: executablePath ?? "", args: CHROMIUM_FLAGS, ignoreDefaultArgs });

/** Fills in the form of the page /console, which is open. */
export async function signIn(page: Page, applicationId: string, applicationSecret: string): Promise<void> {
  await page.getByLabel("Application ID").fill(applicationId);
  await page.getByLabel("Secret", { exact: true }).fill(applicationSecret);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** What the pages of a context did that no page of this service may, from their first moment to their last. */
export interface Conduct {
  /** URLs of other hosts. */
  foreignRequests: string[];
  /** Errors and warnings in the browser's console. */
  complaints: string[];
}

/** @param isExpected messages of the console that are no complaints */
export function watch(
  context: BrowserContext,
  origin: string,
  { foreignRequests, complaints }: Conduct,
  isExpected: (message: string) => boolean = () => false,
): void {
  context.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !/^(data|blob|mailto):/.test(url)) foreignRequests.push(url);
  });
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !isExpected(message.text())) complaints.push(message.text());
  });
  context.on("weberror", (error) => complaints.push(String(error.error())));
}
