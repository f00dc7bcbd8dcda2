import { MAX_STEP_ATTEMPTS } from "../../shared/limits.ts";
import type { EventName } from "../../shared/schema.ts";
import type { HeldTransition } from "../allocator/allocator.ts";
import { badgeHolder, holderKey } from "../allocator/holder.ts";
import type { Context } from "../context.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import { findIssuedBadge, type IssuedBadgeRow } from "../storage/issued-badges.ts";
import { type BadgeState, decide, type Step, stateAt } from "./states.ts";
import { type BadgeView, badgeEvent, viewBadge } from "./view.ts";

/** The badge in its present state. @throws Refusal UNKNOWN_BADGE */
export async function showBadge(context: Context, applicationId: string, number: number): Promise<BadgeView> {
  const badge = await findIssuedBadge(context.db, applicationId, number);
  if (!badge) throw new Refusal("UNKNOWN_BADGE");
  return viewBadge({ ...badge, state: stateAt(badge, context.now()) });
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
  applicationId: string,
  number: number,
  step: Step,
): Promise<BadgeView> {
  for (let attempt = 0; attempt < MAX_STEP_ATTEMPTS; attempt++) {
    const badge = await findIssuedBadge(context.db, applicationId, number);
    if (!badge) throw new Refusal("UNKNOWN_BADGE");
    const now = context.now();
    const decision = decide(badge, step, now);
    switch (decision.kind) {
      case "refused":
        throw new Refusal("ENDED_BADGE");
      case "unchanged":
        return viewBadge({ ...badge, state: stateAt(badge, now) });
      case "changed": {
        const changed = await writeSteps(context, applicationId, [badge], step, now);
        if (changed.length > 0) return viewBadge({ ...badge, ...decision.next, state: stateAt(decision.next, now) });
      }
    }
  }
  throw new Refusal("UNAVAILABLE", { detail: "contended" });
}

/**
 * Takes the same step with several badges of one application, in one transaction. Skips badges that have changed since they
 * were read, and those that the step does not change.
 *
 * @returns numbers of the changed badges
 * @throws Unavailable
 */
export async function writeSteps(
  context: Context,
  applicationId: string,
  badges: readonly IssuedBadgeRow[],
  step: Step,
  now: number,
): Promise<number[]> {
  const transitions = badges.flatMap((badge) => toTransition(badge, step, now) ?? []);
  if (transitions.length === 0) return [];
  const result = await context.allocator.transition(applicationId, transitions);
  if (result.kind === "unavailable") throw new Unavailable("allocator", undefined);
  return result.changes.map(({ number }) => number);
}

function toTransition(badge: IssuedBadgeRow, step: Step, now: number): HeldTransition | null {
  const decision = decide(badge, step, now);
  const holder = badgeHolder(badge);
  if (decision.kind !== "changed" || !holder) return null;
  const { next, becomes } = decision;
  return {
    number: badge.number,
    holder: holderKey(holder),
    readChange: badge.change,
    ...next,
    changedAt: now,
    event: becomes && badgeEvent(EVENT_OF_STATE[becomes], now, { ...badge, ...next, state: becomes }),
  };
}

/** The event that reports a new state. */
const EVENT_OF_STATE = {
  active: "badge:resumed",
  suspended: "badge:suspended",
  revoked: "badge:revoked",
  expired: "badge:expired",
  replaced: "badge:replaced",
} as const satisfies Record<BadgeState, EventName>;
