import { bundledPage } from "./bundled-page.ts";

/** Whether the deployment serves `/console`: `CONSOLE = "off"` in wrangler.toml removes it. */
export const hasConsole = ({ CONSOLE }: { CONSOLE?: string }): boolean => CONSOLE !== "off";

/**
 * The admin console. It makes the calls of an application's server. The page itself contains no
 * credentials and needs none.
 */
export const consoleRoutes = bundledPage("/console", hasConsole);
