import { bundledPage } from "./bundled-page.ts";

/** Whether the deployment serves `/pass`: `PASS = "off"` in wrangler.toml removes it. */
export const hasPass = ({ PASS }: { PASS?: string }): boolean => PASS !== "off";

/**
 * The page with which a visitor needs no app (contract section 27). Its calls are those of a device. The invitation stands behind
 * `#` in the link, which no browser sends, so it reaches no server and no log.
 */
export const passRoutes = bundledPage("/pass", hasPass);
