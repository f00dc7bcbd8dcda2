import { openRebinding } from "../../shared/badge-life/rebinding.ts";
import { type Step, stateAt } from "../../shared/badge-life/states.ts";
import { type BadgeStore, type StepResult, takeStep, toTransition } from "../../shared/badge-life/steps.ts";
import { type BadgeView, viewBadge } from "../../shared/badge-life/view.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { findIssuedBadge, type IssuedBadgeRow } from "../../shared/storage/issued-badges.ts";
import type { HeldTransition } from "../allocator/allocator.ts";
import { badgeHolder, holderKey } from "../allocator/holder.ts";
import type { Context } from "../context.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";

/** The badge in its present state. @throws Refusal UNKNOWN_BADGE */
export async function showBadge(
  context: Context,
  applicationId: ApplicationId,
  number: number,
): Promise<{ badge: BadgeView; change: number }> {
  const badge = await findIssuedBadge(context.db, applicationId, number);
  if (!badge) throw new Refusal("UNKNOWN_BADGE");
  return { badge: viewBadge({ ...badge, state: stateAt(badge, context.now()) }), change: badge.change };
}

/**
 * Takes one step in the life of a badge (contract section 12). The write is conditional on the change number that was
 * read; if a concurrent call came first, this one reads and decides again.
 *
 * @throws Refusal
 * @throws Unavailable
 */
export async function changeBadge(
  context: Context,
  applicationId: ApplicationId,
  number: number,
  step: Step,
): Promise<BadgeView> {
  return viewResult(await takeStep(badgeStore(context), applicationId, number, step));
}

/**
 * Lets the user device bind the badge to another key (contract section 15).
 *
 * @throws Refusal
 */
export async function rebindBadge(context: Context, applicationId: ApplicationId, number: number): Promise<BadgeView> {
  return viewResult(await openRebinding(context, applicationId, number));
}

function viewResult(result: StepResult): BadgeView {
  switch (result.kind) {
    case "taken":
      return viewBadge(result.badge);
    case "unknown":
      throw new Refusal("UNKNOWN_BADGE");
    case "ended":
      throw new Refusal("ENDED_BADGE");
    case "contended":
      throw new Refusal("UNAVAILABLE", { detail: "contended" });
  }
}

/** Badges as a request, a sweep or a reconciliation changes them. */
export const badgeStore = (context: Context): BadgeStore => ({
  db: context.db,
  now: context.now,
  writeSteps: (applicationId, badges, step, now) => writeSteps(context, applicationId, badges, step, now),
});

/** Writes through the application's object, which remembers what was revoked. See `BadgeStore`. */
export async function writeSteps(
  context: Context,
  applicationId: ApplicationId,
  badges: readonly IssuedBadgeRow[],
  step: Step,
  now: number,
): Promise<number[]> {
  const transitions = badges.flatMap((badge) => toHeldTransition(badge, step, now) ?? []);
  if (transitions.length === 0) return [];
  const result = await context.allocator.transition(applicationId, transitions);
  if (result.kind === "unavailable") throw new Unavailable("allocator", undefined);
  return result.changes.map(({ number }) => number);
}

function toHeldTransition(badge: IssuedBadgeRow, step: Step, now: number): HeldTransition | null {
  const transition = toTransition(badge, step, now);
  const holder = badgeHolder(badge);
  return transition && holder && { ...transition, holder: holderKey(holder) };
}
