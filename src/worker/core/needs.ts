import { MAX_UNREAD_CALLS } from "../../shared/limits.ts";
import type { StoredEntry } from "../storage/entry.ts";
import type { Needs } from "../storage/group-reads.ts";
import type { Position, RangePart } from "../storage/rows.ts";
import type { BadgeCommand, InviteCommand } from "./commands.ts";
import { countFresh, countWanted } from "./decide/numbers.ts";
import type { Waiting } from "./queue.ts";

/**
 * What a group of calls has to know before it is decided.
 *
 * @param now milliseconds
 * @param at where the last group left the list; null: not known
 */
export function needsOf(calls: readonly Waiting[], now: number, at: Position | null): Needs {
  const fresh = at?.fresh ?? null;
  const needs: Needs = {
    userDevices: [],
    numbers: [],
    digests: [],
    users: [],
    badgesOf: null,
    restedBefore: null,
    dueAt: null,
    commands: [],
  };
  for (const { call, eventsAfter, inboxId } of calls) {
    const { command } = call;
    if (inboxId !== null) needs.commands.push(inboxId);
    switch (command.kind) {
      case "badge":
        needs.userDevices.push({ device: command.device, userId: command.userId });
        needs.users.push(command.userId);
        if (command.invitation) needs.digests.push(command.invitation.digest);
        else needFreed(needs, command, now, fresh);
        break;
      case "invite":
        needs.digests.push(...command.invitations.map(({ digest }) => digest));
        needFreed(needs, command, now, fresh);
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

/** When too few numbers are fresh, freed ones are drawn, also those of invitations that are only waiting to be expired. */
function needFreed(
  needs: Needs,
  command: BadgeCommand | InviteCommand,
  now: number,
  fresh: readonly RangePart[] | null,
): void {
  const { range, reuseAfterSeconds } = command.rules;
  if (fresh !== null && countFresh(fresh, range) >= countWanted(command)) return;
  const restedBefore = reuseAfterSeconds === 0 ? Number.MAX_SAFE_INTEGER : now - reuseAfterSeconds * 1000;
  needs.restedBefore = Math.max(needs.restedBefore ?? 0, restedBefore);
  needs.dueAt = now;
}

/**
 * A small group of new badges is decided without reading, as if their devices had no badge and their users no block: the entry
 * says so, and D1 refuses it if that is not true.
 *
 * @returns null: the group has to read
 */
export function assumptionsOf(calls: readonly Waiting[], at: Position | null): StoredEntry["unless"] {
  if (at === null || calls.length === 0 || calls.length > MAX_UNREAD_CALLS) return null;
  const devices: string[] = [];
  const users: string[] = [];
  for (const { call } of calls) {
    const { command } = call;
    if (command.kind !== "badge" || !command.isNew || command.invitation) return null;
    if (countFresh(at.fresh, command.rules.range) < calls.length) return null;
    devices.push(command.device);
    users.push(command.userId);
  }
  return { devices, users };
}
