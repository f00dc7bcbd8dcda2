import { and, asc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { BadgeState } from "../../src/shared/badge-lifecycle/states.ts";
import { homeOf } from "../../src/shared/homes.ts";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { badge, webhookEvent } from "../../src/shared/schema.ts";
import { boundHome } from "./home.ts";

/** An application's rows in `badge`, in any state. */
export function badgeRows({ id }: { id: ApplicationId }): Promise<(typeof badge.$inferSelect)[]> {
  return drizzle(boundHome(homeOf(id)).d1)
    .select()
    .from(badge)
    .where(eq(badge.applicationId, id))
    .orderBy(asc(badge.number))
    .all();
}

/** An application's `badge:created` rows in the outbox. */
export function eventRows({ id }: { id: ApplicationId }): Promise<(typeof webhookEvent.$inferSelect)[]> {
  return drizzle(boundHome(homeOf(id)).d1)
    .select()
    .from(webhookEvent)
    .where(and(eq(webhookEvent.applicationId, id), eq(webhookEvent.event, "badge:created")))
    .orderBy(asc(webhookEvent.id))
    .all();
}

/** The order in which the head has the counts of badges. */
const BADGE_COUNTS: BadgeState[] = ["active", "suspended", "revoked", "expired", "replaced"];

/**
 * Makes D1's head what it would be if the first numbers of the range were badges in this state. For rows that a test writes into D1
 * before the application's first call, from which its allocator takes them over.
 */
export const countBadges = (
  { id, firstNumber }: { id: ApplicationId; firstNumber: number },
  count: number,
  state: BadgeState = "active",
): D1PreparedStatement =>
  boundHome(homeOf(id))
    .d1.prepare(
      `UPDATE application_head SET last_ordinal = ?2, last_change = ?2,
         range_segments = json_array(json_object('first', ?3, 'size', ?2, 'used', ?2)),
         statistics = json_set(statistics, '$[0][${BADGE_COUNTS.indexOf(state)}]', ?2) WHERE application_id = ?1`,
    )
    .bind(id, count, firstNumber);
