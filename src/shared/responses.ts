import * as z from "zod";
import { ACTOR_KINDS } from "./actor.ts";
import { BADGE_STATES, INVITATION_STATES } from "./badge-lifecycle/states.ts";
import {
  EXAMPLE_BADGE,
  EXAMPLE_EXPIRES_AT,
  EXAMPLE_JWK,
  EXAMPLE_KEY_THUMBPRINT,
  EXAMPLE_OTHER_BADGE,
  EXAMPLE_PUBLIC_KEY,
  EXAMPLE_SIGNATURE,
  EXAMPLE_TOKEN,
} from "./openapi-examples.ts";
import { metadata } from "./requests.ts";

/**
 * The schemas of responses and webhooks. They validate nothing at run time; tests check every response against them
 * (`test/support/documented.ts`).
 */

/** A schema with its description in the reference. */
export const described = <Schema extends z.ZodType>(schema: Schema, description: string, example: unknown): Schema =>
  schema.meta({ description, examples: [example] });

/** Contract section 1: decimal, no leading zeros. 2^53 - 1 has 16 digits. */
export const badgeNumber = described(
  z.string().regex(/^[1-9][0-9]{0,15}$/),
  "A badge number: decimal, without leading zeros, at most 9007199254740991. Store it as text.",
  EXAMPLE_BADGE,
);

export const time = z.iso.datetime();

const keyThumbprint = described(
  z.string().regex(/^[\w-]{43}$/),
  "RFC 7638 thumbprint (SHA-256, base64url) of the key that the badge is bound to; absent: it is not bound.",
  EXAMPLE_KEY_THUMBPRINT,
).optional();

const startsAt = described(
  time,
  "From when the badge opens doors; absent: from its issue on.",
  "2027-01-22T07:00:00.000Z",
).optional();

const visitorName = described(z.string(), "Who was invited, if the invitation said it.", "Ann Lee").optional();

const issuedAt = described(time, "When it was issued.", "2027-01-15T08:00:00.500Z");
const changedAt = described(time, "When it last changed.", "2027-01-15T08:00:00.500Z");

export const existingBadge = z.object({ badgeId: badgeNumber, keyThumbprint });

export const newBadge = z.object({
  badgeId: badgeNumber,
  publicKey: described(
    z.base64(),
    "The key that verifies every signature for this badge: ECDSA P-256, SPKI DER, base64.",
    EXAMPLE_PUBLIC_KEY,
  ),
  keyThumbprint,
});

export const badgeSignature = z.object({
  signature: described(
    z.string().regex(/^[\w-]+\.[\w-]+\.[\w-]+$/),
    "A JWT: compact JWS, ES256 (RFC 7515, RFC 7519).",
    EXAMPLE_SIGNATURE,
  ),
});

export const actor = z
  .object({
    kind: described(
      z.enum(ACTOR_KINDS),
      "`device`, `user` (a person for their own badges), `server`, `person` (with a console secret), `administrator` (the script), `service` (the clock).",
      "person",
    ),
    name: described(z.string(), "As the console secret, the terminal or the caller names them.", "Tom").optional(),
  })
  .meta({ description: "Who did it." });

export const badge = z.object({
  id: badgeNumber,
  userId: described(z.string(), "As the device sent it.", "alice"),
  metadata: metadata.optional(),
  name: visitorName,
  state: described(z.enum(BADGE_STATES), "Absent: the badge is active.", "suspended").optional(),
  startsAt,
  expiresAt: described(time, "When the badge ends; absent: it has no end.", "2027-01-22T23:00:00.000Z").optional(),
  issuedAt: issuedAt.optional(),
  changedAt: changedAt.optional(),
  changedBy: actor
    .meta({
      description:
        "In a list that was searched, filtered or ordered with a person's secret: who made the last change. Absent if a login was the last change, or if the history no longer has it.",
    })
    .optional(),
});

