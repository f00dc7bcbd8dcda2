import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { updateApplication } from "../../src/admin/application/update.ts";
import { addDoorSecret } from "../../src/admin/secret/doors.ts";
import { HOUR_MILLISECONDS } from "../../src/shared/time.ts";
import { HAS_CHROMIUM, launchChromium } from "./support/browser.ts";
import { startHarness } from "./support/harness.ts";

/** Milliseconds: a browser's work on a busy machine. */
const LIMIT = 240_000;

let browser: Browser;

beforeAll(async () => {
  if (HAS_CHROMIUM) browser = await launchChromium();
}, LIMIT);

afterAll(async () => {
  await browser?.close();
}, LIMIT);

describe.skipIf(!HAS_CHROMIUM)("doors that have not called for an hour (contract section 26)", () => {
  it("the view Today names doors that have stopped calling, but not those that never called", {
    timeout: LIMIT,
  }, async () => {
    const { origin, applicationId, applicationSecret, database, homes, submit } = await startHarness();
    await updateApplication(homes, submit, applicationId, { statusList: true });
    await addDoorSecret(database, applicationId, "Cellar");
    for (const name of ["Door 1", "Door 2", "Door 3", "Door 4", "Door 5"]) {
      const { applicationSecret: applicationsecret } = await addDoorSecret(database, applicationId, name);
      await fetch(`${origin}/v1/live`, { headers: { applicationid: applicationId, applicationsecret } });
    }
    const context = await browser.newContext({ locale: "en-GB" });
    context.setDefaultTimeout(30_000);
    const page = await context.newPage();
    await page.clock.install({ time: Date.now() + 2 * HOUR_MILLISECONDS });
    await page.goto(`${origin}/console`);
    await page.getByLabel("Application ID").fill(applicationId);
    await page.getByLabel("Secret", { exact: true }).fill(applicationSecret);
    await page.getByRole("button", { name: "Sign in" }).click();
    const link = page.getByRole("link", {
      name: "5 doors have not called for an hour: Door 1, Door 2, Door 3 and 2 others",
    });
    await link.waitFor();
    expect(await page.getByText("Cellar").count()).toBe(0);
    await link.click();
    await page.getByRole("heading", { name: "Doors", level: 1 }).waitFor();
    await page.getByRole("row").filter({ hasText: "Cellar" }).getByText("Has never called").waitFor();
    await context.close();
  });
});
