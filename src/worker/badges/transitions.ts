import type { AuditContext } from "../../shared/actor.ts";
import { stateAt } from "../../shared/badge-life/states.ts";
import { type BadgeView, viewBadge } from "../../shared/badge-life/view.ts";
import { expectKind } from "../../shared/expect-kind.ts";
import { type ApplicationId, newAlias } from "../../shared/identifiers.ts";
import type { TransitionCommand } from "../allocator/commands.ts";
import { ApiError } from "../api-error.ts";
import type { Application } from "../applications/application-cache.ts";
import { hashUserId } from "../applications/derived-ids.ts";
import type { Context } from "../context.ts";
import { findIssuedBadge } from "../storage/issued-badges.ts";
import type { IssuedBadge } from "../storage/rows.ts";

/** A badge's view for callers, and its change number, which is its `ETag` (contract section 24). */
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
 * Applies one transition to a badge (contract sections 12, 15 and 24).
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

/** The response to a block or an unblock; `revoked`: badge numbers (contract section 12). */
export interface BlockedUserView {
  userId: string;
  blocked: boolean;
  revoked: string[];
}

/** Blocks a user and revokes the user's badges, or lifts the block. @throws Unavailable */
export async function changeBlock(
  context: Context,
  application: Application,
  userId: string,
  kind: "block" | "unblock",
  audit: AuditContext,
): Promise<BlockedUserView> {
  const userDigest = await hashUserId(context.unsealedKeys, application, userId);
  const result = await context.allocator.execute(context.db, application.id, { kind, userId, userDigest }, audit);
  const { numbers } = expectKind(result, "user");
  return { userId, blocked: kind === "block", revoked: numbers.map(String) };
}

/** Erases a user; the badges stay under an alias (contract section 24). @throws Unavailable */
export async function eraseUser(
  context: Context,
  application: Application,
  userId: string,
  audit: AuditContext,
): Promise<{ userId: string; erased: number }> {
  const userDigest = await hashUserId(context.unsealedKeys, application, userId);
  const command = { kind: "erase" as const, userId, userDigest, alias: newAlias() };
  const result = await context.allocator.execute(context.db, application.id, command, audit);
  const { userId: alias, erased } = expectKind(result, "erased");
  return { userId: alias, erased };
}
