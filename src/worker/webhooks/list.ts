import * as z from "zod";
import type { AuditContext } from "../../shared/actor.ts";
import type { eventPage } from "../../shared/event-responses.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { EventState } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { ApiError } from "../api-error.ts";
import type { Context } from "../context.ts";
import { cursorCodec } from "../cursor.ts";
import { type EndpointState, type EventRow, listEvents, replayEvent } from "../storage/webhook-list.ts";
import { enqueueDeliveries } from "./delivery-message.ts";

/** An event as the application's server sees it; times are UTC with milliseconds. */
type EventView = z.infer<typeof eventPage>["events"][number];

/** Cursors have the ID of a page's last event. */
export const EVENT_CURSOR = cursorCodec("events", z.string());

/** @returns a page of events, newest first, and the ID after which the next page starts; null on the last page */
export async function pageEvents(
  context: Context,
  applicationId: ApplicationId,
  page: { state: EventState | null; after: string | null; perPage: number },
): Promise<{ events: EventView[]; next: string | null }> {
  const { items, last, endpoint } = await listEvents(context.db, applicationId, page);
  return { events: items.map((event) => viewEvent(event, endpoint)), next: last?.id ?? null };
}

const payloadWithData = z.object({ data: z.record(z.string(), z.unknown()) });

function viewEvent(row: EventRow, endpoint: EndpointState | undefined): EventView {
  const { id, event, state, attempts, lastStatus, lastOutcome, lastResponse, createdAt, dueAt, deliveredAt } = row;
  const { data } = payloadWithData.parse(JSON.parse(row.payload));
  return {
    ...{ id, event, state, attempts, lastStatus, lastOutcome, lastResponse },
    createdAt: isoTime(createdAt),
    nextAttemptAt: isToBeSent(row, endpoint) ? isoTime(Math.max(dueAt, createdAt)) : null,
    deliveredAt: isoTime(deliveredAt),
    data,
  };
}

/** A test event is sent even to a held endpoint, because it shows whether the endpoint works again. */
function isToBeSent({ state, event }: EventRow, endpoint: EndpointState | undefined): boolean {
  if (state !== "pending" || !endpoint || endpoint.webhookUrl === null) return false;
  return endpoint.heldAt === null || event === "webhook:test";
}

/**
 * Sends an event again at once, or as soon as the endpoint is released.
 *
 * @throws ApiError UNKNOWN_EVENT
 */
export async function replay(
  context: Context,
  applicationId: ApplicationId,
  eventId: string,
  audit: AuditContext,
): Promise<{ id: string; state: "pending" | "held" }> {
  const state = await replayEvent(context.db, applicationId, eventId, audit, context.now());
  if (state === undefined) throw new ApiError("UNKNOWN_EVENT");
  if (state === "pending") context.defer(enqueueDeliveries(context.queue, applicationId, [eventId]));
  return { id: eventId, state };
}
