import * as z from "zod";
import { ROLES } from "./actor.ts";
import {
  actor,
  badgeExpiresAt,
  badgeNumber,
  badgeStartsAt,
  eventCreatedAt,
  eventId,
  invitation,
  invitationFields,
  time,
} from "./responses.ts";
import { EVENT_STATES, INVITATION_STATES } from "./schema.ts";

/** The schemas of what an application's server sees of its settings, invitations, events and counts (contract section 19). */

export const applicationView = z.object({
  applicationId: z.string().meta({ description: "The application's ID.", examples: ["app_0123456789abcdefghjk"] }),
  name: z.string().meta({ description: "As the administrator named it.", examples: ["Main Street 1"] }),
  firstNumber: z.int().meta({ description: "First number of its range.", examples: [1_000_000_000] }),
  lastNumber: z.int().meta({ description: "Last number of its range.", examples: [1_009_999_999] }),
  requireSecret: z
    .boolean()
    .meta({ description: "Whether creating an invitation requires the secret.", examples: [true] }),
  requireProof: z.boolean().meta({ description: "Whether device calls need a DPoP proof.", examples: [false] }),
  statusList: z.boolean().meta({ description: "Whether it publishes status lists.", examples: [false] }),
  webhookUrl: z
    .string()
    .nullable()
    .meta({
      description: "Where its webhooks are sent; null: none are sent.",
      examples: ["https://example.com/hooks/badges"],
    }),
  invitationLink: z
    .string()
    .meta({
      description:
        "What the QR code of an invitation opens, with its token for `{token}`; absent: it has the token alone.",
      examples: ["https://app.example.com/visit/{token}"],
    })
    .optional(),
  signedIn: z
    .object({
      name: z.string().meta({ description: "Whose console secret it is.", examples: ["Ann Lee"] }),
      role: z.enum(ROLES).meta({ description: "What it may do.", examples: ["operator"] }),
    })
    .meta({ description: "Who calls, with a console secret; absent: the application's server." })
    .optional(),
});

const invitationState = z.enum(INVITATION_STATES).meta({
  description: "State of the invitation.",
  examples: ["pending"],
});

export const invitationPage = z.object({
  invitations: z
    .array(
      z.object({
        badgeId: badgeNumber,
        state: invitationState,
        createdAt: time.meta({ description: "When it was created.", examples: ["2027-01-15T08:00:00.500Z"] }),
        expiresAt: invitationFields.expiresAt,
        badgeExpiresAt: badgeExpiresAt.optional(),
        badgeStartsAt: badgeStartsAt.optional(),
        name: invitation.shape.name,
        userId: z
          .string()
          .meta({ description: "The user who claimed it, or who is to.", examples: ["alice"] })
          .optional(),
      }),
    )
    .meta({ description: "Newest first. Tokens are never listed: the service has only their digests." }),
});

const eventState = z.enum(EVENT_STATES).meta({
  description: "`exhausted`: all attempts failed. `held`: waits until the endpoint is released.",
  examples: ["delivered"],
});

const nullableTime = (description: string) =>
  time.nullable().meta({ description, examples: ["2027-01-15T08:00:01.000Z"] });

