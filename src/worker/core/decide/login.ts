import { stateAt } from "../../../shared/badge-life/states.ts";
import type { IssuedBadge } from "../../storage/rows.ts";
import { type BadgeCommand, type Outcome, refused } from "../commands.ts";
import type { Draft } from "./draft.ts";
import { mayBind, mayUse } from "./keys.ts";
import { refusalOfState } from "./refusal.ts";

/**
 * The badge becomes its device's current one, and new metadata replaces the stored one. While the badge may be bound to
 * another key, a login with that key binds it.
 */
export function logIn(draft: Draft, command: BadgeCommand, own: IssuedBadge): Outcome {
  const { device, metadata, keyThumbprint, rules } = command;
  const binds = mayBind(own, keyThumbprint, rules, draft.now);
  if (!binds && !mayUse(own, keyThumbprint, rules)) return refused("INVALID_PROOF");
  const code = refusalOfState(stateAt(own, draft.now));
  if (code !== null) return refused(code);
  const isCurrent = own.turn === draft.turns.get(device);
  const loggedIn = {
    ...own,
    turn: isCurrent ? own.turn : draft.nextTurn(device),
    metadata: metadata ?? own.metadata,
    ...(binds && { keyThumbprint, rebindUntil: null }),
  };
  if (binds || loggedIn.metadata !== own.metadata) draft.change(loggedIn);
  else if (!isCurrent) draft.keep(loggedIn);
  return { kind: "existing", number: own.number, keyThumbprint: loggedIn.keyThumbprint };
}
