import * as z from "zod";
import { described, eventCreatedAt, eventId, time } from "./responses.ts";
import { EVENT_STATES } from "./schema.ts";

/** The schemas of webhook events, as they are listed and sent again. */

export const eventState = described(
  z.enum(EVENT_STATES),
  "`exhausted`: all attempts failed. `held`: waits until the endpoint is released.",
  "delivered",
);

const nullableTime = (description: string) =>
  time.nullable().meta({ description, examples: ["2027-01-15T08:00:01.000Z"] });

export const eventPage = z.object({
  events: z
    .array(
      z.object({
        id: eventId,
        event: described(z.string(), "The event's kind.", "badge:created"),
        state: eventState,
        attempts: described(z.int(), "Attempts since it was made or replayed.", 1),
        lastStatus: described(z.int().nullable(), "HTTP status of the last response.", 204),
        lastOutcome: described(z.string().nullable(), "How the last attempt ended, in one word.", "answered"),
        lastResponse: described(z.string().nullable(), "First bytes of the last response.", "ok"),
        createdAt: eventCreatedAt,
        nextAttemptAt: nullableTime(
          "When the next attempt is due; a moment that has passed means at once. Null: none follows, or none while the application is disabled, has no URL, or its endpoint is held.",
        ),
        deliveredAt: nullableTime("When it was delivered."),
        data: z.record(z.string(), z.unknown()).meta({ description: "`data` of the webhook's body." }),
      }),
    )
    .meta({ description: "Newest first." }),
});

export const replayedEvent = z.object({
  id: eventId,
  state: described(
    z.enum(["pending", "held"]),
    "`held`: without a URL or while the endpoint is held; sent on release.",
    "pending",
  ),
});
