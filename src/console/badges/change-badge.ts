import { type Badge, BadgeServiceError, type ListedBadge, type ServerClient } from "../../client/index.ts";
import { grouped, shortTime } from "../parts/texts.tsx";
import type { Session } from "../session.ts";

/**
 * Does a step of a badge's life, and shows its result wherever the badge is shown. One that is too late shows the badge as
 * it is now.
 */
export async function changeBadge(
  session: Session,
  id: string,
  step: (server: ServerClient) => Promise<Badge>,
): Promise<Badge> {
  try {
    return session.known.learnBadge(await session.run(step));
  } catch (error) {
    if (error instanceof BadgeServiceError && error.status === 409) {
      session.known.learnBadge(await session.run((server) => server.getBadge(id)));
    }
    throw error;
  }
}

/** A badge of a list, which leaves out the state of active ones (contract section 12), and times that no card shows. */
export const asListed = ({ issuedAt = "", changedAt = "", ...badge }: ListedBadge): Badge => ({
  ...badge,
  state: badge.state ?? "active",
  ...{ issuedAt, changedAt },
});

/** When a badge ends or has ended, in a sentence. */
export function endSentence({ id, state, expiresAt }: Badge): string {
  const badge = `Badge ${grouped(id)}`;
  if (state === "expired") return `${badge} has ended.`;
  if (expiresAt === undefined) return `${badge} has no end.`;
  return `${badge} ends ${shortTime(expiresAt)}.`;
}

/** The same after an end was undone. */
export function restoredSentence(before: Badge, after: Badge): string {
  if (before.state === "expired" && after.state === "active") return `Badge ${grouped(after.id)} is active again.`;
  return `Undone. ${endSentence(after)}`;
}
