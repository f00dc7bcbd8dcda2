import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { signIn } from "./browser.ts";
import type { Harness } from "./harness.ts";

/** Loads /console anew, which another hash alone would not do. */
export async function openPage(page: Page, { origin }: Harness): Promise<void> {
  await page.goto("about:blank");
  await page.goto(`${origin}/console`);
  await page.getByRole("button", { name: "Sign in" }).waitFor();
}

/** Opens /console and signs in with a secret of the application. */
export async function openConsole(page: Page, service: Harness, secret: string): Promise<void> {
  await openPage(page, service);
  await signIn(page, service.applicationId, secret);
  await page.getByRole("heading", { name: "Today", level: 1 }).waitFor();
}

/** What tests do on a page of the console. @param current the page, which may not be open yet */
export function consoleSteps(current: () => Page) {
  const dialog = () => current().getByRole("dialog");
  const row = (name: string | RegExp) => current().getByRole("row").filter({ hasText: name });
  const press = (name: string) => current().getByRole("button", { name, exact: true }).click();
  return {
    ...{ dialog, row, press },
    /** Opens a view as its address. */
    async view(hash: string, title: string): Promise<void> {
      await current().evaluate((to) => void location.assign(`#${to}`), hash);
      await current().getByRole("heading", { name: title, level: 1 }).waitFor();
    },
    /** Presses a button of the dialog. */
    confirm: (action: string) => dialog().getByRole("button", { name: action }).click(),
    /** Waits for what the page says about the last step. */
    notice: (text: string | RegExp) => current().locator(".notice").getByText(text).waitFor(),
    undo: () => current().locator(".notice").getByRole("button", { name: "Undo" }).click(),
    openMenu: (name: string) =>
      row(name)
        .getByRole("button", { name: /^Actions/ })
        .click(),
    /** @returns the text of the list's file */
    async saveAsCsv(): Promise<string> {
      const saving = current().waitForEvent("download");
      await press("Save as CSV");
      return readFileSync(await (await saving).path(), "utf8");
    },
  };
}
