import type { Needs } from "../storage/group-reads.ts";
import { hasFresh } from "./decide/numbers.ts";
import type { RangePart } from "./decide/rows.ts";
import type { Waiting } from "./queue.ts";

/**
 * What a group of calls has to know before it is decided.
 *
 * @param now milliseconds
 * @param fresh the number range as the last group left it; null: not known
 */
export function needsOf(calls: readonly Waiting[], now: number, fresh: readonly RangePart[] | null): Needs {
  const needs: Needs = {
    userDevices: [],
    numbers: [],
    digests: [],
    users: [],
    badgesOf: null,
    restedBefore: null,
    dueAt: null,
  };
  for (const { call, eventsAfter } of calls) {
    const { command } = call;
    switch (command.kind) {
      case "badge":
        needs.userDevices.push({ device: command.device, userId: command.userId });
        needs.users.push(command.userId);
        if (command.invitation) needs.digests.push(command.invitation.digest);
        else needFreed(needs, command.rules, now, fresh);
        break;
      case "invite":
        needs.digests.push(...command.invitations.map(({ digest }) => digest));
        needFreed(needs, command.rules, now, fresh);
        break;
      case "step":
        needs.numbers.push(command.number);
        break;
      case "revoke-invitation":
        if (typeof command.id === "number") needs.numbers.push(command.id);
        else needs.digests.push(command.id);
        break;
      case "block":
      case "unblock":
      case "finish-block":
      case "erase": {
        const { userId, kind } = command;
        needs.users.push(userId);
        needs.badgesOf = { userId, which: kind === "erase" ? "all" : "revocable", eventsAfter };
        break;
      }
      case "record-due":
        needs.dueAt = now;
    }
  }
  return needs;
}

/** When no number is fresh, freed ones are drawn, also those of invitations that are only waiting to be expired. */
function needFreed(
  needs: Needs,
  { range, reuseAfterSeconds }: { range: Parameters<typeof hasFresh>[1]; reuseAfterSeconds: number },
  now: number,
  fresh: readonly RangePart[] | null,
): void {
  if (fresh !== null && hasFresh(fresh, range)) return;
  const restedBefore = reuseAfterSeconds === 0 ? Number.MAX_SAFE_INTEGER : now - reuseAfterSeconds * 1000;
  needs.restedBefore = Math.max(needs.restedBefore ?? 0, restedBefore);
  needs.dueAt = now;
}
