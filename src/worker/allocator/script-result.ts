import { stateAt } from "../../shared/badge-lifecycle/states.ts";
import { viewBadge } from "../../shared/badge-lifecycle/view.ts";
import type { ScriptResult } from "../../shared/script-commands.ts";
import type { Result } from "./commands.ts";

/** What the administration script gets for its command. @param now milliseconds */
export function scriptResultOf(result: Result, now: number): ScriptResult {
  switch (result.kind) {
    case "badge":
      return { kind: "badge", badge: viewBadge({ ...result.badge, state: stateAt(result.badge, now) }) };
    case "user":
      return { kind: "user", userId: result.userId, numbers: result.numbers };
    case "erased":
      return { kind: "erased", userId: result.userId, erased: result.erased };
    case "reconciled":
    case "refused":
      return result;
    default:
      throw new Error(`no command of the script leads to ${result.kind}`);
  }
}
