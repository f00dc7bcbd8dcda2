import type { Origin } from "../../../shared/actor.ts";
import { type BadgeState, stateAt } from "../../../shared/badge-life/states.ts";
import type { SubscribableEvent } from "../../../shared/events.ts";
import { REBIND_WINDOW_HOURS } from "../../../shared/limits.ts";
import { HOUR_MILLISECONDS, isoTime } from "../../../shared/time.ts";
import type { IssuedBadge } from "../../storage/rows.ts";
import { type Outcome, refused, type StepCommand } from "../commands.ts";
import type { Draft } from "./draft.ts";
import { tellOfBadge } from "./events.ts";
import { decideStep, type Step } from "./states.ts";

/** Takes a step in the life of a badge that a caller asks for (contract sections 12, 15 and 24). */
export function decideStepCommand(draft: Draft, origin: Origin, command: StepCommand): Outcome {
  const { number, step, ifChange, ownedBy } = command;
  const badge = draft.issued(number);
  if (!badge || (ownedBy !== null && badge.userId !== ownedBy)) return refused("UNKNOWN_BADGE");
  if (ifChange !== null && !ifChange.includes(badge.change)) return refused("CHANGED_BADGE");
  if (step.kind === "rebind") return openRebinding(draft, origin, badge);
  const decision = decideStep(badge, step, draft.now);
  switch (decision.kind) {
    case "refused":
      return refused("ENDED_BADGE");
    case "invalid":
      return refused("INVALID_STARTSAT");
    case "unchanged":
      return { kind: "badge", badge };
    case "changed":
      return { kind: "badge", badge: takeStep(draft, origin, badge, step) };
  }
}

/** Takes a step if it changes the badge. @returns the badge as it is then */
export function takeStep(draft: Draft, origin: Origin, badge: IssuedBadge, step: Step): IssuedBadge {
  const decision = decideStep(badge, step, draft.now);
  if (decision.kind !== "changed") return badge;
  const changed = draft.change({ ...badge, ...decision.next });
  const about = { badge: badge.number, userId: badge.userId };
  if (step.kind === "reschedule") {
    const { startsAt, expiresAt } = changed;
    const detail = { startsAt: isoTime(startsAt), expiresAt: isoTime(expiresAt) };
    draft.note("badge:rescheduled", origin, { ...about, detail });
  }
  if (decision.becomes !== null) {
    const event = EVENT_OF_STATE[decision.becomes];
    tellOfBadge(draft, event, changed);
    draft.note(event, origin, about);
  }
  return changed;
}

/**
 * For 24 hours from now, the first login of the badge's user device with another key binds the badge to it (contract section
 * 15). Nothing that callers see changes yet; when it is repeated, the hours start again.
 */
function openRebinding(draft: Draft, origin: Origin, badge: IssuedBadge): Outcome {
  const state = stateAt(badge, draft.now);
  if (state === "revoked" || state === "replaced") return refused("ENDED_BADGE");
  const opened = { ...badge, rebindUntil: draft.now + REBIND_WINDOW_HOURS * HOUR_MILLISECONDS };
  draft.keep(opened);
  draft.note("badge:rebound", origin, { badge: badge.number, userId: badge.userId });
  return { kind: "badge", badge: opened };
}

/** The event that reports the new state that callers see. */
const EVENT_OF_STATE = {
  active: "badge:resumed",
  suspended: "badge:suspended",
  revoked: "badge:revoked",
  expired: "badge:expired",
  replaced: "badge:replaced",
} as const satisfies Record<BadgeState, SubscribableEvent>;
