import * as z from "zod";
import { described, time } from "./responses.ts";
import { ROLES } from "./roles.ts";

/** The schemas of an application's settings, of who has a console secret, and of its doors. */

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
