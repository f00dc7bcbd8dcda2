import { Hono } from "hono";
import { createMiddleware } from "hono/factory";
import { Refusal } from "../refusal.ts";
import { assetResponse } from "./assets.ts";
import type { HttpEnv } from "./environment.ts";
import { otherResponse } from "./response.ts";

/** The page may run its own script and call this service, nothing else: no inline code or style, no frame, no form target. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** Whether the deployment serves `/console`: `CONSOLE = "off"` in wrangler.toml removes it. */
export const hasConsole = ({ CONSOLE }: { CONSOLE?: string }): boolean => CONSOLE !== "off";

const requireConsole = createMiddleware<HttpEnv>((c, next) => {
  if (!hasConsole(c.env)) throw new Refusal("NOT_FOUND");
  return next();
});

/**
 * The page for people who look after badges (contract section 19): static assets, made by `src/dev/console-assets.ts`. Its
 * calls are those of an application's server; the page itself needs no credentials and has none.
 */
export const consoleRoutes = new Hono<HttpEnv>()
  .use("/console/*", requireConsole)
  .get("/console", async (c) => {
    const page = await assetResponse(c, "no-cache");
    page.headers.set("Content-Security-Policy", CONTENT_SECURITY_POLICY);
    page.headers.set("Cross-Origin-Opener-Policy", "same-origin");
    page.headers.set("X-Frame-Options", "DENY");
    return page;
  })
  .get("/console/", (c) => otherResponse(c, null, 308, [["Location", "/console"]]))
  // Files keep their names when they change, so browsers revalidate their copies (ETag).
  .get("/console/:file", (c) => assetResponse(c, "no-cache"));
