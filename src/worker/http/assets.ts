import type { Context as HonoContext } from "hono";
import { ApiError } from "../api-error.ts";
import { callOnce, Unavailable } from "../platform.ts";
import type { HttpEnv } from "./environment.ts";
import { publicResponse, rawResponse } from "./response.ts";

/**
 * The static asset of the request's path (`[assets]` of wrangler.toml).
 *
 * @param isRewritten whether the caller changes it: then the request's `If-None-Match` is left out, because the store's tag is not the page's
 * @throws ApiError when there is none
 * @throws Unavailable
 */
export async function assetResponse(
  c: HonoContext<HttpEnv>,
  cacheControl: string,
  isRewritten = false,
): Promise<Response> {
  const request = isRewritten ? new Request(c.req.url, { method: c.req.method }) : c.req.raw;
  const asset = await callOnce("assets", () => c.env.ASSETS.fetch(request));
  if (asset.status === 404) throw new ApiError("NOT_FOUND");
  if (asset.status >= 500) throw new Unavailable("assets", undefined);
  return publicResponse(c, rawResponse(c, asset.body, asset.status, asset.headers), cacheControl);
}
