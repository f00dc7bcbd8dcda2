import type { AuditContext } from "../../shared/actor.ts";
import { stateAt } from "../../shared/badge-lifecycle/states.ts";
import { type BadgeView, viewBadge } from "../../shared/badge-lifecycle/view.ts";
import { expectKind } from "../../shared/expect-kind.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { TransitionCommand } from "../allocator/commands.ts";
import { ApiError } from "../api-error.ts";
import type { Context } from "../context.ts";
import { findIssuedBadge } from "../storage/issued-badges.ts";
import type { IssuedBadge } from "../storage/rows.ts";

/** A badge's view for callers, and its change number, which is its `ETag`. */
export interface ShownBadge {
  view: BadgeView;
  change: number;
}

const show = (badge: IssuedBadge, now: number): ShownBadge => ({
  view: viewBadge({ ...badge, state: stateAt(badge, now) }),
  change: badge.change,
});

/** The badge in its present state. @throws ApiError UNKNOWN_BADGE */
export async function showBadge(context: Context, applicationId: ApplicationId, number: number): Promise<ShownBadge> {
  const badge = await findIssuedBadge(context.db, applicationId, number);
  if (!badge) throw new ApiError("UNKNOWN_BADGE");
  return show(badge, context.now());
}

/**
 * Applies one transition to a badge.
 *
 * @throws ApiError
 * @throws Unavailable
 */
export async function changeBadge(
  context: Context,
  applicationId: ApplicationId,
  transition: Omit<TransitionCommand, "kind">,
  audit: AuditContext,
): Promise<ShownBadge> {
  const command = { kind: "transition" as const, ...transition };
  const result = await context.allocator.execute(context.db, applicationId, command, audit);
  return show(expectKind(result, "badge").badge, context.now());
}
