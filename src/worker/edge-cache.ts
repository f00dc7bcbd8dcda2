import { CACHE_DEADLINE_MILLISECONDS } from "../shared/limits/cache-limits.ts";
import { happenedWithin } from "../shared/time.ts";
import type { Context } from "./context.ts";
import { log } from "./log.ts";
import { withDeadline } from "./platform.ts";

/** A public response that was built from D1. Its age counts from the D1 read. */
export interface CachedResponse {
  text: string;
  /** Milliseconds. */
  builtAt: number;
}

const BUILT_AT = "built-at";

/** The cached response of this data centre (Workers: Cache API). A failing cache counts as empty. */
export async function readEdgeCache(
  { edgeCache, now }: Pick<Context, "edgeCache" | "now">,
  url: string,
  maxAgeSeconds: number,
): Promise<CachedResponse | undefined> {
  try {
    return await withDeadline("cache", CACHE_DEADLINE_MILLISECONDS, async () => {
      const response = await edgeCache.match(url);
      if (!response) return undefined;
      const builtAt = Number(response.headers.get(BUILT_AT));
      const copy = { text: await response.text(), builtAt };
      return happenedWithin(builtAt, now(), maxAgeSeconds * 1000) ? copy : undefined;
    });
  } catch (error) {
    log("warn", { event: "edge-cache-failed", error });
    return undefined;
  }
}

/** Writes a response to the cache of this data centre, after it was sent. */
export function writeEdgeCache(
  { edgeCache, defer }: Pick<Context, "edgeCache" | "defer">,
  url: string,
  { text, builtAt }: CachedResponse,
  maxAgeSeconds: number,
): void {
  const headers = { "Cache-Control": `max-age=${maxAgeSeconds}`, [BUILT_AT]: String(builtAt) };
  const put = () => edgeCache.put(url, new Response(text, { headers }));
  defer(
    withDeadline("cache", CACHE_DEADLINE_MILLISECONDS, put).catch((error) =>
      log("warn", { event: "edge-cache-failed", error }),
    ),
  );
}
