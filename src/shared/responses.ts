import * as z from "zod";
import { ACTOR_KINDS } from "./actor.ts";
import { BADGE_STATES } from "./badge-life/states.ts";
import {
  EXAMPLE_BADGE,
  EXAMPLE_EXPIRES_AT,
  EXAMPLE_JWK,
  EXAMPLE_KEY_THUMBPRINT,
  EXAMPLE_OTHER_BADGE,
  EXAMPLE_PUBLIC_KEY,
  EXAMPLE_SIGNATURE,
  EXAMPLE_TOKEN,
} from "./examples.ts";
import { metadata } from "./requests.ts";

/**
 * The schemas of responses and webhooks. They validate nothing at run time; tests check every response against them
 * (`test/support/documented.ts`).
 */

/** Contract section 1: decimal, no leading zeros. 2^53 - 1 has 16 digits. */
export const badgeNumber = z
  .string()
  .regex(/^[1-9][0-9]{0,15}$/)
  .meta({
    description: "A badge number: decimal, without leading zeros, at most 9007199254740991. Store it as text.",
    examples: [EXAMPLE_BADGE],
  });

export const time = z.iso.datetime();

const keyThumbprint = z
  .string()
  .regex(/^[\w-]{43}$/)
  .meta({
    description:
      "RFC 7638 thumbprint (SHA-256, base64url) of the key that the badge is bound to; absent: it is not bound.",
    examples: [EXAMPLE_KEY_THUMBPRINT],
  })
  .optional();

const startsAt = time
  .meta({
    description: "From when the badge opens doors; absent: from its issue on.",
    examples: ["2027-01-22T07:00:00.000Z"],
  })
  .optional();

const visitorName = z
  .string()
  .meta({ description: "Who was invited, if the invitation said it.", examples: ["Ann Lee"] })
  .optional();

const issuedAt = time.meta({ description: "When it was issued.", examples: ["2027-01-15T08:00:00.500Z"] });
const changedAt = time.meta({ description: "When it last changed.", examples: ["2027-01-15T08:00:00.500Z"] });

export const existingBadge = z.object({ badgeId: badgeNumber, keyThumbprint });

export const newBadge = z.object({
  badgeId: badgeNumber,
  publicKey: z.base64().meta({
    description: "The key that verifies every signature for this badge: ECDSA P-256, SPKI DER, base64.",
    examples: [EXAMPLE_PUBLIC_KEY],
  }),
  keyThumbprint,
});

export const badgeSignature = z.object({
  signature: z
    .string()
    .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/)
    .meta({ description: "A JWT: compact JWS, ES256 (RFC 7515, RFC 7519).", examples: [EXAMPLE_SIGNATURE] }),
});

export const actor = z
  .object({
    kind: z.enum(ACTOR_KINDS).meta({
      description:
        "`device`, `user` (a person for their own badges), `server`, `person` (with a console secret), `administrator` (the script), `service` (the clock).",
      examples: ["person"],
    }),
    name: z
      .string()
      .meta({ description: "As the console secret, the terminal or the caller names them.", examples: ["Tom"] })
      .optional(),
  })
  .meta({ description: "Who did it." });

export const badge = z.object({
  id: badgeNumber,
  userId: z.string().meta({ description: "As the device sent it.", examples: ["alice"] }),
  metadata: metadata.optional(),
  name: visitorName,
  state: z
    .enum(BADGE_STATES)
    .meta({ description: "Absent: the badge is active.", examples: ["suspended"] })
    .optional(),
  startsAt,
  expiresAt: time
    .meta({ description: "When the badge ends; absent: it has no end.", examples: ["2027-01-22T23:00:00.000Z"] })
    .optional(),
  issuedAt: issuedAt.optional(),
  changedAt: changedAt.optional(),
  changedBy: actor
    .meta({
      description:
        "In a list that a person's secret searched, filtered or ordered: who made the last change. Absent: nobody but the device, by a login, or it is not kept any more.",
    })
    .optional(),
});

export const badgePage = z.object({
  badges: z
    .array(badge)
    .meta({ description: "Issued badges only: no reservations. Oldest first, unless newest first was asked for." }),
});

export const invitationFields = {
  id: z.string().meta({
    description: "The invitation token: whoever presents it first gets the badge. The service keeps only its digest.",
    examples: [EXAMPLE_TOKEN],
  }),
  badgeId: badgeNumber,
  expiresAt: z.string().meta({
    format: "date-time",
    description: "Exactly as it was sent.",
    examples: [EXAMPLE_EXPIRES_AT],
  }),
};

export const badgeStartsAt = z.string().meta({
  format: "date-time",
  description: "From when the badge that is claimed opens doors, exactly as it was sent.",
  examples: ["2027-01-22T08:00:00+01:00"],
});

export const badgeExpiresAt = z.string().meta({
  format: "date-time",
  description: "End of the badge that is claimed, exactly as it was sent.",
  examples: ["2027-01-23T00:00:00+01:00"],
});

export const invitation = z.object({
  ...invitationFields,
  badgeExpiresAt: badgeExpiresAt.optional(),
  badgeStartsAt: badgeStartsAt.optional(),
  name: visitorName,
  userId: z
    .string()
    .meta({ description: "The user who is invited, if the request named one.", examples: ["alice"] })
    .optional(),
});

export const invitations = z.object({
  invitations: z
    .array(
      z.union([
        invitation,
        z.object({
          error: z.string().meta({
            description: "Why there is no such invitation: a code that `POST /v1/invitation` has, too.",
            examples: ["INVALID_EXPIRESAT"],
          }),
        }),
      ]),
    )
    .meta({ description: "One for each that was sent, in the same order." }),
});

