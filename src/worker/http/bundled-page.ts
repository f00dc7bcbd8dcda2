import { Hono } from "hono";
import { createMiddleware } from "hono/factory";
import { ApiError } from "../api-error.ts";
import { assetResponse } from "./assets.ts";
import type { HttpEnv } from "./environment.ts";
import { rawResponse } from "./response.ts";

/** The page may run its own script and call this service only: no inline code or style, no frame, no form target. */
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

/**
 * A page of the service with files of its own: static assets, made by `src/dev/page-assets.ts`.
 *
 * @param path such as `/console`
 * @param isServed whether the deployment has the page; otherwise it is 404
 */
export function bundledPage(path: string, isServed: (env: HttpEnv["Bindings"]) => boolean): Hono<HttpEnv> {
  const requireServed = createMiddleware<HttpEnv>((c, next) => {
    if (!isServed(c.env)) throw new ApiError("NOT_FOUND");
    return next();
  });
  return (
    new Hono<HttpEnv>()
      .use(`${path}/*`, requireServed)
      .get(path, async (c) => {
        const page = await assetResponse(c, "no-cache");
        page.headers.set("Content-Security-Policy", CONTENT_SECURITY_POLICY);
        page.headers.set("Cross-Origin-Opener-Policy", "same-origin");
        page.headers.set("X-Frame-Options", "DENY");
        return page;
      })
      .get(`${path}/`, (c) => rawResponse(c, null, 308, [["Location", path]]))
      // Files keep their names when they change, so browsers revalidate their copies (ETag).
      .get(`${path}/:file`, (c) => assetResponse(c, "no-cache"))
  );
}