export const eventPage = z.object({
  events: z
    .array(
      z.object({
        id: eventId,
        event: z.string().meta({ description: "The event's kind.", examples: ["badge:created"] }),
        state: eventState,
        attempts: z.int().meta({ description: "Attempts since it was made or replayed.", examples: [1] }),
        lastStatus: z
          .int()
          .nullable()
          .meta({ description: "HTTP status of the last response.", examples: [204] }),
        lastOutcome: z
          .string()
          .nullable()
          .meta({ description: "How the last attempt ended, in one word.", examples: ["answered"] }),
        lastResponse: z
          .string()
          .nullable()
          .meta({ description: "First bytes of the last response.", examples: ["ok"] }),
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
  state: z.enum(["pending", "held"]).meta({
    description: "`held`: without a URL or while the endpoint is held; sent on release.",
    examples: ["pending"],
  }),
});

export const historyPage = z.object({
  history: z
    .array(
      z.object({
        at: time.meta({ description: "When.", examples: ["2027-01-15T08:00:00.500Z"] }),
        action: z.string().meta({ description: "What was done.", examples: ["badge:revoked"] }),
        actor,
        badgeId: badgeNumber.optional(),
        userId: z
          .string()
          .meta({ description: "The user concerned.", examples: ["alice"] })
          .optional(),
        requestId: z
          .string()
          .meta({ description: "`X-Request-Id` of the call.", examples: ["4a5b6c7d-0001-4e2f-8a9b-000000000001"] })
          .optional(),
        reason: z
          .string()
          .meta({ description: "As the caller gave it.", examples: ["Left the company"] })
          .optional(),
        detail: z
          .record(z.string(), z.unknown())
          .meta({ description: "What else there is to know, by action." })
          .optional(),
      }),
    )
    .meta({ description: "Newest first." }),
});

const counted = (description: string) => z.int().meta({ description, examples: [7] });

const valueCounts = z.object({
  values: z
    .array(
      z.object({
        value: z
          .string()
          .nullable()
          .meta({ description: "Null: the device did not send it.", examples: ["Android"] }),
        badges: counted("Issued badges with this value."),
      }),
    )
    .meta({ description: "The most frequent values." }),
  others: counted("Issued badges with another value."),
});

export const statistics = z.object({
  applicationId: applicationView.shape.applicationId,
  name: applicationView.shape.name,
  numbers: z
    .object({
      size: counted("Numbers in the range."),
      issued: counted("Numbers of badges that have not been replaced."),
      reserved: counted("Numbers that pending invitations reserve."),
      retired: counted("Numbers of badges that were replaced."),
      resting: counted("Numbers of ended invitations that cannot be issued yet."),
      left: counted("Numbers that can be issued."),
      used: counted("Numbers that cannot be issued."),
      usedPercent: z.number().meta({ description: "Rounded down to a tenth.", examples: [0.1] }),
    })
    .meta({ description: "The number range." }),
  badges: z
    .object({ deviceModel: valueCounts, os: valueCounts, osVersion: valueCounts, sdkVersion: valueCounts })
    .meta({ description: "Issued badges by metadata." }),
  invitations: z
    .object({
      pending: counted("Can be claimed."),
      claimed: counted("Were claimed."),
      revoked: counted("Were revoked."),
      expired: counted("Expired."),
    })
    .meta({ description: "Invitations by state." }),
  badgesByState: z
    .object({
      active: counted("Are active: they open doors."),
      suspended: counted("Are suspended."),
      revoked: counted("Were revoked."),
      expired: counted("Have expired."),
      replaced: counted("Were replaced by an invitation's badge."),
    })
    .meta({ description: "Badges by state." }),
  badgesPerDay: z
    .array(
      z.object({
        day: z.iso.date().meta({ description: "A day in UTC.", examples: ["2027-01-15"] }),
        badges: counted("Badges issued on that day."),
      }),
    )
    .meta({ description: "90 days, oldest first, today last." }),
  deliveries: z
    .array(
      z.object({
        state: eventState,
        outcome: z
          .string()
          .nullable()
          .meta({ description: "How the last attempt ended; null: none was made.", examples: ["answered"] }),
        events: counted("Events."),
      }),
    )
    .meta({ description: "Events by state and last outcome, most frequent first." }),
  logins: z
    .object({
      withToken: counted("With a token that names the user."),
      withoutToken: counted("Without a user token."),
      withWrongToken: counted("With a user token that would be refused."),
    })
    .meta({
      description: "Logins of the last day, counted while user tokens are only observed and not required; otherwise 0.",
    }),
  asOf: time.meta({
    description: "When this was counted: at most 5 minutes ago, or an hour with more than 20,000 badges.",
    examples: ["2027-01-15T08:00:00.500Z"],
  }),
});
