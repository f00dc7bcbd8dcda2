import { CompactSign } from "jose";
import { currentSigningKey } from "../../shared/credentials.ts";
import { base64Url } from "../../shared/identifiers.ts";
import {
  STATUS_BITS,
  STATUS_LIST_ENTRIES,
  STATUS_LIST_POLL_MILLISECONDS,
  STATUS_LIST_TTL_SECONDS,
  STATUS_LIST_WAIT_MILLISECONDS,
} from "../../shared/limits.ts";
import { refuse } from "../applications/authentication.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { Unavailable } from "../platform.ts";
import { findInactive } from "../storage/status-lists.ts";
import { findShared, type ListCopy, share } from "./status-copies.ts";
import { compress, packEntries } from "./status-entries.ts";
import { firstPositionOf, indexesOf, listOf, listUri } from "./status-index.ts";

/** `typ` of a status list (draft-ietf-oauth-status-list-20 section 5.1). */
const STATUS_LIST_TYPE = "statuslist+jwt";

const encoder = new TextEncoder();

/**
 * A status list of an application: a copy that is young enough, or built from D1.
 *
 * @param clientAddress who asks: calls for lists that do not exist count as refused
 * @returns a compact JWS, at most `STATUS_LIST_CACHE_SECONDS` old
 * @throws Refusal UNKNOWN_STATUSLIST; Unavailable without `PUBLIC_URL`: doors then go on with the list that they have
 */
export async function readStatusList(
  context: Context,
  application: Application,
  list: number,
  clientAddress: string,
): Promise<string> {
  const { publicUrl, statusLists } = context;
  if (publicUrl === null) throw new Unavailable("PUBLIC_URL", new Error("PUBLIC_URL is not set"));
  const uri = listUri(publicUrl, application.id, list);
  const known = await recallOrBegin(context, uri);
  if (known) return known.jwt;
  try {
    const copy = (await findShared(context, uri)) ?? (await build(context, application, { list, uri, clientAddress }));
    statusLists.copies.set(uri, copy);
    return copy.jwt;
  } finally {
    statusLists.building.delete(uri);
  }
}

/**
 * This isolate's copy; while another request builds one, waits for that. A shared promise would belong to that request, and
 * never settle once its caller hangs up.
 *
 * @returns undefined if the caller has to build one, for which others wait from now on
 */
async function recallOrBegin({ statusLists, now }: Context, uri: string): Promise<ListCopy | undefined> {
  for (let left = STATUS_LIST_WAIT_MILLISECONDS; left > 0; left -= STATUS_LIST_POLL_MILLISECONDS) {
    const copy = statusLists.recall(uri, now());
    if (copy) return copy;
    if (!statusLists.building.get(uri)) break;
    await scheduler.wait(STATUS_LIST_POLL_MILLISECONDS);
  }
  // Without an await after the look above: otherwise everybody who asks at this moment would build one.
  statusLists.building.set(uri, true);
  return undefined;
}

async function build(
  context: Context,
  application: Application,
  { list, uri, clientAddress }: { list: number; uri: string; clientAddress: string },
): Promise<ListCopy> {
  const { db, statusLists, refusedCalls, now } = context;
  // The list is as old as the moment before D1 was asked.
  const builtAt = now();
  const first = firstPositionOf(list);
  const range = { applicationId: application.id, first, end: first + STATUS_LIST_ENTRIES };
  const ask = () => findInactive(db, range, builtAt);
  const isSeen = list <= (statusLists.lastLists.get(application.id) ?? 0);
  // A list that this isolate has not seen may be a guess, and guessing must not cost D1 anything (contract section 7).
  const inactive = isSeen ? await ask() : await refusedCalls.lookUp(clientAddress, builtAt, uri, ask);
  const lastList = listOf(inactive.lastPosition);
  statusLists.lastLists.set(application.id, lastList);
  if (list > lastList) return refuse(context, clientAddress, "UNKNOWN_STATUSLIST");
  const indexOf = await indexesOf(context, application, list);
  const lst = base64Url(await compress(packEntries(inactive, indexOf)));
  const copy = { jwt: await sign(context, application, { uri, lst, builtAt }), builtAt };
  share(context, uri, copy);
  return copy;
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
