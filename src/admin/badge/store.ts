import * as z from "zod";
import { type BadgeStore, toTransition } from "../../shared/badge-life/steps.ts";
import { writeTransitions } from "../../shared/storage/badge-transitions.ts";
import type { Database } from "../../shared/storage/d1.ts";
import { NO_BADGE_YET } from "../../shared/storage/high-water.ts";
import { requestNoteOfRevocations } from "./noted-revocations.ts";

const READ_CLOCK = "SELECT cast(unixepoch('subsec') * 1000 AS INTEGER) AS now";

const clockRows = z.tuple([z.object({ now: z.number() })]);

/**
 * Badges as this script changes them: in D1 directly, with the decisions and statements of the Worker. Times are D1's,
 * because this computer's clock may be wrong by hours. The sweep finds and sends the events of the changes.
 */
export async function openBadgeStore(database: Database): Promise<BadgeStore> {
  const { results } = await database.run((_, d1) => d1.prepare(READ_CLOCK).all());
  const [{ now: openedAt }] = clockRows.parse(results);
  const openedHere = performance.now();
  return {
    db: database,
    now: () => openedAt + Math.floor(performance.now() - openedHere),
    async writeSteps(applicationId, badges, step, now) {
      const transitions = badges.flatMap((badge) => toTransition(badge, step, now) ?? []);
      if (transitions.length === 0) return [];
      const numbers = transitions.map(({ number }) => number);
      const { changed } = await writeTransitions(database, applicationId, transitions, NO_BADGE_YET, (d1) =>
        step.kind === "revoke" ? [requestNoteOfRevocations(d1, applicationId, numbers, now)] : [],
      );
      return changed.map(({ number }) => number);
    },
  };
}
