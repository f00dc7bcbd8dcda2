import { env } from "cloudflare:workers";
import { and, asc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { badge, webhookEvent } from "../../src/shared/schema.ts";

/** An application's rows in `badge`, in any state. */
export function badgeRows({ id }: { id: string }): Promise<(typeof badge.$inferSelect)[]> {
  return drizzle(env.DB).select().from(badge).where(eq(badge.applicationId, id)).orderBy(asc(badge.number)).all();
}

/** An application's `badge:created` rows in the outbox. */
export function eventRows({ id }: { id: string }): Promise<(typeof webhookEvent.$inferSelect)[]> {
  return drizzle(env.DB)
    .select()
    .from(webhookEvent)
    .where(and(eq(webhookEvent.applicationId, id), eq(webhookEvent.event, "badge:created")))
    .orderBy(asc(webhookEvent.id))
    .all();
}
