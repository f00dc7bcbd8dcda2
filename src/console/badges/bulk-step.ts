import type { CurrentBadge, ListedBadge, ServerClient } from "../../client/index.ts";
import { eachOf } from "../parts/each-of.ts";
import { explain } from "../parts/problems.ts";
import { type Session, SessionEnded } from "../session.ts";
import { BADGE_STATE_WORDS } from "../words.ts";
import { isConflict, meanwhile, readPresent } from "./meanwhile.ts";

export type BulkStep = "extend" | "suspend" | "revoke";

/** How a change of many badges ended for one of them. */
export interface BulkOutcome {
  badge: ListedBadge;
  isDone: boolean;
  /** A sentence. */
  text: string;
  /** Undoes it; absent if it cannot be undone, or nothing was done. */
  undo?: () => Promise<CurrentBadge>;
}

const FROM: Readonly<Record<BulkStep, readonly CurrentBadge["state"][]>> = {
  extend: ["active", "suspended", "expired"],
  suspend: ["active"],
  revoke: ["active", "suspended", "expired"],
};

const DONE: Readonly<Record<BulkStep, string>> = {
  extend: "The end is changed.",
  suspend: "Suspended.",
  revoke: "Revoked.",
};

interface Wanted {
  step: BulkStep;
  /** ISO 8601; null for no end. Only for `extend`. */
  end: string | null;
  reason: string | undefined;
}

/**
 * Changes one of many badges, if it is still as the user saw it: a badge that somebody has changed since it was listed, or
 * changes meanwhile (`If-Match`), is left alone.
 *
 * @throws SessionEnded
 */
export async function takeBulkStep(session: Session, badge: ListedBadge, wanted: Wanted): Promise<BulkOutcome> {
  const left = (text: string): BulkOutcome => ({ badge, isDone: false, text });
  try {
    const present = await readPresent(session, badge.id);
    const { change, changedAt, state } = present.badge;
    if (badge.changedAt !== undefined && badge.changedAt !== changedAt)
      return left(`Left alone. ${meanwhile(present)}`);
    if (!FROM[wanted.step].includes(state)) return left(`Left alone: it is ${BADGE_STATE_WORDS[state].toLowerCase()}.`);
    const changed = await session.run((server) => act(server, badge.id, wanted, change));
    const undo = undoOf(wanted.step);
    return {
      ...{ badge, isDone: true, text: DONE[wanted.step] },
      ...(undo && { undo: () => session.run((server) => undo(server, present.badge, changed.change)) }),
    };
  } catch (error) {
    if (error instanceof SessionEnded) throw error;
    if (!isConflict(error)) return left(explain(error));
    const present = await readPresent(session, badge.id).catch((failure: unknown) => {
      if (failure instanceof SessionEnded) throw failure;
      return null;
    });
    return left(present === null ? explain(error) : `Left alone. ${meanwhile(present)}`);
  }
}

function act(server: ServerClient, id: string, { step, end, reason }: Wanted, change: number | undefined) {
  const options = { reason, ifChange: change };
  if (step === "extend") return server.setBadgeEnd(id, end, options);
  return step === "suspend" ? server.suspendBadge(id, options) : server.revokeBadge(id, options);
}

/** @returns a function that undoes the change, unless somebody has changed the badge since; undefined if nothing can */
function undoOf(step: BulkStep) {
  if (step === "revoke") return undefined;
  return (server: ServerClient, { id, expiresAt }: CurrentBadge, change: number | undefined) =>
    step === "extend"
      ? server.setBadgeEnd(id, expiresAt ?? null, { ifChange: change })
      : server.resumeBadge(id, { ifChange: change });
}

/**
 * Undoes what was done. A badge that somebody has changed since is left alone.
 *
 * @returns `failed`: those to try again, because the service did not do it
 * @throws SessionEnded
 */
export async function undoBulkStep(
  outcomes: readonly BulkOutcome[],
): Promise<{ undone: number; left: number; failed: readonly BulkOutcome[] }> {
  const failed: BulkOutcome[] = [];
  const result = { undone: 0, left: 0, failed };
  await eachOf(outcomes, async (outcome) => {
    if (outcome.undo === undefined) return;
    try {
      await outcome.undo();
      result.undone++;
    } catch (error) {
      if (error instanceof SessionEnded) throw error;
      if (isConflict(error)) result.left++;
      else failed.push(outcome);
    }
  });
  return result;
}
