import { and, eq } from "drizzle-orm";
import { application, webhookEvent } from "../../shared/schema.ts";
import { ADMIN, UserError } from "../errors.ts";
import type { Database } from "../platform/database.ts";
import type { ApplicationRow } from "./applications.ts";

export type EventRow = typeof webhookEvent.$inferSelect;

const EVENT_ID = /^evt_[0-9a-z]{26}$/;

/**
 * Finds an event by its ID alone, which is unique. The key of events begins with the application, so each application is
 * looked up in it: few reads, however many events there are.
 *
 * @throws UserError when there is no such event
 */
export async function findEvent(
  database: Database,
  eventId: string,
): Promise<{ event: EventRow; application: ApplicationRow }> {
  if (!EVENT_ID.test(eventId)) {
    throw new UserError(
      `"${eventId}" is not an event ID, which looks like evt_…: ${ADMIN} webhook list app_… shows them.`,
    );
  }
  const [found] = await database.run((orm) =>
    orm
      .select({ event: webhookEvent, application })
      .from(application)
      .crossJoin(webhookEvent)
      .where(and(eq(webhookEvent.applicationId, application.id), eq(webhookEvent.id, eventId))),
  );
  if (found === undefined) {
    throw new UserError(`There is no event ${eventId}: ${ADMIN} webhook list app_… shows those there are.`);
  }
  return found;
}
