import * as z from "zod";
import { ROLES } from "./actor.ts";
import {
  actor,
  badgeExpiresAt,
  badgeNumber,
  badgeStartsAt,
  described,
  eventCreatedAt,
  eventId,
  invitation,
  invitationFields,
  time,
} from "./responses.ts";
import { EVENT_STATES, INVITATION_STATES } from "./schema.ts";

/** The schemas of what an application's server sees of its settings, invitations, events and counts (contract section 19). */

export const applicationView = z.object({
  applicationId: described(z.string(), "The application's ID.", "app_0123456789abcdefghjk"),
  name: described(z.string(), "As the administrator named it.", "Main Street 1"),
  firstNumber: described(z.int(), "First number of its range.", 1_000_000_000),
  lastNumber: described(z.int(), "Last number of its range.", 1_009_999_999),
  requireSecret: described(z.boolean(), "Whether creating an invitation requires the secret.", true),
  requireProof: described(z.boolean(), "Whether device calls need a DPoP proof.", false),
  statusList: described(z.boolean(), "Whether it publishes status lists.", false),
  signatureLifetimeSeconds: described(z.int(), "How long signatures are valid; absent: for ever.", 3600).optional(),
  webhookUrl: described(
    z.string().nullable(),
    "Where its webhooks are sent; null: none are sent.",
    "https://example.com/hooks/badges",
  ),
  invitationLink: described(
    z.string(),
    "What the QR code of an invitation opens, with its token for `{token}`: the service's page for visitors unless an administrator has set another. Absent: it has the token alone.",
    "https://app.example.com/visit/{token}",
  ).optional(),
  signedIn: z
    .object({
      name: described(z.string(), "Whose console secret it is.", "Ann Lee"),
      role: described(z.enum(ROLES), "What it may do.", "operator"),
    })
    .meta({ description: "Who calls, with a console secret; absent: the application's server." })
    .optional(),
});

const invitationState = described(z.enum(INVITATION_STATES), "State of the invitation.", "pending");

export const invitationPage = z.object({
  invitations: z
    .array(
      z.object({
        badgeId: badgeNumber,
        state: invitationState,
        createdAt: described(time, "When it was created.", "2027-01-15T08:00:00.500Z"),
        expiresAt: invitationFields.expiresAt,
        badgeExpiresAt: badgeExpiresAt.optional(),
        badgeStartsAt: badgeStartsAt.optional(),
        name: invitation.shape.name,
        userId: described(z.string(), "The user who claimed it, or who is to.", "alice").optional(),
      }),
    )
    .meta({
      description:
        "Newest first; with `from` or `until`, in the order in which visits begin. Tokens are never listed: the service has only their digests.",
    }),
});

export const accessPage = z.object({
  people: z
    .array(
      z.object({
        name: described(z.string(), "Whose console secret it is.", "Ann Lee"),
        role: described(z.enum(ROLES), "What it may do.", "operator"),
        createdAt: described(time, "When the secret was made.", "2027-01-15T08:00:00.500Z"),
      }),
    )
    .meta({ description: "By name. Secrets are never listed: the service has only their digests." }),
});

export const doorPage = z.object({
  doors: z
    .array(
      z.object({
        name: described(z.string(), "Which door has the secret.", "Main entrance"),
        createdAt: described(time, "When the secret was made.", "2027-01-15T08:00:00.500Z"),
        seenAt: described(
          time,
          "When the door called last. Absent: it has never called.",
          "2027-01-15T09:30:12.000Z",
        ).optional(),
        change: described(z.int().nonnegative(), "The last change that it had then.", 4711).optional(),
        isCurrent: described(
          z.boolean(),
          "Whether it called within 60 seconds and has the last change of status.",
          true,
        ),
      }),
    )
    .meta({ description: "By name. Secrets are never listed: the service has only their digests." }),
});

const eventState = described(
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

export const historyPage = z.object({
  history: z
    .array(
      z.object({
        at: described(time, "When.", "2027-01-15T08:00:00.500Z"),
        action: described(z.string(), "What was done.", "badge:revoked"),
        actor,
        badgeId: badgeNumber.optional(),
        userId: described(z.string(), "The user concerned.", "alice").optional(),
        requestId: described(
          z.string(),
          "`X-Request-Id` of the call.",
          "4a5b6c7d-0001-4e2f-8a9b-000000000001",
        ).optional(),
        reason: described(z.string(), "As the caller gave it.", "Left the company").optional(),
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
        value: described(z.string().nullable(), "Null: the device did not send it.", "Android"),
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
      coolingDown: counted("Numbers of ended invitations that cannot be issued yet."),
      left: counted("Numbers that can be issued."),
      used: counted("Numbers that cannot be issued."),
      usedPercent: described(z.number(), "Rounded down to a tenth.", 0.1),
    })
    .meta({ description: "The number range." }),
  badges: z
    .object({ deviceModel: valueCounts, os: valueCounts, osVersion: valueCounts, sdkVersion: valueCounts })
    .meta({ description: "Badges by metadata, of those that are sampled." }),
  sampled: counted("The newest badges, of which metadata is counted: 20,000 at most."),
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
        day: described(z.iso.date(), "A day in UTC.", "2027-01-15"),
        badges: counted("Badges issued on that day."),
      }),
    )
    .meta({ description: "90 days, oldest first, today last." }),
  deliveries: z
    .array(
      z.object({
        state: eventState,
        outcome: described(z.string().nullable(), "How the last attempt ended; null: none was made.", "answered"),
        events: counted("Events."),
      }),
    )
    .meta({
      description:
        "Events by state and last outcome, most frequent first. Of each state at most 10,000 are counted; delivered ones are the newest.",
    }),
  logins: z
    .object({
      withToken: counted("With a token that names the user."),
      withoutToken: counted("Without a user token."),
      withWrongToken: counted("With a user token that would be refused."),
    })
    .meta({
      description: "Logins of the last day, counted while user tokens are only observed and not required; otherwise 0.",
    }),
  asOf: described(time, "The moment of these figures.", "2027-01-15T08:00:00.500Z"),
});
