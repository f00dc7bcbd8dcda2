import type { ApplicationId } from "../../../shared/identifiers.ts";
import { MAX_CACHED_STATUS_INDEXES, STATUS_LIST_ENTRIES } from "../../../shared/limits/status-list-limits.ts";
import { createPermutation } from "../../allocator/permutation.ts";
import type { Application } from "../../applications/application-cache.ts";
import type { Context } from "../../context.ts";
import { deriveBytes } from "../../keys/derivation.ts";
import { log } from "../../log.ts";
import { LruCache } from "../../lru-cache.ts";

/**
 * The list and index of a badge in its application's status lists (contract section 14). Both follow from its ordinal,
 * which is assigned once and never reused, so they need no column, and earlier badges are covered.
 */

/** The number of the list that contains an ordinal. */
export const listOf = (ordinal: number): number => Math.floor(ordinal / STATUS_LIST_ENTRIES);

export const firstOrdinalOf = (list: number): number => list * STATUS_LIST_ENTRIES;

/** The common start of an application's list URLs. @param publicUrl `PUBLIC_URL` */
export const listsUri = (publicUrl: string, applicationId: ApplicationId): string =>
  `${publicUrl}/v1/applications/${applicationId}/status`;

/** @param publicUrl `PUBLIC_URL` */
export const listUri = (publicUrl: string, applicationId: ApplicationId, list: number): string =>
  `${listsUri(publicUrl, applicationId)}/${list}`;

/** Maps an ordinal's offset in its list to the badge's index there. */
type IndexOf = (offset: number) => number;

/** Index maps by application and list. The root key that they are derived from never changes, so no map expires. */
export class StatusIndexes extends LruCache<IndexOf> {
  constructor() {
    super(MAX_CACHED_STATUS_INDEXES);
  }
}

/**
 * A permutation with its own key for each list, so that an index reveals neither the badge's number nor the order of issue
 * (draft-ietf-oauth-status-list section 12), and knowledge of one list does not help with another.
 */
export async function indexesOf(
  { unsealedKeys, statusIndexes: known }: Pick<Context, "unsealedKeys" | "statusIndexes">,
  application: Application,
  list: number,
): Promise<IndexOf> {
  const name = `${application.id} ${list}`;
  const remembered = known.get(name);
  if (remembered) return remembered;
  const rootKey = await unsealedKeys.rootKey(application.id, application.rootKey);
  const indexOf = createPermutation(await deriveBytes(rootKey, "status-list", String(list)), STATUS_LIST_ENTRIES);
  known.set(name, indexOf);
  return indexOf;
}

/**
 * The claim with which a door finds the badge's state; none if the application has no status lists.
 *
 * Without a `PUBLIC_URL` there is no URL. The badge is still signed, and an error is logged. Doors then rely on the
 * signature's own expiry, so that a lost variable of the deployment does not lock users out.
 */
export async function statusClaim(
  context: Context,
  application: Application,
  ordinal: number,
): Promise<{ status?: { status_list: { idx: number; uri: string } } }> {
  if (!application.statusList) return {};
  const publicUrl = context.publicUrl();
  if (publicUrl === null) {
    log("error", { event: "signed-without-status", application: application.id, reason: "PUBLIC_URL is not set" });
    return {};
  }
  const list = listOf(ordinal);
  const indexOf = await indexesOf(context, application, list);
  const idx = indexOf(ordinal - firstOrdinalOf(list));
  return { status: { status_list: { idx, uri: listUri(publicUrl, application.id, list) } } };
}
