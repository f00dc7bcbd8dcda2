import * as z from "zod";
import { stateAt } from "../../shared/badge-lifecycle/states.ts";
import { type BadgeView, viewBadge } from "../../shared/badge-lifecycle/view.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { ApiError } from "../api-error.ts";
import type { Context } from "../context.ts";
import { type CursorCodec, cursorCodec } from "../cursor.ts";
import { listChanges } from "../storage/issued-badges.ts";

/** A position in the feed: after the change with this number. */
interface FeedCursor {
  epoch: string;
  change: number;
}

export const FEED_CURSOR: CursorCodec<FeedCursor> = cursorCodec(
  "changes",
  z.object({ epoch: z.string(), change: z.int().nonnegative() }),
);

export interface ChangePage {
  changes: (BadgeView & { change: number })[];
  more: boolean;
  cursor: string;
}

/**
 * A page of the feed: each badge once, in the order of its last change.
 *
 * @param after null for the beginning
 * @throws ApiError EXPIRED_CURSOR when the cursor is of an earlier epoch
 * @throws Unavailable
 */
export async function pageChanges(
  context: Context,
  applicationId: ApplicationId,
  after: FeedCursor | null,
  perPage: number,
): Promise<ChangePage> {
  const from = after?.change ?? 0;
  const { epoch, badges } = await listChanges(context.db, applicationId, from, perPage + 1);
  if (after !== null && after.epoch !== epoch) throw new ApiError("EXPIRED_CURSOR");
  const shown = badges.slice(0, perPage);
  const now = context.now();
  return {
    changes: shown.map((badge) => ({ ...viewBadge({ ...badge, state: stateAt(badge, now) }), change: badge.change })),
    more: badges.length > perPage,
    cursor: FEED_CURSOR.encode({ epoch, change: shown.at(-1)?.change ?? from }),
  };
}