export const revokedInvitation = z.object({
  ...invitationFields,
  revokedAt: time.meta({
    description: "When it was first revoked: the same in every response.",
    examples: ["2027-01-16T09:30:00.000Z"],
  }),
});

export const publicJwk = z
  .object({
    kty: z.literal("EC").meta({ description: "Key type.", examples: ["EC"] }),
    crv: z.literal("P-256").meta({ description: "Curve.", examples: ["P-256"] }),
    x: z.string().meta({ description: "Coordinate, base64url.", examples: [EXAMPLE_JWK.x] }),
    y: z.string().meta({ description: "Coordinate, base64url.", examples: [EXAMPLE_JWK.y] }),
    kid: z.string().meta({
      description: "Key ID, the RFC 7638 thumbprint: `kid` of the signatures by this key.",
      examples: [EXAMPLE_JWK.kid],
    }),
    alg: z.literal("ES256").meta({ description: "The only algorithm of this key.", examples: ["ES256"] }),
    use: z.literal("sig").meta({ description: "The key is for signatures.", examples: ["sig"] }),
  })
  .meta({ description: "A public key (RFC 7517)." });

export const jwkSet = z.object({
  keys: z.array(publicJwk).meta({ description: "Oldest first. Keys are added when they are rotated, never removed." }),
});

export const health = z.object({
  status: z.literal("ok").meta({ description: "The service and its database respond.", examples: ["ok"] }),
});

export const eventId = z.string().meta({
  description: "The event's ID, the same on every attempt: it shows that an event was received before.",
  examples: ["evt_01mcc5rmfmctq3726vv8xjfmh9"],
});

export const eventCreatedAt = time.meta({
  description: "When the event happened.",
  examples: ["2027-01-15T08:00:00.500Z"],
});

export const badgeCreated = z.object({
  id: eventId,
  event: z.literal("badge:created").meta({ description: "The event's kind.", examples: ["badge:created"] }),
  createdAt: eventCreatedAt,
  data: z
    .object({
      id: badgeNumber,
      userId: z.string().meta({ description: "As the device sent it.", examples: ["alice"] }),
      metadata: metadata.optional(),
      name: visitorName,
      startsAt,
      keyThumbprint,
      invitationId: z
        .string()
        .meta({ description: "The `id` of the invitation that was claimed, if one was.", examples: [EXAMPLE_TOKEN] })
        .optional(),
      replacedBadgeId: badgeNumber
        .meta({
          description:
            "The number that this user device had before it was invited. It is retired and never reissued: remove its access.",
          examples: [EXAMPLE_OTHER_BADGE],
        })
        .optional(),
    })
    .meta({ description: "The badge." }),
});

export const webhookTest = z.object({
  id: eventId,
  event: z.literal("webhook:test").meta({ description: "The event's kind.", examples: ["webhook:test"] }),
  createdAt: eventCreatedAt,
  data: z.object({}).meta({ description: "Empty." }),
});

const badgeState = z.enum(BADGE_STATES).meta({
  description: "Only an active badge opens doors. Revoked and replaced are final.",
  examples: ["active"],
});

const badgeViewFields = {
  id: badgeNumber,
  userId: z.string().meta({ description: "As the device sent it.", examples: ["alice"] }),
  state: badgeState,
  metadata: metadata.optional(),
  name: visitorName,
  startsAt,
  expiresAt: time
    .meta({
      description: "When the badge ends or ended; absent: it has no end.",
      examples: ["2027-01-22T23:00:00.000Z"],
    })
    .optional(),
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

const changeNumber = z.int().meta({
  description: "Number of the badge's last change within the application. A higher one is newer.",
  examples: [42],
});

export const badgeChanged = z.object({
  id: eventId,
  event: z
    .enum(["badge:suspended", "badge:resumed", "badge:revoked", "badge:expired", "badge:replaced"])
    .meta({ description: "The event's kind.", examples: ["badge:suspended"] }),
  createdAt: eventCreatedAt,
  data: z.object({ ...badgeViewFields, change: changeNumber }).meta({
    description: "The badge after this change, as `GET /v1/badges/{id}` shows it, and the number of the change.",
  }),
});

export const invitationEnded = z.object({
  id: eventId,
  event: z
    .enum(["invitation:revoked", "invitation:expired"])
    .meta({ description: "The event's kind.", examples: ["invitation:expired"] }),
  createdAt: eventCreatedAt,
  data: z
    .object({
      id: badgeNumber.meta({
        description: "The number that the invitation reserved. It may be given to somebody else after the reuse delay.",
        examples: [EXAMPLE_BADGE],
      }),
      expiresAt: invitationFields.expiresAt,
    })
    .meta({ description: "The invitation. Its token is in no event." }),
});

export const changePage = z.object({
  changes: z
    .array(
      z.object({
        ...badgeViewFields,
        change: changeNumber,
      }),
    )
    .meta({ description: "Each badge once, with its present state, in the order of its last change." }),
  more: z.boolean().meta({ description: "Whether there are more changes now.", examples: [false] }),
});

const blockableUser = {
  userId: z.string().meta({ description: "The application's own ID of the user.", examples: ["alice"] }),
  blocked: z.boolean().meta({ description: "Whether the user gets no badge.", examples: [true] }),
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
        blockedAt: time.meta({ description: "When the user was blocked.", examples: ["2027-01-15T08:00:00.500Z"] }),
      }),
    )
    .meta({ description: "Blocked users, in the order in which they were blocked." }),
});

export const erasedUser = z.object({
  userId: z.string().meta({
    description: "The random user ID that stands in place of the erased one.",
    examples: ["erased:3f9c2d51a07b4e68b1c2d3e4f5a6b7c8"],
  }),
  erased: z.int().meta({ description: "Badges that this call erased the user from.", examples: [2] }),
});