export const badgePage = z.object({
  badges: z
    .array(badge)
    .meta({ description: "Issued badges only: no reservations. Oldest first, unless newest first was asked for." }),
});

export const invitationFields = {
  id: described(
    z.string(),
    "The invitation token: the first device that presents it gets the badge. Until then the service keeps only its digest.",
    EXAMPLE_TOKEN,
  ),
  badgeId: badgeNumber,
  expiresAt: z.string().meta({
    format: "date-time",
    description: "Exactly as it was sent.",
    examples: [EXAMPLE_EXPIRES_AT],
  }),
};

export const badgeStartsAt = z.string().meta({
  format: "date-time",
  description:
    "From when the badge that is claimed opens doors, exactly as it was sent, unless it was changed after the claim.",
  examples: ["2027-01-22T08:00:00+01:00"],
});

export const badgeExpiresAt = z.string().meta({
  format: "date-time",
  description: "End of the badge that is claimed, exactly as it was sent, unless it was changed after the claim.",
  examples: ["2027-01-23T00:00:00+01:00"],
});

export const invitation = z.object({
  ...invitationFields,
  badgeExpiresAt: badgeExpiresAt.optional(),
  badgeStartsAt: badgeStartsAt.optional(),
  name: visitorName,
  userId: described(z.string(), "The user who is invited, if the request named one.", "alice").optional(),
});

export const describedInvitation = z.object({
  state: described(z.enum(INVITATION_STATES), "State of the invitation.", "pending"),
  expiresAt: invitationFields.expiresAt,
  badgeStartsAt: badgeStartsAt.optional(),
  badgeExpiresAt: badgeExpiresAt.optional(),
  name: visitorName,
  userId: described(
    z.string(),
    "The user who may claim it; absent if any holder of the token may.",
    "alice",
  ).optional(),
  applicationName: described(
    z.string(),
    "Where the visitor is expected, as the administrator named it.",
    "Main Street 1",
  ),
});

export const invitations = z.object({
  invitations: z
    .array(
      z.union([
        invitation,
        z.object({
          error: described(
            z.string(),
            "Why there is no such invitation: a code that `POST /v1/invitation` has, too.",
            "INVALID_EXPIRESAT",
          ),
        }),
      ]),
    )
    .meta({ description: "One for each that was sent, in the same order." }),
});

export const revokedInvitation = z.object({
  ...invitationFields,
  revokedAt: described(time, "When it was first revoked: the same in every response.", "2027-01-16T09:30:00.000Z"),
});

export const erasedInvitation = z.object({ badgeId: invitationFields.badgeId });

export const publicJwk = z
  .object({
    kty: described(z.literal("EC"), "Key type.", "EC"),
    crv: described(z.literal("P-256"), "Curve.", "P-256"),
    x: described(z.string(), "Coordinate, base64url.", EXAMPLE_JWK.x),
    y: described(z.string(), "Coordinate, base64url.", EXAMPLE_JWK.y),
    kid: described(
      z.string(),
      "Key ID, the RFC 7638 thumbprint: `kid` of the signatures by this key.",
      EXAMPLE_JWK.kid,
    ),
    alg: described(z.literal("ES256"), "The only algorithm of this key.", "ES256"),
    use: described(z.literal("sig"), "The key is for signatures.", "sig"),
  })
  .meta({ description: "A public key (RFC 7517)." });

export const jwkSet = z.object({
  keys: z.array(publicJwk).meta({ description: "Oldest first. Keys are added when they are rotated, never removed." }),
});

export const health = z.object({
  status: described(z.literal("ok"), "The service and its database respond.", "ok"),
});

export const eventId = described(
  z.string(),
  "The event's ID, the same on every attempt: it shows that an event was received before.",
  "evt_01mcc5rmfmctq3726vv8xjfmh9",
);

export const eventCreatedAt = described(time, "When the event happened.", "2027-01-15T08:00:00.500Z");

