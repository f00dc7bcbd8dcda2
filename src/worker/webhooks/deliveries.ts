import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { eventPage } from "../../shared/overview-responses.ts";
import type { EventState } from "../../shared/schema.ts";
import type { Context } from "../context.ts";
import { Refusal } from "../refusal.ts";
import { type EndpointState, type EventRow, listEvents, replayEvent } from "../storage/webhook-list.ts";
import { sendWakeUps } from "./wake-up.ts";

/** An event as the application's server sees it (contract section 19); times are UTC with milliseconds. */
export type EventView = z.infer<typeof eventPage>["events"][number];

/** Sorts after every event ID, so the first page starts here. */
const NEWEST = "evt_~";

/** @returns a page of events, newest first, and the ID after which the next page starts; null on the last page */
export async function pageEvents(
  context: Context,
  applicationId: ApplicationId,
  { state, before, perPage }: { state: EventState | null; before: string | null; perPage: number },
): Promise<{ events: EventView[]; next: string | null }> {
  const page = { state, before: before ?? NEWEST, limit: perPage + 1 };
  const { events, endpoint } = await listEvents(context.db, applicationId, page);
  const shown = events.slice(0, perPage);
  return {
    events: shown.map((event) => viewEvent(event, endpoint)),
    next: events.length > perPage ? (shown.at(-1)?.id ?? null) : null,
  };
}

const payloadWithData = z.object({ data: z.record(z.string(), z.unknown()) });

function viewEvent(row: EventRow, endpoint: EndpointState | undefined): EventView {
  const { id, event, state, attempts, lastStatus, lastOutcome, lastResponse, createdAt, dueAt, deliveredAt } = row;
  const { data } = payloadWithData.parse(JSON.parse(row.payload));
  return {
    ...{ id, event, state, attempts, lastStatus, lastOutcome, lastResponse },
    createdAt: isoTime(createdAt),
    nextAttemptAt: isToBeSent(row, endpoint) ? isoTime(Math.max(dueAt, createdAt)) : null,
    deliveredAt: deliveredAt === null ? null : isoTime(deliveredAt),
    data,
  };
}

/** A test event is sent even to a held endpoint, because it shows whether the endpoint works again. */
function isToBeSent({ state, event }: EventRow, endpoint: EndpointState | undefined): boolean {
  if (state !== "pending" || !endpoint || endpoint.disabledAt !== null || endpoint.webhookUrl === null) return false;
  return endpoint.heldAt === null || event === "webhook:test";
}

const isoTime = (milliseconds: number): string => new Date(milliseconds).toISOString();

/**
 * Sends an event again at once, or as soon as the endpoint is released.
 *
 * @throws Refusal UNKNOWN_EVENT
 */
export async function replay(
  context: Context,
  applicationId: ApplicationId,
  eventId: string,
): Promise<{ id: string; state: "pending" | "held" }> {
  const state = await replayEvent(context.db, applicationId, eventId);
  if (state === undefined) throw new Refusal("UNKNOWN_EVENT");
  if (state === "pending") context.defer(sendWakeUps(context.queue, applicationId, [eventId]));
  return { id: eventId, state };
}
