import { PURGE_INVITATIONS } from "../../../shared/limits/allocator-limits.ts";
import type { InvitationRow } from "../../storage/rows.ts";
import type { Result } from "../commands.ts";
import type { Transaction } from "../transaction.ts";

/**
 * Deletes old invitations (contract section 18), one step of a walk over all of them. Their badges stay, because the uniqueness of
 * numbers depends on them.
 *
 * @param after the digest after which the walk goes on
 * @param endedUntil milliseconds: invitations that ended until then, or whose badge did, are old
 */
export function decidePurge(transaction: Transaction, after: string, endedUntil: number): Result {
  const rows = transaction.tables.invitationsAfter(after, PURGE_INVITATIONS);
  for (const { invitation, badgeEndedAt } of rows) {
    const endedAt = endOf(invitation, badgeEndedAt);
    if (endedAt !== null && endedAt <= endedUntil) transaction.deleteInvitation(invitation);
  }
  return {
    kind: "recorded",
    isDone: rows.length < PURGE_INVITATIONS,
    after: rows.at(-1)?.invitation.digest ?? "",
  };
}

/** When an invitation was over: when its number was released, or its badge ended. Null: it is not over. */
function endOf({ state, endedAt }: InvitationRow, badgeEndedAt: number | null): number | null {
  switch (state) {
    case "pending":
      return null;
    case "claimed":
      return badgeEndedAt;
    case "revoked":
    case "expired":
      return endedAt;
  }
}
