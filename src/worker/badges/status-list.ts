import { CompactSign } from "jose";
import { currentSigningKey } from "../../shared/credentials.ts";
import { base64Url, parseApplicationId } from "../../shared/identifiers.ts";
import {
  PLATFORM_DEADLINE_MILLISECONDS,
  STATUS_BITS,
  STATUS_LIST_CACHE_SECONDS,
  STATUS_LIST_ENTRIES,
  STATUS_LIST_FIRST_POLL_MILLISECONDS,
  STATUS_LIST_MAX_POLL_MILLISECONDS,
  STATUS_LIST_ROOM,
  STATUS_LIST_TTL_SECONDS,
  STATUS_LIST_WAIT_MILLISECONDS,
} from "../../shared/limits.ts";
import { refuse } from "../applications/authentication.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { type EdgeCopy, findEdgeCopy, shareEdgeCopy } from "../edge-copies.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import { findInactive } from "../storage/status-lists.ts";
import type { LastList } from "./status-copies.ts";
import { compress, packEntries } from "./status-entries.ts";
import { firstPositionOf, indexesOf, listOf, listUri } from "./status-index.ts";

/** `typ` of a status list (draft-ietf-oauth-status-list-20 section 5.1). */
const STATUS_LIST_TYPE = "statuslist+jwt";

/** Text of a copy that says that there is no such list. Every door asks for the list after the last. */
const MISSING = "";

const encoder = new TextEncoder();

/**
 * A copy of a status list that is found without asking D1 which application that is: an unknown one has none.
 *
 * @returns a compact JWS, at most `STATUS_LIST_CACHE_SECONDS` old
 * @throws Refusal UNKNOWN_STATUSLIST if the copy says that there is no such list
 */
export async function findListCopy(context: Context, applicationId: string, list: number): Promise<string | undefined> {
  const { statusLists, registry, now } = context;
  const publicUrl = context.publicUrl();
  const id = parseApplicationId(applicationId);
  if (publicUrl === null || id === undefined) return undefined;
  const uri = listUri(publicUrl, id, list);
  const own = statusLists.recall(uri, now());
  if (own) return listIn(own);
  // `readStatusList` looks for it on behalf of everybody who asks at the same time.
  if (registry.recall(id, now()) !== undefined) return undefined;
  const copy = await findEdgeCopy(context, uri, STATUS_LIST_CACHE_SECONDS);
  if (copy === undefined) return undefined;
  statusLists.copies.set(uri, copy);
  return listIn(copy);
}

function listIn({ text }: EdgeCopy): string {
  if (text === MISSING) throw new Refusal("UNKNOWN_STATUSLIST");
  return text;
}

/**
 * A status list of an application: a copy that is young enough, or built from D1.
 *
 * @param clientAddress of the caller: calls for lists that do not exist count as refused
 * @returns a compact JWS, at most `STATUS_LIST_CACHE_SECONDS` old
 * @throws Refusal UNKNOWN_STATUSLIST; Unavailable without `PUBLIC_URL`: doors then keep the list that they have
 */
export async function readStatusList(
  context: Context,
  application: Application,
  list: number,
  clientAddress: string,
): Promise<string> {
  const { statusLists } = context;
  const publicUrl = context.publicUrl();
  if (publicUrl === null) throw new Unavailable("PUBLIC_URL", new Error("PUBLIC_URL is not set"));
  const uriOf = (list: number) => listUri(publicUrl, application.id, list);
  const uri = uriOf(list);
  const asked: AskedList = { application, list, uri, uriOf, clientAddress };
  const builder = {};
  const known = await recallOrBegin(context, asked, builder);
  if (known) return listIn(known);
  try {
    const shared = await findEdgeCopy(context, uri, STATUS_LIST_CACHE_SECONDS);
    const copy = shared ?? (await build(context, asked));
    statusLists.copies.set(uri, copy);
    return listIn(copy);
  } finally {
    if (statusLists.building.get(uri) === builder) statusLists.building.delete(uri);
  }
}

interface AskedList {
  application: Application;
  list: number;
  uri: string;
  /** Of any list of the application. */
  uriOf(list: number): string;
  clientAddress: string;
}

/**
 * This isolate's copy; while another request builds one, waits for that. A shared promise would belong to that request, and
 * never settle once its caller hangs up. So after a while one of those who wait builds the list, and the others wait for that
 * one: while D1 is slow, not everybody asks it.
 *
 * @param builder stands for the caller
 * @returns undefined if the caller has to build one, for which others wait from now on
 * @throws Refusal; Unavailable when none was built for as long as D1 may take
 */
