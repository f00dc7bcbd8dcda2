import { stateAt } from "../../../shared/badge-life/states.ts";
import { viewBadge } from "../../../shared/badge-life/view.ts";
import type { EventName } from "../../../shared/events.ts";
import { isoTime } from "../../../shared/time.ts";
import type { InvitationRow, IssuedBadge } from "../../storage/rows.ts";
import { badgeCreatedPayload } from "../../webhooks/event.ts";
import type { Draft } from "./draft.ts";

/** Records an event about a badge as it is now (contract section 18). */
export function tellOfBadge(draft: Draft, event: EventName, badge: IssuedBadge): void {
  const state = stateAt(badge, draft.now);
  tell(draft, event, { ...viewBadge({ ...badge, state }), change: badge.change });
}

/** Records that a badge was issued (contract section 8). @returns the event's ID */
export function tellOfNewBadge(
  draft: Draft,
  badge: Pick<IssuedBadge, "number" | "userId" | "metadata" | "keyThumbprint" | "name" | "startsAt">,
  more: { invitationId?: string; replacedNumber?: number | null } = {},
): string {
  return draft.tell("badge:created", (eventId) =>
    badgeCreatedPayload({ eventId, createdAt: draft.now, ...badge, ...more }),
  );
}

/** Records that an invitation ended without a claim (contract section 18). */
export function tellOfInvitation(draft: Draft, event: EventName, { number, expiresAt }: InvitationRow): void {
  tell(draft, event, { id: String(number), expiresAt });
}

/** The body is serialized once: every attempt signs and sends these bytes. */
function tell(draft: Draft, event: EventName, data: object): void {
  const createdAt = isoTime(draft.now);
  draft.tell(event, (id) => JSON.stringify({ id, event, createdAt, data }));
}