/** The body of a webhook. @param example of its kind */
const event = <Kind extends z.ZodType, Data extends z.ZodType>(kind: Kind, example: string, data: Data) =>
  z.object({ id: eventId, event: described(kind, "The event's kind.", example), createdAt: eventCreatedAt, data });

export const badgeCreated = event(
  z.literal("badge:created"),
  "badge:created",
  z
    .object({
      id: badgeNumber,
      userId: described(z.string(), "As the device sent it.", "alice"),
      metadata: metadata.optional(),
      name: visitorName,
      startsAt,
      keyThumbprint,
      invitationId: described(
        z.string(),
        "The `id` of the invitation that was claimed, if one was.",
        EXAMPLE_TOKEN,
      ).optional(),
      replacedBadgeId: described(
        badgeNumber,
        "The number that this user device had before it was invited. It is retired and never reissued: remove its access.",
        EXAMPLE_OTHER_BADGE,
      ).optional(),
    })
    .meta({ description: "The badge." }),
);

export const webhookTest = event(
  z.literal("webhook:test"),
  "webhook:test",
  z.object({}).meta({ description: "Empty." }),
);

const badgeViewFields = {
  id: badgeNumber,
  userId: described(z.string(), "As the device sent it.", "alice"),
  state: described(z.enum(BADGE_STATES), "Only an active badge opens doors. Revoked and replaced are final.", "active"),
  metadata: metadata.optional(),
  name: visitorName,
  startsAt,
  expiresAt: described(
    time,
    "When the badge ends or ended; absent: it has no end.",
    "2027-01-22T23:00:00.000Z",
  ).optional(),
  keyThumbprint,
  issuedAt,
  changedAt,
};

/** Contract sections 12 and 23. */
export const badgeView = z.object(badgeViewFields);

/** Contract section 22. */
export const ownBadges = z.object({
  badges: z.array(badgeView).meta({ description: "The user's active and suspended badges, newest first." }),
});

const changeNumber = described(
  z.int(),
  "Number of the badge's last change within the application. A higher one is newer.",
  42,
);

const changedBadge = z.object({ ...badgeViewFields, change: changeNumber });

export const badgeChanged = event(
  z.enum(["badge:suspended", "badge:resumed", "badge:revoked", "badge:expired", "badge:replaced"]),
  "badge:suspended",
  changedBadge.meta({
    description: "The badge after this change, as `GET /v1/badges/{id}` shows it, and the number of the change.",
  }),
);

export const invitationEnded = event(
  z.enum(["invitation:revoked", "invitation:expired"]),
  "invitation:expired",
  z
    .object({
      id: described(
        badgeNumber,
        "The number that the invitation reserved. It may be given to somebody else after the reuse delay.",
        EXAMPLE_BADGE,
      ),
      expiresAt: invitationFields.expiresAt,
    })
    .meta({ description: "The invitation. Its token is in no event." }),
);

export const changePage = z.object({
  changes: z
    .array(changedBadge)
    .meta({ description: "Each badge once, with its present state, in the order of its last change." }),
  more: described(z.boolean(), "Whether there are more changes now.", false),
});

const blockableUser = {
  userId: described(z.string(), "The application's own ID of the user.", "alice"),
  blocked: described(z.boolean(), "Whether the user gets no badge.", true),
};

export const userView = z.object(blockableUser);

export const blockedUserView = z.object({
  ...blockableUser,
  revoked: z.array(badgeNumber).meta({ description: "The badges that this call revoked." }),
});

export const blockedUserPage = z.object({
  users: z
    .array(
      z.object({
        ...blockableUser,
        blockedAt: described(time, "When the user was blocked.", "2027-01-15T08:00:00.500Z"),
      }),
    )
    .meta({ description: "Blocked users, in the order in which they were blocked." }),
});

export const erasedUser = z.object({
  userId: described(z.string(), "The random user ID that replaces the erased one.", "erased:3f9c2d51a07b4e68"),
  erased: described(z.int(), "Badges that this call erased the user from.", 2),
});
