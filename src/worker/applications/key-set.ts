import { parseApplicationId } from "../../shared/identifiers.ts";
import { KEY_SET_CACHE_SECONDS } from "../../shared/limits.ts";
import type { Context } from "../context.ts";
import { type EdgeCopy, findEdgeCopy, shareEdgeCopy } from "../edge-copies.ts";
import { publicJwks } from "../keys/jwks.ts";
import { requirePublisher } from "./authentication.ts";

/** A key set as JSON text. */
interface KeySet {
  json: string;
  /** Of a copy from the data centre's cache; null: it was made now. */
  ageSeconds: number | null;
}

/**
 * An application's key set. An isolate that does not know the application looks for the data centre's copy before it asks D1:
 * an unknown application has none.
 *
 * @param origin of the request's URL
 * @param clientAddress of the caller: calls for unknown applications count as refused
 * @throws Refusal UNKNOWN_APPLICATION
 */
export async function readKeySet(
  context: Context,
  origin: string,
  applicationId: string,
  clientAddress: string,
): Promise<KeySet> {
  const { registry, now } = context;
  const id = parseApplicationId(applicationId);
  const isToBeLoaded = id !== undefined && registry.recall(id, now()) === undefined;
  const url = `${origin}/v1/applications/${id}/jwks.json`;
  const copy = isToBeLoaded ? await findEdgeCopy(context, url, KEY_SET_CACHE_SECONDS) : undefined;
  if (copy) return { json: copy.text, ageSeconds: ageOf(copy, now()) };
  const application = await requirePublisher(context, clientAddress, applicationId);
  const json = JSON.stringify(await publicJwks(application));
  const builtAt = registry.loadedAt(application.id) ?? now();
  if (isToBeLoaded) shareEdgeCopy(context, url, { text: json, builtAt }, KEY_SET_CACHE_SECONDS);
  return { json, ageSeconds: null };
}

/** Never negative (RFC 9111 section 5.1): the clock of the machine that built it may be ahead. */
const ageOf = ({ builtAt }: EdgeCopy, now: number): number => Math.max(0, Math.floor((now - builtAt) / 1000));
