import type { Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { updateApplication } from "../../src/admin/application/update.ts";
import { addDoorSecret } from "../../src/admin/secret/doors.ts";
import { HOUR_MILLISECONDS } from "../../src/shared/time.ts";
import { until } from "../support/until.ts";
import { faultsOf } from "./support/axe.ts";
import { browserOfFile, HAS_CHROMIUM, LIMIT } from "./support/browser.ts";
import { consoleSteps, openConsole } from "./support/console-page.ts";
import { type Harness, startHarness } from "./support/harness.ts";

const { openContext, conduct } = browserOfFile();
let service: Harness;
let page: Page;
/** Secrets of doors, by their names. */
const secrets = new Map<string, string>();

beforeAll(async () => {
  service = await startHarness();
  const { applicationId, applicationSecret, homes, submit } = service;
  await updateApplication(homes, submit, applicationId, { statusList: true });
  for (const name of ["North", "South"]) await addDoor(name);
  if (!HAS_CHROMIUM) return;
  page = await (await openContext(service.origin, { viewport: { width: 390, height: 844 } })).newPage();
  await openConsole(page, service, applicationSecret);
}, LIMIT);

async function addDoor(name: string): Promise<void> {
  const { applicationSecret } = await addDoorSecret(service.database, service.applicationId, name);
  secrets.set(name, applicationSecret);
}

/** A door's call, which says what it has. @returns what it has after the response */
async function call(name: string, have: number): Promise<number> {
  const headers = { applicationid: service.applicationId, applicationsecret: secrets.get(name) ?? "" };
  const response = await fetch(`${service.origin}/v1/live?have=${have}`, { headers });
  const [, payload = ""] = (await response.text()).split(".");
  return Number(JSON.parse(Buffer.from(payload, "base64url").toString()).change);
}

const { view, row, dialog, press, confirm, notice } = consoleSteps(() => page);

describe.skipIf(!HAS_CHROMIUM)("connected doors at /console (contract section 26)", { timeout: LIMIT }, () => {
  /** What the door North has. */
  let have = 0;

  it("the dialog that ends a badge says how many doors are connected", async () => {
    const id = await service.issue("alice");
    await view(`badge?id=${id}`, "Badge");
    const says = async (text: string) => {
      await press("Suspend…");
      await dialog().getByText(text).waitFor();
      await confirm("Cancel");
    };
    await says("No door is connected: those that read the status list refuse it within two minutes.");
    have = await call("North", 0);
    await says("1 of 2 doors are connected: they refuse it within two seconds");
    await view("person?user=alice", "alice");
    await press("Block…");
    await dialog().getByText("1 of 2 doors are connected").waitFor();
    await confirm("Cancel");
  });

  it.each([
    ["suspending", "Suspend", "Suspend badge"],
    ["revoking", "Revoke", "Revoke badge"],
  ])("after %s, the console counts the doors that have the change, until all have it", async (_, label, action) => {
    const id = await service.issue(label);
    have = await call("North", 0);
    await view(`badge?id=${id}`, "Badge");
    await press(`${label}…`);
    await confirm(action);
    await notice("0 of 1 connected door knows.");
    have = await call("North", have);
    // The next call says that it has the change. It is held.
    void call("North", have).catch(() => undefined);
    await notice("The connected door knows.");
  });

  it("the console counts doors after a change of many badges and after a block, too", async () => {
    const numbers = [await service.issue("many-1"), await service.issue("many-2")];
    await view("badges?q=many", "Badges");
    for (const number of numbers) await page.getByLabel(`Select badge ${number}`).check();
    await press("Suspend…");
    await dialog().getByText("1 of 2 doors are connected").waitFor();
    await confirm("Suspend 2 badges");
    await notice(/connected door knows/);
    await view("person?user=many-1", "many-1");
    await press("Block…");
    await confirm("Block person");
    await notice(/connected door knows/);
  });

  it("the page Doors says which doors know the last change, without an axe-core violation", async () => {
    await view("doors", "Doors");
    await row("North").waitFor();
    await row("South").getByText("Has never called").waitFor();
    await until(async () => {
      void call("North", await call("North", 0)).catch(() => undefined);
      await press("Refresh");
      expect(await row("North").innerText()).toContain("Yes");
    });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await faultsOf(page)).toEqual([]);
    }
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  });

  it("the view Today names doors that have not called for an hour, but not those that never called", async () => {
    for (const name of ["Door 1", "Door 2", "Door 3", "Door 4"]) {
      await addDoor(name);
      await call(name, 0);
    }
    const later = await (await openContext(service.origin, {})).newPage();
    await later.clock.install({ time: Date.now() + 2 * HOUR_MILLISECONDS });
    await openConsole(later, service, service.applicationSecret);
    const text = "5 doors have not called for an hour: Door 1, Door 2, Door 3 and 2 others";
    const link = later.getByRole("link", { name: text });
    await link.waitFor();
    expect(await later.getByText("South").count()).toBe(0);
    await link.click();
    await later.getByRole("heading", { name: "Doors", level: 1 }).waitFor();
  });

  it("the pages with doors cause no message in the browser's console and no request to another host", () => {
    expect(conduct).toEqual({ foreignRequests: [], complaints: [] });
  });
});
