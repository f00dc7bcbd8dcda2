import { stateAt } from "../../shared/badge-life/states.ts";
import { viewBadge } from "../../shared/badge-life/view.ts";
import type { InboxResult } from "../../shared/inbox.ts";
import type { Outcome } from "./commands.ts";

/** What the administration script is told of its command. @param now milliseconds */
export function inboxResultOf(outcome: Outcome, now: number): InboxResult {
  switch (outcome.kind) {
    case "badge":
      return { kind: "badge", badge: viewBadge({ ...outcome.badge, state: stateAt(outcome.badge, now) }) };
    case "user":
    case "erased":
    case "refused":
      return outcome;
    default:
      throw new Error(`no command of the script leads to ${outcome.kind}`);
  }
}
