import type { ApplicationId } from "../identifiers.ts";
import { MAX_STEP_ATTEMPTS } from "../limits.ts";
import type { EventName } from "../schema.ts";
import type { Transition } from "../storage/badge-transitions.ts";
import type { Database } from "../storage/d1.ts";
import { findIssuedBadge, type IssuedBadgeRow } from "../storage/issued-badges.ts";
import { type BadgeState, decide, type Step, stateAt } from "./states.ts";
import { badgeEvent } from "./view.ts";

/** How a program reads badges and writes their steps: the Worker through the application's object, the script itself. */
export interface BadgeStore {
  db: Database;
  /** Milliseconds. */
  now(): number;
  /**
   * Applies one step to several badges of one application, in one transaction. Skips badges that changed since they were
   * read, and badges that the step does not change.
   *
   * @param now the time to decide by
   * @returns numbers of the badges that were changed
   */
  writeSteps(
    applicationId: ApplicationId,
    badges: readonly IssuedBadgeRow[],
    step: Step,
    now: number,
  ): Promise<number[]>;
}

/** A badge as callers see it. */
type TakenBadge = Omit<IssuedBadgeRow, "state"> & { state: BadgeState };

/** `taken`: by this call or an earlier one, with the resulting badge. `contended`: other calls changed it at every try. */
export type StepResult =
  | { kind: "taken"; badge: TakenBadge }
  | { kind: "unknown" }
  | { kind: "ended"; state: BadgeState }
  | { kind: "contended" };

/**
 * Takes one step in the life of a badge (contract section 12). The write is conditional on the change number that was
 * read; if another call came first, this one reads and decides again.
 */
export async function takeStep(
  store: BadgeStore,
  applicationId: ApplicationId,
  number: number,
  step: Step,
): Promise<StepResult> {
  for (let attempt = 0; attempt < MAX_STEP_ATTEMPTS; attempt++) {
    const badge = await findIssuedBadge(store.db, applicationId, number);
    if (!badge) return { kind: "unknown" };
    const now = store.now();
    const decision = decide(badge, step, now);
    switch (decision.kind) {
      case "refused":
        return { kind: "ended", state: stateAt(badge, now) };
      case "unchanged":
        return { kind: "taken", badge: { ...badge, state: stateAt(badge, now) } };
      case "changed": {
        const changed = await store.writeSteps(applicationId, [badge], step, now);
        const { next } = decision;
        if (changed.length > 0)
          return { kind: "taken", badge: { ...badge, ...next, state: stateAt(next, now), changedAt: now } };
      }
    }
  }
  return { kind: "contended" };
}

/** What a step writes, decided from the badge as it was read; null if the step changes nothing. */
export function toTransition(badge: IssuedBadgeRow, step: Step, now: number): Transition | null {
  const decision = decide(badge, step, now);
  if (decision.kind !== "changed") return null;
  const { next, becomes } = decision;
  return {
    number: badge.number,
    readChange: badge.change,
    ...next,
    changedAt: now,
    event: becomes && badgeEvent(EVENT_OF_STATE[becomes], now, { ...badge, ...next, state: becomes }),
  };
}

/** The event that reports the new state that callers see. */
const EVENT_OF_STATE = {
  active: "badge:resumed",
  suspended: "badge:suspended",
  revoked: "badge:revoked",
  expired: "badge:expired",
  replaced: "badge:replaced",
} as const satisfies Record<BadgeState, EventName>;
