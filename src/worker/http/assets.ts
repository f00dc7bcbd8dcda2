import type { Context as HonoContext } from "hono";
import { Refusal } from "../refusal.ts";
import type { HttpEnv } from "./environment.ts";
import { cacheable, otherResponse } from "./response.ts";

/** The static asset of the request's path (`[assets]` of wrangler.toml). @throws Refusal when there is none */
export async function assetResponse(c: HonoContext<HttpEnv>, cacheControl: string): Promise<Response> {
  const asset = await c.env.ASSETS.fetch(c.req.raw);
  if (asset.status === 404) throw new Refusal("NOT_FOUND");
  return cacheable(c, otherResponse(c, asset.body, asset.status, asset.headers), cacheControl);
}
