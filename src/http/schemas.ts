import { z } from "zod";
import {
  DEFAULT_PER_PAGE,
  MAX_CLIENT_SIGNATURE_BYTES,
  MAX_INVITATION_DAYS,
  MAX_METADATA_CHARACTERS,
  MAX_PER_PAGE,
  MAX_UDID_CHARACTERS,
  MAX_USER_ID_CHARACTERS,
} from "../limits.ts";

/**
 * The shapes of requests and answers. They validate, and `/openapi.json` is made from them, so a limit stands in one
 * place.
 */

/** Text that every storage keeps as it is: well-formed Unicode without NUL. Length counts code points, as JSON Schema's. */
function text(maxCharacters: number) {
  return z
    .string()
    .refine((value) => value.isWellFormed() && !value.includes("\0") && [...value].length <= maxCharacters)
    .meta({ minLength: 1, maxLength: maxCharacters });
}

export const udid = z
  .string()
  .regex(/^[\x20-\x7e]+$/)
  .max(MAX_UDID_CHARACTERS);

export const metadata = z.object({
  deviceModel: text(MAX_METADATA_CHARACTERS).optional(),
  os: text(MAX_METADATA_CHARACTERS).optional(),
  osVersion: text(MAX_METADATA_CHARACTERS).optional(),
  sdkVersion: text(MAX_METADATA_CHARACTERS).optional(),
});

export const badgeRequest = z.object({
  userId: text(MAX_USER_ID_CHARACTERS),
  metadata: metadata.optional(),
  invitationToken: z.string().optional(),
});

/** Standard base64 with padding (RFC 4648 section 4); the length is counted without decoding. */
export const signRequest = z.object({
  base64: z
    .base64()
    .min(1)
    .refine((value) => decodedBytes(value) <= MAX_CLIENT_SIGNATURE_BYTES)
    .meta({ maxLength: Math.ceil(MAX_CLIENT_SIGNATURE_BYTES / 3) * 4 }),
});

function decodedBytes(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

/** ISO 8601 with a zone, RFC 3339 profile. That it lies ahead, at most a year, is checked against the clock. */
export const invitationRequest = z.object({ expiresAt: z.iso.datetime({ offset: true }) });

export const MAX_INVITATION_MILLISECONDS = MAX_INVITATION_DAYS * 24 * 3600 * 1000;

export const pageQuery = z.object({
  per_page: z
    .string()
    .regex(/^0*[1-9]\d*$/)
    .transform((digits) => Math.min(Number(digits), MAX_PER_PAGE))
    .default(DEFAULT_PER_PAGE),
  cursor: z.string().optional(),
});
