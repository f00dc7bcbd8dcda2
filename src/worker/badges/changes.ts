import * as z from "zod";
import { stateAt } from "../../shared/badge-life/states.ts";
import { type BadgeView, viewBadge } from "../../shared/badge-life/view.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { type Changes, listChanges } from "../../shared/storage/issued-badges.ts";
import type { Context } from "../context.ts";
import { type CursorCodec, cursorCodec } from "../cursor.ts";
import { Refusal } from "../refusal.ts";

/** A position in the feed: after the change of this number. */
export interface FeedCursor {
  epoch: string;
  change: number;
  /**
   * When that change was made, in milliseconds; 0 at the beginning. After a restoration of D1 another change can get the same
   * number, but hardly at the same time.
   */
  changedAt: number;
}

const naturalNumber = z.int().nonnegative();

export const FEED_CURSOR: CursorCodec<FeedCursor> = cursorCodec(
  "changes",
  z.object({ epoch: z.string(), change: naturalNumber, changedAt: naturalNumber }),
);

export interface ChangePage {
  changes: (BadgeView & { change: number })[];
  more: boolean;
  cursor: string;
}

/**
 * A page of the feed (contract section 13): each badge once, in the order of its last change.
 *
 * @param after null: from the beginning
 * @throws Refusal EXPIRED_CURSOR after D1 was restored to an older state
 */
export async function pageChanges(
  context: Context,
  applicationId: ApplicationId,
  after: FeedCursor | null,
  perPage: number,
): Promise<ChangePage> {
  const from = after?.change ?? 0;
  const feed = await listChanges(context.db, applicationId, from, perPage + 1);
  if (after !== null && isExpired(after, feed)) throw new Refusal("EXPIRED_CURSOR");
  const { epoch, badges } = feed;
  const shown = badges.slice(0, perPage);
  const now = context.now();
  return {
    changes: shown.map((badge) => ({ ...viewBadge({ ...badge, state: stateAt(badge, now) }), change: badge.change })),
    more: badges.length > perPage,
    cursor: FEED_CURSOR.encode({ epoch, ...(shown.at(-1) ?? after ?? BEGINNING) }),
  };
}

const BEGINNING = { change: 0, changedAt: 0 };

/** Whether D1 was restored to a state before the cursor, as far as can be seen. */
function isExpired(after: FeedCursor, { epoch, lastChange, changedAt }: Changes): boolean {
  const isOtherChange = changedAt !== null && changedAt !== after.changedAt;
  return after.epoch !== epoch || after.change > lastChange || isOtherChange;
}
