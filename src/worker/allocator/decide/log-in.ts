import { stateAt } from "../../../shared/badge-lifecycle/states.ts";
import type { IssuedBadge } from "../../storage/rows.ts";
import { type BadgeCommand, type Result, refused } from "../commands.ts";
import type { Transaction } from "../transaction.ts";
import { mayBind, mayUse } from "./key-binding.ts";
import { refusalOfState } from "./refused-states.ts";

/**
 * The badge becomes its device's current one, and new metadata replaces the stored one. While the badge may be bound to
 * another key, a login with that key binds it.
 */
export function logIn(transaction: Transaction, command: BadgeCommand, own: IssuedBadge): Result {
  const { device, metadata, keyThumbprint, rules } = command;
  const binds = mayBind(own, keyThumbprint, rules, transaction.now);
  if (!binds && !mayUse(own, keyThumbprint, rules)) return refused("INVALID_PROOF");
  const code = refusalOfState(stateAt(own, transaction.now));
  if (code !== null) return refused(code);
  const last = transaction.tables.lastLoginSequence(device);
  const loggedIn = {
    ...own,
    loginSequence: own.loginSequence === last ? last : last + 1,
    metadata: metadata ?? own.metadata,
    ...(binds && { keyThumbprint, rebindUntil: null }),
  };
  if (binds || loggedIn.metadata !== own.metadata) transaction.changeBadge(own, loggedIn);
  else transaction.keepBadge(own, loggedIn);
  return { kind: "existing", number: own.number, keyThumbprint: loggedIn.keyThumbprint };
}
