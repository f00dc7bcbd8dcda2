import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";

/** axe-core as a script, to run in the page. */
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * Every rule of axe-core unless some are named, those of good practice too: rule, element and what is wrong.
 *
 * @param part selector
 * @param rules only these
 */
export async function faultsOf(page: Page, part = "html", rules?: readonly string[]): Promise<string[]> {
  // A page in the background draws no frames, so its animations never end.
  await page.bringToFront();
  // Half a megabyte, which takes half a second.
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(AXE);
  // What fades in has the contrast of a moment. A spinner never ends.
  await page.evaluate(() =>
    Promise.race([
      Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => undefined))),
      new Promise((resolve) => setTimeout(resolve, 3000)),
    ]),
  );
  const options = JSON.stringify({ resultTypes: ["violations"], ...(rules && { runOnly: rules }) });
  const results: AxeResults = await page.evaluate(`axe.run("${part}", ${options})`);
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
  );
}
