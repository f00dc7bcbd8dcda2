import { stateAt } from "../../shared/badge-lifecycle/states.ts";
import { type BadgeView, viewBadge } from "../../shared/badge-lifecycle/view.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_USER_BADGES } from "../../shared/limits/allocator-limits.ts";
import type { Context } from "../context.ts";
import { findListedOfUser } from "../storage/issued-badges.ts";

/** The user's active and suspended badges, newest first. One round trip. */
export async function listOwnBadges(
  { db, now }: Context,
  applicationId: ApplicationId,
  userId: string,
): Promise<BadgeView[]> {
  const badges = await findListedOfUser(db, applicationId, userId, MAX_USER_BADGES);
  return badges
    .map((badge) => ({ ...badge, state: stateAt(badge, now()) }))
    .filter(({ state }) => state === "active" || state === "suspended")
    .map(viewBadge);
}
