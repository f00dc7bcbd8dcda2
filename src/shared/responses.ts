import * as z from "zod";
import {
  EXAMPLE_BADGE,
  EXAMPLE_EXPIRES_AT,
  EXAMPLE_JWK,
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

/** Section 1: decimal, no leading zeros. 2^53 - 1 has 16 digits. */
const badgeNumber = z
  .string()
  .regex(/^[1-9][0-9]{0,15}$/)
  .meta({
    description: "A badge number: decimal, without leading zeros, at most 9007199254740991. Keep it as text.",
    examples: [EXAMPLE_BADGE],
  });

const time = z.iso.datetime();

export const existingBadge = z.object({ badgeId: badgeNumber });

export const newBadge = z.object({
  badgeId: badgeNumber,
  publicKey: z.base64().meta({
    description: "The key that verifies every signature for this badge: ECDSA P-256, SPKI DER, base64.",
    examples: [EXAMPLE_PUBLIC_KEY],
  }),
});

export const badgeSignature = z.object({
  signature: z
    .string()
    .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/)
    .meta({ description: "A JWT: compact JWS, ES256 (RFC 7515, RFC 7519).", examples: [EXAMPLE_SIGNATURE] }),
});

export const badge = z.object({
  id: badgeNumber,
  userId: z.string().meta({ description: "As the device sent it.", examples: ["alice"] }),
  metadata: metadata.optional(),
});

export const badgePage = z.object({
  badges: z
    .array(badge)
    .meta({ description: "Oldest first. Issued badges only: no reservations, no retired numbers." }),
});

const invitationFields = {
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

export const invitation = z.object(invitationFields);

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
    use: z.literal("sig").meta({ description: "It signs.", examples: ["sig"] }),
  })
  .meta({ description: "A public key (RFC 7517)." });

export const jwkSet = z.object({
  keys: z.array(publicJwk).meta({ description: "Oldest first. Keys are added when they are rotated, never removed." }),
});

export const health = z.object({
  status: z.literal("ok").meta({ description: "The service and its database respond.", examples: ["ok"] }),
});

const eventId = z.string().meta({
  description: "The event's ID, the same on every attempt: it identifies an event that was received before.",
  examples: ["evt_01mcc5rmfmctq3726vv8xjfmh9"],
});

const eventCreatedAt = time.meta({ description: "When it happened.", examples: ["2027-01-15T08:00:00.500Z"] });

export const badgeCreated = z.object({
  id: eventId,
  event: z.literal("badge:created").meta({ description: "The event's kind.", examples: ["badge:created"] }),
  createdAt: eventCreatedAt,
  data: z
    .object({
      id: badgeNumber,
      userId: z.string().meta({ description: "As the device sent it.", examples: ["alice"] }),
      metadata: metadata.optional(),
      invitationId: z
        .string()
        .meta({ description: "The `id` of the invitation that was claimed, if one was.", examples: [EXAMPLE_TOKEN] })
        .optional(),
      replacedBadgeId: badgeNumber
        .meta({
          description:
            "The number that this user device had before its invitation. It is retired: take its access away. Never reissued.",
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
  data: z.object({}).meta({ description: "Nothing." }),
});
