import { Hono } from "hono";
import { PUBLIC_CACHE_SECONDS } from "../../shared/limits/request-limits.ts";
import { assetResponse } from "./assets.ts";
import { hasConsole } from "./console-routes.ts";
import type { HttpEnv } from "./environment.ts";
import { rawResponse } from "./response.ts";

/**
 * The page may run our scripts and call this service only. Scalar sets styles on elements, which needs inline styles;
 * its images and fonts are data URLs.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The reference, as a document and as a page: static assets, made by `src/dev/docs-assets.ts`. */
export const docsRoutes = new Hono<HttpEnv>()
  .get("/openapi.json", (c) => assetResponse(c, `public, max-age=${PUBLIC_CACHE_SECONDS}`))
  .get("/docs", async (c) => {
    const { DEMO_APPLICATION_ID: demo } = c.env;
    const isDemo = demo !== undefined && c.get("context").isLocal;
    const deployment = { applicationId: isDemo ? demo : null, hasConsole: hasConsole(c.env) };
    const isRewritten = isDemo || !deployment.hasConsole;
    const page = await assetResponse(c, isDemo ? "no-store" : `public, max-age=${PUBLIC_CACHE_SECONDS}`, isRewritten);
    page.headers.set("Content-Security-Policy", CONTENT_SECURITY_POLICY);
    return isRewritten ? forDeployment(page, deployment) : page;
  })
  .get("/docs/", (c) => rawResponse(c, null, 308, [["Location", "/docs"]]))
  // Files keep their names when they change, so browsers revalidate their copies (ETag).
  .get("/docs/:file", (c) => assetResponse(c, "no-cache"));

/**
 * Adds the ID of the demo application, which only local development has; the page fills it into its test calls. The ID
 * is public; a secret must not be added. Removes the link to a console that is switched off.
 */
function forDeployment(page: Response, has: { applicationId: string | null; hasConsole: boolean }): Response {
  const { applicationId } = has;
  page.headers.delete("ETag");
  const rewriter = new HTMLRewriter();
  if (applicationId !== null) {
    rewriter.on("#reference", {
      element: (mount) => void mount.setAttribute("data-application-id", applicationId),
    });
  }
  if (!has.hasConsole) rewriter.on("#console-link", { element: (link) => void link.remove() });
  return rewriter.transform(page);
}
