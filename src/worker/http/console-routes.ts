import { bundledPage } from "./bundled-page.ts";

/** Whether the deployment serves `/console`: `CONSOLE = "off"` in wrangler.toml removes it. */
export const hasConsole = ({ CONSOLE }: { CONSOLE?: string }): boolean => CONSOLE !== "off";

/**
 * The page for people who look after badges (contract section 19). Its calls are those of an application's server; the page
 * itself needs no credentials and has none.
 */
export const consoleRoutes = bundledPage("/console", hasConsole);
