import { bundledPage } from "./bundled-page.ts";

/** Whether the deployment serves `/console`: `CONSOLE = "off"` in wrangler.toml removes it. */
export const hasConsole = ({ CONSOLE }: { CONSOLE?: string }): boolean => CONSOLE !== "off";

/**
 * The admin console, which makes the same calls as an application's server. The page itself contains no credentials and
 * needs none.
 */
export const consoleRoutes = bundledPage("/console", hasConsole);
