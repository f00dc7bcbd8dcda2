import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { signIn } from "./browser.ts";
import type { Harness } from "./harness.ts";

/** Opens /console and signs in with a secret of the application. */
export async function openConsole(page: Page, { origin, applicationId }: Harness, secret: string): Promise<void> {
  await page.goto(`${origin}/console`);
  await signIn(page, applicationId, secret);
  await page.getByRole("heading", { name: "Today", level: 1 }).waitFor();
}

/** What tests do on a page of the console. @param current the page, which may not be open yet */
export const consoleSteps = (current: () => Page) => ({
  /** Opens a view as its address. */
  async view(hash: string, title: string): Promise<void> {
    await current().evaluate((to) => void location.assign(`#${to}`), hash);
    await current().getByRole("heading", { name: title, level: 1 }).waitFor();
  },

  row: (name: string | RegExp) => current().getByRole("row").filter({ hasText: name }),

  dialog: () => current().getByRole("dialog"),

  /** @returns the text of the list's file */
  async saveAsCsv(): Promise<string> {
    const saving = current().waitForEvent("download");
    await current().getByRole("button", { name: "Save as CSV" }).click();
    return readFileSync(await (await saving).path(), "utf8");
  },
});
