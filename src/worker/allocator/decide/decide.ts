import type { Call, Result } from "../commands.ts";
import type { Transaction } from "../transaction.ts";
import { decideBlock, decideUnblock } from "./block.ts";
import { decideErase } from "./erase.ts";
import { decideInvitationErasure, decideInvite, decideRevocation } from "./invitation.ts";
import { decidePurge } from "./purge-invitations.ts";
import { decideEnds } from "./record-ends.ts";
import { decideBadge } from "./request-badge.ts";
import { skipNumbers } from "./take-number.ts";
import { decideTransition } from "./transition.ts";

/** Decides one call. */
export function decide(transaction: Transaction, { command, audit }: Pick<Call, "command" | "audit">): Result {
  switch (command.kind) {
    case "badge":
      return decideBadge(transaction, audit, command);
    case "transition":
      return decideTransition(transaction, audit, command);
    case "block":
      return decideBlock(transaction, audit, command);
    case "unblock":
      return decideUnblock(transaction, audit, command);
    case "erase":
      return decideErase(transaction, audit, command);
    case "invite":
      return decideInvite(transaction, audit, command);
    case "revoke-invitation":
      return decideRevocation(transaction, audit, command);
    case "erase-invitation":
      return decideInvitationErasure(transaction, audit, command);
    case "record-ends":
      return decideEnds(transaction);
    case "purge":
      return decidePurge(transaction, command.after, command.endedUntil);
    case "skip":
      return skipNumbers(transaction, command);
  }
}
