import { parseApplicationId } from "../../shared/identifiers.ts";
import { KEY_SET_CACHE_SECONDS } from "../../shared/limits/cache-limits.ts";
import type { Context } from "../context.ts";
import { readEdgeCache, writeEdgeCache } from "../edge-cache.ts";
import { publicJwks } from "../keys/jwks.ts";
import { applicationForKeySet } from "./credentials.ts";

/**
 * An application's key set, as JSON text. Unless the isolate has cached the application, it reads the data centre's cache
 * before D1. That cache never contains an unknown application.
 *
 * @param origin of the request's URL
 * @param clientAddress of the caller: calls for unknown applications count as refused
 * @throws ApiError UNKNOWN_APPLICATION
 */
export async function readKeySet(
  context: Context,
  origin: string,
  applicationId: string,
  clientAddress: string,
): Promise<string> {
  const { applicationCache, now } = context;
  const id = parseApplicationId(applicationId);
  const isToBeLoaded = id !== undefined && applicationCache.peek(id, now(), KEY_SET_CACHE_SECONDS * 1000) === undefined;
  const url = `${origin}/v1/applications/${id}/jwks.json`;
  const copy = isToBeLoaded ? await readEdgeCache(context, url, KEY_SET_CACHE_SECONDS) : undefined;
  if (copy) return copy.text;
  const application = await applicationForKeySet(context, clientAddress, applicationId);
  const text = JSON.stringify(await publicJwks(application));
  const builtAt = applicationCache.loadedAt(application.id) ?? now();
  if (isToBeLoaded) writeEdgeCache(context, url, { text, builtAt }, KEY_SET_CACHE_SECONDS);
  return text;
}