async function recallOrBegin(context: Context, asked: AskedList, builder: object): Promise<EdgeCopy | undefined> {
  const { statusLists, now } = context;
  const { application, list, uri } = asked;
  let awaited = statusLists.building.get(uri);
  let patience = STATUS_LIST_WAIT_MILLISECONDS;
  let pause = STATUS_LIST_FIRST_POLL_MILLISECONDS;
  for (let waited = 0; waited < PLATFORM_DEADLINE_MILLISECONDS; waited += pause) {
    if (statusLists.isMissing(application.id, list, now())) return refuseList(context, asked);
    const copy = statusLists.recall(uri, now());
    if (copy) return copy;
    const building = statusLists.building.get(uri);
    if (building !== awaited) patience = STATUS_LIST_WAIT_MILLISECONDS;
    awaited = building;
    if (building === undefined || patience <= 0) {
      // Without an await after the look above: otherwise everybody who asks at this moment would build one.
      statusLists.building.set(uri, builder);
      return undefined;
    }
    await scheduler.wait(pause);
    patience -= pause;
    pause = Math.min(pause * 2, STATUS_LIST_MAX_POLL_MILLISECONDS);
  }
  throw new Unavailable("status list", new Error("no request could build it"));
}

async function build(context: Context, asked: AskedList): Promise<EdgeCopy> {
  const { application, list, uri, clientAddress } = asked;
  const { db, statusLists, refusedCalls, now } = context;
  // The age of the list counts from before the query to D1.
  const builtAt = now();
  const first = firstPositionOf(list);
  const range = { applicationId: application.id, first, end: first + STATUS_LIST_ENTRIES };
  const ask = () => findInactive(db, range, builtAt);
  // A list beyond the next may be a guess, and guessing must not cost D1 anything (contract section 7).
  const isGuess = list > statusLists.lastList(application.id) + 1;
  const inactive = isGuess ? await refusedCalls.lookUp(clientAddress, builtAt, uri, ask) : await ask();
  const last = lastListOf(inactive.lastPosition);
  statusLists.rememberLastList(application.id, last, builtAt);
  const next = last.list + 1;
  // Doors ask for the last list and then for the next; guessing fills no cache.
  if (last.hasRoom && (list === last.list || list === next)) {
    shareEdgeCopy(context, asked.uriOf(next), { text: MISSING, builtAt }, STATUS_LIST_CACHE_SECONDS);
  }
  if (list > last.list) return refuseList(context, asked);
  const indexOf = await indexesOf(context, application, list);
  const lst = base64Url(await compress(packEntries(inactive, indexOf)));
  const copy = { text: await sign(context, application, { uri, lst, builtAt }), builtAt };
  shareEdgeCopy(context, uri, copy, STATUS_LIST_CACHE_SECONDS);
  return copy;
}

function lastListOf(lastPosition: number): LastList {
  const list = listOf(lastPosition);
  return { list, hasRoom: firstPositionOf(list + 1) - lastPosition > STATUS_LIST_ROOM };
}

/** Doors ask for the list after the last to learn whether there is one, and many may share an address: that is no guess. */
function refuseList(context: Context, { application, list, clientAddress }: AskedList): Promise<never> {
  const isGuess = list > context.statusLists.lastList(application.id) + 1;
  if (isGuess) return refuse(context, clientAddress, "UNKNOWN_STATUSLIST");
  throw new Refusal("UNKNOWN_STATUSLIST");
}

/** By the key that signs new badges: it is in every key set that is still kept (contract section 10). */
async function sign(
  { custody }: Context,
  application: Application,
  { uri, lst, builtAt }: { uri: string; lst: string; builtAt: number },
): Promise<string> {
  const key = currentSigningKey(application.signingKeys, builtAt);
  const issuedAt = Math.floor(builtAt / 1000);
  const claims = {
    sub: uri,
    iat: issuedAt,
    exp: issuedAt + application.statusLifetimeSeconds,
    ttl: STATUS_LIST_TTL_SECONDS,
    status_list: { bits: STATUS_BITS, lst },
  };
  return new CompactSign(encoder.encode(JSON.stringify(claims)))
    .setProtectedHeader({ alg: "ES256", kid: key.kid, typ: STATUS_LIST_TYPE })
    .sign(await custody.signingKey(application.id, key.kid, key));
}
