import * as z from "zod";
import { isoTime } from "../output.ts";
import type { Database } from "../platform/database.ts";
import type { ApplicationRow } from "./applications.ts";
import { type ListedEvent, listedEvent } from "./events.ts";
import { type EventRow, findEvent } from "./find-event.ts";

/** What must change before an event that is not sent yet can be: its application is disabled, has no URL, or its deliveries are held. */
export type EventObstacle = "disabled" | "no-url" | "held-endpoint";

/** An event as `webhook show --json` prints it: the keys of `webhook list`, and all else that is known of it. */
export interface ShownEvent extends ListedEvent {
  applicationId: string;
  /** One word for how the last attempt ended; null before the first. */
  lastOutcome: string | null;
  /** The first bytes of the last response. */
  lastResponse: string | null;
  lastMilliseconds: number | null;
  /** When the next attempt is due; a moment that has passed means at once. Null when none follows, or while `obstacle` is set. */
  nextAttemptAt: string | null;
  obstacle: EventObstacle | null;
  /** The badge that the event tells of; null for a test event. */
  badgeNumber: string | null;
  /** The body that is sent, parsed. */
  payload: unknown;
}

const badgePayload = z.object({ data: z.object({ id: z.string() }) });

/** @throws UserError when there is no such event */
export async function showEvent(database: Database, eventId: string): Promise<ShownEvent> {
  const { event, application } = await findEvent(database, eventId);
  const payload: unknown = JSON.parse(event.payload);
  const obstacle = obstacleOf(event, application);
  const isDue = event.state === "pending" && obstacle === null;
  return {
    ...listedEvent(event),
    applicationId: event.applicationId,
    lastOutcome: event.lastOutcome,
    lastResponse: event.lastResponse,
    lastMilliseconds: event.lastMilliseconds,
    nextAttemptAt: isDue ? isoTime(Math.max(event.dueAt, event.createdAt)) : null,
    obstacle,
    badgeNumber: badgePayload.safeParse(payload).data?.data.id ?? null,
    payload,
  };
}

function obstacleOf(
  { state, event }: EventRow,
  { disabledAt, webhookUrl, webhookHeldAt }: ApplicationRow,
): EventObstacle | null {
  if (state === "delivered" || state === "exhausted") return null;
  if (disabledAt !== null) return "disabled";
  if (webhookUrl === null) return "no-url";
  // A test event is sent all the same: it is how one finds out whether the endpoint works again.
  return webhookHeldAt !== null && event !== "webhook:test" ? "held-endpoint" : null;
}
