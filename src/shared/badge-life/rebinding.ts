import type { ApplicationId } from "../identifiers.ts";
import { MAX_STEP_ATTEMPTS, REBIND_WINDOW_HOURS } from "../limits.ts";
import { writeRebindWindow } from "../storage/badge-transitions.ts";
import { findIssuedBadge } from "../storage/issued-badges.ts";
import { stateAt } from "./states.ts";
import type { BadgeStore, StepResult } from "./steps.ts";

/**
 * For 24 hours from now, the first login of the badge's user device with another key binds the badge to it (contract section
 * 15). Nothing that callers see changes yet, so this has no change number of its own; when it is repeated, the hours start
 * again. Badges that are revoked or replaced cannot be rebound.
 */
export async function openRebinding(
  { db, now }: Pick<BadgeStore, "db" | "now">,
  applicationId: ApplicationId,
  number: number,
): Promise<StepResult> {
  for (let attempt = 0; attempt < MAX_STEP_ATTEMPTS; attempt++) {
    const badge = await findIssuedBadge(db, applicationId, number);
    if (!badge) return { kind: "unknown" };
    const openedAt = now();
    const state = stateAt(badge, openedAt);
    if (state === "revoked" || state === "replaced") return { kind: "ended", state };
    const until = openedAt + REBIND_WINDOW_HOURS * 3600 * 1000;
    if (await writeRebindWindow(db, badge, until)) return { kind: "taken", badge: { ...badge, state } };
  }
  return { kind: "contended" };
}
