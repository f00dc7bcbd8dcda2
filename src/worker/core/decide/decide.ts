import type { GroupRows } from "../../storage/group-reads.ts";
import type { Outcome } from "../commands.ts";
import type { Waiting } from "../queue.ts";
import { decideBadge } from "./badge.ts";
import { type Again, decideBlock, decideFinishBlock, decideUnblock, type Revoked } from "./block.ts";
import type { Draft } from "./draft.ts";
import { decideDue } from "./due.ts";
import { decideErase } from "./erase.ts";
import { decideInvite, decideRevocation } from "./invitation.ts";
import { decideStepCommand } from "./step.ts";

/**
 * Decides one call: what the caller is told, and, in the draft, what is stored.
 *
 * @param rows what the group has read
 * @param wasAnswered whether the caller of the user's last block got its response
 */
export function decide(
  draft: Draft,
  { call: { command, origin }, isBegun, erased }: Pick<Waiting, "call" | "isBegun" | "erased">,
  rows: Pick<GroupRows, "readThrough" | "numbersOfUser" | "isLastOfUser" | "isMoreDue">,
  wasAnswered: boolean,
): { outcome: Outcome | Again | Revoked; erased?: number } {
  const { readThrough, isMoreDue } = rows;
  switch (command.kind) {
    case "badge":
      return { outcome: decideBadge(draft, origin, command) };
    case "step":
      return { outcome: decideStepCommand(draft, origin, command) };
    case "block":
      return { outcome: decideBlock(draft, origin, command.userId, readThrough, wasAnswered) };
    case "unblock":
      return { outcome: decideUnblock(draft, origin, command.userId, readThrough) };
    case "finish-block":
      return { outcome: decideFinishBlock(draft, command.userId, readThrough) };
    case "erase":
      return decideErase(draft, origin, command, rows, { isBegun, erased });
    case "invite":
      return { outcome: decideInvite(draft, origin, command) };
    case "revoke-invitation":
      return { outcome: decideRevocation(draft, origin, command) };
    case "record-due":
      return { outcome: decideDue(draft, isMoreDue) };
  }
}
