import { stateAt } from "../../shared/badge-life/states.ts";
import { type BadgeView, viewBadge } from "../../shared/badge-life/view.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_OWN_BADGES } from "../../shared/limits.ts";
import { findIssuedBadge, findListedOfUser } from "../../shared/storage/issued-badges.ts";
import { changeBadge } from "../badges/transitions.ts";
import type { Context } from "../context.ts";
import { Refusal } from "../refusal.ts";

/** What a person may do with badges of their own, from any device (contract section 22). */

export interface User {
  applicationId: ApplicationId;
  userId: string;
}

/** The user's active and suspended badges, newest first. One round trip. */
export async function listOwnBadges({ db, now }: Context, { applicationId, userId }: User): Promise<BadgeView[]> {
  const badges = await findListedOfUser(db, { applicationId, userId }, MAX_OWN_BADGES);
  return badges
    .map((badge) => ({ ...badge, state: stateAt(badge, now()) }))
    .filter(({ state }) => state === "active" || state === "suspended")
    .map(viewBadge);
}

/** @throws Refusal UNKNOWN_BADGE, also for another user's; ENDED_BADGE */
export async function suspendOwnBadge(
  context: Context,
  { applicationId, userId }: User,
  number: number,
): Promise<BadgeView> {
  const badge = await findIssuedBadge(context.db, applicationId, number);
  // A number never changes hands, so the badge is still this user's when it is suspended.
  if (badge?.userId !== userId) throw new Refusal("UNKNOWN_BADGE");
  return changeBadge(context, applicationId, number, { kind: "suspend" });
}
