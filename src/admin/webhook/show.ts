import * as z from "zod";
import { isoTime } from "../../shared/time.ts";
import type { ApplicationRow } from "../application/record.ts";
import { argument, command } from "../command-line/command.ts";
import { fieldLines, formatTime, plain, shorten } from "../command-line/output.ts";
import { ADMIN } from "../command-line/shell.ts";
import type { Database } from "../platform/database.ts";
import { databaseOfEvent, type EventRow, findEvent, listedEvent, RESPONSE_CHARACTERS } from "./event.ts";

export const showCommand = command("show", {
  arguments: [argument("<event-id>", "", "evt_…", String)],
  summary: "show an event, its payload and its next attempt",
  description:
    "Shows one event: its badge number, its attempts and how the last one ended, when the next one is (UTC), and the " +
    "payload that is sent.",
  examples: ["", "--json"],
  work: async ({ homes }, id) => showEvent(await databaseOfEvent(homes, id), id),
  text: eventText,
});

const badgePayload = z.object({ data: z.object({ id: z.string() }) });

type ShownEvent = Awaited<ReturnType<typeof showEvent>>;

/**
 * An event as `webhook show --json` prints it: the keys of `webhook list`, and everything else that D1 has.
 *
 * @throws UserError when there is no such event
 */
export async function showEvent(database: Database, eventId: string) {
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
    /** A time in the past means at once. Null when no attempt follows, or while there is an obstacle. */
    nextAttemptAt: isDue ? isoTime(Math.max(event.dueAt ?? 0, event.leaseUntil, event.createdAt)) : null,
    obstacle,
    /** Null for a test event. */
    badgeNumber: badgePayload.safeParse(payload).data?.data.id ?? null,
    payload,
  };
}

/** What keeps an event from being sent: its application is disabled, has no URL, or its deliveries are held. */
function obstacleOf(
  { state, event }: EventRow,
  { disabledAt, webhookUrl, webhookHeldAt }: ApplicationRow,
): "disabled" | "no-url" | "held-endpoint" | null {
  if (state === "delivered" || state === "exhausted") return null;
  if (disabledAt !== null) return "disabled";
  if (webhookUrl === null) return "no-url";
  // A test event is sent anyway, because it shows whether the endpoint works again.
  return webhookHeldAt !== null && event !== "webhook:test" ? "held-endpoint" : null;
}

function eventText({ payload, ...event }: ShownEvent): string {
  const fields = fieldLines({
    "Event ID": event.id,
    Event: event.event,
    Application: event.applicationId,
    "Badge number": event.badgeNumber,
    State: event.state,
    Created: event.createdAt && formatTime(event.createdAt),
    Delivered: event.deliveredAt && formatTime(event.deliveredAt),
    Attempts: event.attempts,
    "Last status": event.lastStatus,
    "Last outcome": event.lastOutcome,
    "Last response": event.lastResponse ? shorten(event.lastResponse, RESPONSE_CHARACTERS) : undefined,
    "Last duration": event.lastMilliseconds === null ? undefined : `${event.lastMilliseconds} ms`,
    "Next attempt": nextAttemptText(event),
  });
  const body = JSON.stringify(payload, null, 2).split("\n");
  return [fields, "", "  Payload", ...body.map((line) => `  ${plain(line)}`)].join("\n");
}

function nextAttemptText({ state, applicationId, nextAttemptAt, obstacle }: Omit<ShownEvent, "payload">): string {
  if (state === "delivered" || state === "exhausted") return `none: the event is ${state}`;
  switch (obstacle) {
    case "disabled":
      return `none while the application is disabled: ${ADMIN} application enable ${applicationId}`;
    case "no-url":
      return `none without a webhook URL: ${ADMIN} application update ${applicationId} --webhook-url URL`;
    case "held-endpoint":
      return `none while deliveries are held: ${ADMIN} webhook test ${applicationId} releases them`;
    case null:
      break;
  }
  if (nextAttemptAt === null || Date.parse(nextAttemptAt) <= Date.now()) return "due now: within about a minute";
  return formatTime(nextAttemptAt);
}
