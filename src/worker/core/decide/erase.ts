import type { Origin } from "../../../shared/actor.ts";
import { MAX_GROUP_CHARACTERS } from "../../../shared/limits.ts";
import { isObject } from "../../json-object.ts";
import type { GroupRows } from "../../storage/group-reads.ts";
import type { EraseCommand, Outcome } from "../commands.ts";
import { AGAIN, type Again, badgesOf } from "./block.ts";
import type { Draft } from "./draft.ts";
import { takeStep } from "./step.ts";

/** What earlier groups of the same call have done. */
export interface Progress {
  isBegun: boolean;
  /** Badges. */
  erased: number;
}

/**
 * Erases a person (contract section 24): revokes the user's badges, and puts an alias in place of the user ID wherever it
 * stands. Numbers stay taken. Rows that have the alias are not found again, so each chunk reads the next ones.
 *
 * @param read which of the user's badges were read for this, and whether that is all that names the user
 * @returns the outcome, and how many badges this group erased
 */
export function decideErase(
  draft: Draft,
  origin: Origin,
  { userId, alias }: EraseCommand,
  { numbersOfUser, isLastOfUser }: Pick<GroupRows, "numbersOfUser" | "isLastOfUser">,
  before: Progress,
): { outcome: Outcome | Again; erased: number } {
  let erased = 0;
  let isFull = false;
  let isKnown = false;
  for (const badge of badgesOf(draft, userId)) {
    // Read for another call, without its invitation: a later group has both.
    if (!isLastOfUser && !numbersOfUser.includes(badge.number)) continue;
    isFull ||= draft.size > MAX_GROUP_CHARACTERS;
    if (isFull) break;
    const anonymous = { ...badge, userId: alias, metadata: null, name: null };
    const revoked = takeStep(draft, origin, anonymous, { kind: "revoke" });
    if (revoked === anonymous) draft.change(anonymous);
    erased++;
    isKnown = true;
  }
  for (const invitation of draft.invitations.values()) {
    const isNamed = invitation.userId === userId;
    const isClaimer = invitation.claimUserId === userId;
    if (!isNamed && !isClaimer) continue;
    draft.invitations.set(invitation.digest, {
      ...invitation,
      name: null,
      ...(isNamed && { userId: alias }),
      ...(isClaimer && { claimUserId: alias }),
    });
    draft.size += 300;
    isKnown = true;
  }
  // Those of D1 are erased there; these are of calls before this one in the group.
  for (const [index, event] of draft.events.entries()) {
    draft.events[index] = { ...event, payload: withoutPerson(event.payload, userId, alias) };
  }
  const block = draft.blocks.get(userId);
  if (block) {
    isKnown = true;
    draft.blocks.delete(userId);
    draft.blocks.set(alias, { ...block, userId: alias, isRevoking: false });
  }
  // Of the first group: whoever repeats a call that died finds only the rest, or nothing.
  if (isKnown && !before.isBegun) draft.note("user:erased", origin, { userId: alias });
  if (isFull || !isLastOfUser) return { outcome: AGAIN, erased };
  return { outcome: { kind: "erased", userId: alias, erased: before.erased + erased }, erased };
}

/** The body of an event as `ERASE_EVENTS` (storage/entry-writes.ts) leaves those of D1. */
function withoutPerson(payload: string, userId: string, alias: string): string {
  const body: unknown = JSON.parse(payload);
  if (!isObject(body) || !isObject(body.data) || body.data.userId !== userId) return payload;
  const { metadata: _, name: __, ...data } = body.data;
  return JSON.stringify({ ...body, data: { ...data, userId: alias } });
}
