import { Hono } from "hono";
import { PUBLIC_CACHE_SECONDS } from "../limits.ts";
import type { HttpEnv } from "./environment.ts";
import { methodNotAllowed } from "./resource.ts";

/** The document as JSON text, once somebody has asked for it: an isolate that nobody asks must start fast. */
let text: string | undefined;

async function makeText(now: number): Promise<string> {
  const { openApiDocument } = await import("./openapi/document.ts");
  return JSON.stringify(openApiDocument(now));
}

/** The API as an OpenAPI document (contract section 11). */
export const openApiRoutes = new Hono<HttpEnv>()
  .get("/openapi.json", async (c) => {
    text ??= await makeText(c.get("context").now());
    c.header("Cache-Control", `public, max-age=${PUBLIC_CACHE_SECONDS}`);
    return c.body(text, 200, { "Content-Type": "application/json" });
  })
  .all("/openapi.json", methodNotAllowed("GET", "HEAD"));
