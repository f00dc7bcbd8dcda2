import { decodeJwt } from "jose";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { updateApplication } from "../../src/admin/application/update.ts";
import { addDoorSecret } from "../../src/admin/secret/doors.ts";
import { addConsoleSecret } from "../../src/admin/secret/secrets.ts";
import { DeviceClient, ServerClient } from "../../src/client/index.ts";
import { HOUR_MILLISECONDS } from "../../src/shared/time.ts";
import { until } from "../support/until.ts";
import { type Conduct, HAS_CHROMIUM, launchChromium, watch } from "./support/browser.ts";
import { type Harness, startHarness } from "./support/harness.ts";

/** Milliseconds: a browser's work on a busy machine. */
const LIMIT = 240_000;

const actor = { kind: "administrator", name: "Root" } as const;

let service: Harness;
let annsSecret: string;
let browser: Browser;
const stopped = new AbortController();
const conduct: Conduct = { foreignRequests: [], complaints: [] };

/** A door that has called, and calls again at once as often as it is allowed to. */
async function connect(name: string, { calls }: { calls: number }): Promise<void> {
  const { origin, applicationId, database } = service;
  const { applicationSecret } = await addDoorSecret(database, applicationId, name, actor);
  const headers = { applicationid: applicationId, applicationsecret: applicationSecret };
  const listen = async () => {
    for (let [call, have] = [0, 1]; call < calls; call++) {
      const response = await fetch(`${origin}/v1/live?have=${have}`, { headers, signal: stopped.signal });
      const { change } = decodeJwt(await response.text());
      have = Number(change);
    }
  };
  void listen().catch(() => {});
}

beforeAll(async () => {
  if (!HAS_CHROMIUM) return;
  service = await startHarness();
  const { homes, submit, database, applicationId } = service;
  await updateApplication(homes, submit, applicationId, { statusList: true });
  const ann = { name: "Ann", role: "operator" } as const;
  annsSecret = (await addConsoleSecret(database, applicationId, ann, actor)).applicationSecret;
  browser = await launchChromium();
}, LIMIT);

afterAll(async () => {
  stopped.abort();
  await browser?.close();
}, LIMIT);

/** Signs Ann in. @param ahead milliseconds by which her computer's clock is ahead */
async function signIn(width: number, ahead = 0): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext({ locale: "en-GB", viewport: { width, height: 900 } });
  context.setDefaultTimeout(30_000);
  watch(context, service.origin, conduct);
  const page = await context.newPage();
  if (ahead > 0) await page.clock.install({ time: Date.now() + ahead });
  await page.goto(`${service.origin}/console`);
  await page.getByLabel("Application ID").fill(service.applicationId);
  await page.getByLabel("Secret", { exact: true }).fill(annsSecret);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Today", level: 1 }).waitFor();
  return { context, page };
}

/** Until so many doors have called. */
async function untilConnected(count: number): Promise<void> {
  const { origin: baseUrl, applicationId, applicationSecret } = service;
  const server = new ServerClient({ baseUrl, applicationId, applicationSecret });
  await until(async () => {
    const doors = await Array.fromAsync(server.listDoors().doors());
    expect(doors.filter(({ seenAt }) => seenAt !== undefined)).toHaveLength(count);
  });
}

async function view(page: Page, hash: string, title: string): Promise<void> {
  await page.evaluate((to) => void location.assign(`#${to}`), hash);
  await page.getByRole("heading", { name: title, level: 1 }).waitFor();
}

async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env.SCREENSHOTS;
  if (folder) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}

describe.skipIf(!HAS_CHROMIUM)("connected doors at /console (contract section 26)", { timeout: LIMIT }, () => {
  it("are listed with whether each knows the last change; after a suspension, a count of those that do follows", async () => {
    const { origin: baseUrl, applicationId, database } = service;
    const phone = new DeviceClient({ baseUrl, applicationId, udid: "phone" });
    const { badgeId } = await phone.requestBadge({ userId: "kim" });
    const { context, page } = await signIn(1280);
    await view(page, "doors", "Doors");
    await page.getByText("No door has a secret yet.").waitFor();
    await addDoorSecret(database, applicationId, "Cellar", actor);
    for (let door = 1; door <= 7; door++) await connect(`Door ${door}`, { calls: 100 });
    // It is connected, and learns of the change, but nobody can see that it does until it calls again.
    await connect("Slow gate with a name that is rather long for a door", { calls: 1 });
    await untilConnected(8);
    await page.getByRole("button", { name: "Refresh" }).click();
    const row = (name: string) => page.getByRole("row").filter({ hasText: name });
    await row("Door 7").getByText("Yes", { exact: true }).waitFor();
    await row("Cellar").getByText("Has never called").waitFor();
    await picture(page, "doors");
    await view(page, `badge?id=${badgeId}`, "Badge");
    await page.getByRole("button", { name: "Suspend…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Suspend badge" }).click();
    await page.getByText("7 of 8 connected doors know.").waitFor();
    await picture(page, "suspended");
    await view(page, "doors", "Doors");
    await row("Slow gate").getByText("Not yet").waitFor();
    await row("Door 1").getByText("Yes", { exact: true }).waitFor();
    await picture(page, "doors-after");
    await context.close();
  });

  it("count to all of them when all know, also on a phone, where the list fits the screen", async () => {
    const { origin: baseUrl, applicationId } = service;
    const phone = new DeviceClient({ baseUrl, applicationId, udid: "other" });
    const { badgeId } = await phone.requestBadge({ userId: "lee" });
    const { context, page } = await signIn(375);
    await connect("Slow gate, repaired", { calls: 100 });
    await untilConnected(9);
    await view(page, "doors", "Doors");
    await page.getByText("Slow gate, repaired").waitFor();
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(await overflow()).toBeLessThanOrEqual(0);
    await picture(page, "doors-phone");
    await view(page, `badge?id=${badgeId}`, "Badge");
    await page.getByRole("button", { name: "Revoke…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke badge" }).click();
    await page.getByText(/(All|\d of) \d connected doors know\./).waitFor();
    await picture(page, "revoked-phone");
    const blocked = new DeviceClient({ baseUrl, applicationId, udid: "third" });
    await blocked.requestBadge({ userId: "sam" });
    await view(page, "person?user=sam", "sam");
    await page.getByRole("button", { name: "Block person…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Block person" }).click();
    await page.getByText(/sam is blocked; 1 badge revoked\. (All|\d of) \d connected doors know\./).waitFor();
    expect(await overflow()).toBeLessThanOrEqual(0);
    await context.close();
  });

  it("are named on Today when they have not called for an hour, and not those that never have", async () => {
    const { context, page } = await signIn(1280, 2 * HOUR_MILLISECONDS);
    const link = page.getByRole("link", {
      name: /doors have not called for an hour: Door 1, Door 2, Door 3 and \d others/,
    });
    await link.waitFor();
    expect(await page.getByText("Cellar").count()).toBe(0);
    await picture(page, "today");
    await link.click();
    await page.getByRole("heading", { name: "Doors", level: 1 }).waitFor();
    await page
      .getByRole("row")
      .filter({ hasText: "Door 1" })
      .getByText("Not connected: it goes by its lists")
      .waitFor();
    await context.close();
  });

  it("have pages that ask no other host, and complain of nothing", () => {
    expect(conduct).toEqual({ foreignRequests: [], complaints: [] });
  });
});
