import type { IssuedBadge } from "../../storage/rows.ts";
import type { BadgeCommand } from "../commands.ts";
import type { Draft } from "./draft.ts";

/** Makes a number the badge of a user device, and the device's current one. */
export function issueNumber(
  draft: Draft,
  badge: Pick<
    IssuedBadge,
    "number" | "device" | "userId" | "metadata" | "keyThumbprint" | "name" | "startsAt" | "expiresAt" | "invitation"
  >,
  { rules }: BadgeCommand,
  eventId: string,
): void {
  draft.position.lastPosition++;
  draft.change({
    ...badge,
    eventId,
    signingKeyId: rules.signingKey.id,
    position: draft.position.lastPosition,
    turn: draft.nextTurn(badge.device),
    issuedAt: draft.now,
    state: "active",
    endedAt: null,
    retiredAt: null,
    rebindUntil: null,
    change: 0,
    changedAt: 0,
    statusChange: null,
  });
  draft.useSigningKey(rules.signingKey);
}
