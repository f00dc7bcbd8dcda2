import { BY_CLOCK } from "../../../shared/actor.ts";
import { MAX_GROUP_CHARACTERS } from "../../../shared/limits.ts";
import { isIssued } from "../../storage/rows.ts";
import type { Outcome } from "../commands.ts";
import { AGAIN, type Again } from "./block.ts";
import type { Draft } from "./draft.ts";
import { endInvitation } from "./invitation.ts";
import { takeStep } from "./step.ts";

/** Records the expiries of those badges and invitations that the group has read. @param hasMore whether more are due */
export function decideDue(draft: Draft, hasMore: boolean): Outcome | Again {
  let isFull = false;
  for (const row of [...draft.badges.values()]) {
    if (!isIssued(row)) continue;
    isFull ||= draft.size > MAX_GROUP_CHARACTERS;
    if (!isFull) takeStep(draft, BY_CLOCK, row, { kind: "note-expiry" });
  }
  isFull = !expireInvitations(draft) || isFull;
  return hasMore || isFull ? AGAIN : { kind: "recorded" };
}

/** Ends the pending invitations that are past their time, of those that were read. @returns false if some are left */
export function expireInvitations(draft: Draft): boolean {
  for (const invitation of [...draft.invitations.values()]) {
    if (invitation.state !== "pending" || invitation.expiresAtTime > draft.now) continue;
    // Read for another reason, without the row of its number.
    if (!draft.badges.get(invitation.number)) continue;
    if (draft.size > MAX_GROUP_CHARACTERS) return false;
    endInvitation(draft, BY_CLOCK, invitation, "expired");
  }
  return true;
}
