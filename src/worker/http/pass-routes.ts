import { bundledPage } from "./bundled-page.ts";

/** Whether the deployment serves `/pass`: `PASS = "off"` in wrangler.toml removes it. */
export const hasPass = ({ PASS }: { PASS?: string }): boolean => PASS !== "off";

/**
 * The page for visitors without an app, which makes the same calls as a device. The invitation is in the link's
 * fragment, which browsers do not send, so it reaches no server and no log.
 */
export const passRoutes = bundledPage("/pass", hasPass);
