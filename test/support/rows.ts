import { and, asc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
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
