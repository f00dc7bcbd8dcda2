import { type Badge, BadgeServiceError, type CurrentBadge, type HistoryEntry } from "../../client/index.ts";
import { actionWords, actorSubject } from "../history/action-names.ts";
import { momentOf } from "../parts/texts.tsx";
import type { Session } from "../session.ts";
import { BADGE_STATE_WORDS } from "../words.ts";

/** A badge as it is now, and its last history entry; null if it has none, or the history cannot be read. */
export interface Present {
  badge: CurrentBadge;
  last: HistoryEntry | null;
}

export async function readPresent(session: Session, id: string): Promise<Present> {
  return session.run(async (server, signal) => {
    const [badge, last] = await Promise.all([
      server.getBadge(id, { signal }),
      server
        .listHistory({ badgeId: id, perPage: 1, signal })
        [Symbol.asyncIterator]()
        .next()
        .then(({ value }) => (value ? (value.history[0] ?? null) : null)),
    ]);
    return { badge, last };
  });
}

/** Says who changed a badge meanwhile, when and how. */
export function meanwhile({ badge, last }: Present): string {
  const now = `It is ${stateWords(badge)} now.`;
  // A login may have changed metadata or the key, without an entry.
  if (last === null || last.at < badge.changedAt) return `This badge was changed ${momentOf(badge.changedAt)}. ${now}`;
  return `${actorSubject(last.actor)} changed this badge ${momentOf(last.at)}: ${actionWords(last).toLowerCase()}. ${now}`;
}

const stateWords = ({ state }: Badge): string => BADGE_STATE_WORDS[state].toLowerCase();

export const isConflict = (error: unknown): boolean =>
  error instanceof BadgeServiceError && (error.code === "CHANGED_BADGE" || error.code === "ENDED_BADGE");
