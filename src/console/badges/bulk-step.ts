import type { CurrentBadge, ListedBadge, ServerClient } from "../../client/index.ts";
import { explain } from "../parts/problems.ts";
import { type Session, SessionEnded } from "../session.ts";
import { BADGE_STATE_WORDS } from "../words.ts";
import { isConflict, meanwhile, readPresent } from "./meanwhile.ts";

export type BulkStep = "extend" | "suspend" | "revoke";

/** How a step of many badges ended for one of them. */
export interface BulkOutcome {
  badge: ListedBadge;
  isDone: boolean;
  /** In a sentence. */
  text: string;
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
  /** ISO 8601; null: no end. Of `extend` alone. */
  end: string | null;
  reason: string | undefined;
}

/**
 * Takes a step with one of many badges, and only with what the reader saw: one that somebody has changed since it was listed is left
 * alone, as is one that changes meanwhile (`If-Match`).
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
    await session.run((server) => act(server, badge.id, wanted, change));
    return { badge, isDone: true, text: DONE[wanted.step] };
  } catch (error) {
    if (error instanceof SessionEnded) throw error;
    if (!isConflict(error)) return left(explain(error));
    return left(`Left alone. ${meanwhile(await readPresent(session, badge.id))}`);
  }
}

function act(server: ServerClient, id: string, { step, end, reason }: Wanted, change: number | undefined) {
  const options = { reason, ifChange: change };
  if (step === "extend") return server.setBadgeEnd(id, end, options);
  return step === "suspend" ? server.suspendBadge(id, options) : server.revokeBadge(id, options);
}
