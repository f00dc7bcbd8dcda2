import { parseApplicationId } from "../../../shared/identifiers.ts";
import { STATUS_LIST_CACHE_SECONDS } from "../../../shared/limits/status-list-limits.ts";
import { ApiError } from "../../api-error.ts";
import type { Application } from "../../applications/application-cache.ts";
import { applicationForStatusLists, countAndReject } from "../../applications/credentials.ts";
import type { Context } from "../../context.ts";
import { type CachedResponse, readEdgeCache, writeEdgeCache } from "../../edge-cache.ts";
import { Unavailable } from "../../platform.ts";
import { type BuiltList, buildList } from "./build.ts";
import { listOf, listUri } from "./list-index.ts";
import { signList } from "./sign.ts";

/**
 * A status list: cached by this isolate or its data centre, or built. A cached list is found without loading the
 * application.
 *
 * @param applicationId as the caller sent it
 * @param clientAddress of the caller: calls for lists that do not exist count as refused
 * @returns a compact JWS, at most `STATUS_LIST_CACHE_SECONDS` old
 * @throws ApiError UNKNOWN_STATUSLIST; Unavailable without `PUBLIC_URL`: doors then keep the list that they have
 */
export async function readStatusList(
  context: Context,
  applicationId: string,
  list: number,
  clientAddress: string,
): Promise<string> {
  const { statusListCache, now } = context;
  const publicUrl = context.publicUrl();
  const id = parseApplicationId(applicationId);
  const uri = publicUrl !== null && id !== undefined ? listUri(publicUrl, id, list) : null;
  const cached = uri === null ? undefined : (statusListCache.peek(uri, now()) ?? (await findShared(context, uri)));
  if (cached) return cached.text;
  const application = await applicationForStatusLists(context, clientAddress, applicationId);
  if (uri === null) throw new Unavailable("PUBLIC_URL", new Error("PUBLIC_URL is not set"));
  if (statusListCache.isMissing(application.id, list, now()))
    return refuseList(context, application, list, clientAddress);
  // The age of the list counts from before the query to D1.
  const builtAt = now();
  const build = () => buildList(context, application, list, builtAt);
  // A list beyond the next may be a guess, and guessing must not cost D1 anything (contract section 7).
  const isGuess = list > statusListCache.lastList(application.id) + 1;
  const built = isGuess ? await buildGuessed(context, application, clientAddress, uri, build) : await build();
  statusListCache.rememberLastOrdinal(application.id, built.lastOrdinal, builtAt);
  if (list > listOf(built.lastOrdinal)) return refuseList(context, application, list, clientAddress);
  const copy = { text: await signList(context, application, { uri, builtAt, ...built }), builtAt };
  statusListCache.remember(uri, copy);
  writeEdgeCache(context, uri, copy, STATUS_LIST_CACHE_SECONDS);
  return copy.text;
}

/** @throws ApiError RATE_LIMITED */
async function buildGuessed(
  { authFailureLimiter, statusListCache, now }: Context,
  { id }: Application,
  clientAddress: string,
  uri: string,
  build: () => Promise<BuiltList>,
): Promise<BuiltList> {
  try {
    return await authFailureLimiter.lookUp(clientAddress, now(), uri, build);
  } catch (error) {
    const isLimited = error instanceof ApiError && error.code === "RATE_LIMITED";
    if (isLimited && statusListCache.mayLearnLastList(id, now())) return build();
    throw error;
  }
}

async function findShared(context: Context, uri: string): Promise<CachedResponse | undefined> {
  const shared = await readEdgeCache(context, uri, STATUS_LIST_CACHE_SECONDS);
  if (shared) context.statusListCache.remember(uri, shared);
  return shared;
}

/** Doors probe for the next list, and many may share an address, so such calls do not count as guesses. */
function refuseList(context: Context, { id }: Application, list: number, clientAddress: string): Promise<never> {
  const isGuess = list > context.statusListCache.lastList(id) + 1;
  if (isGuess) return countAndReject(context, clientAddress, "UNKNOWN_STATUSLIST");
  throw new ApiError("UNKNOWN_STATUSLIST");
}
