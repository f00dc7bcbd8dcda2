import * as z from "zod";
import { BADGE_STATES, INVITATION_STATES } from "./badge-lifecycle/states.ts";
import { HISTORY_ACTIONS } from "./history.ts";
import {
  DEFAULT_PER_PAGE,
  MAX_BADGE_DAYS,
  MAX_CLIENT_SIGNATURE_BYTES,
  MAX_DATE_TIME_CHARACTERS,
  MAX_IDEMPOTENCY_KEY_CHARACTERS,
  MAX_INVITATION_DAYS,
  MAX_INVITATIONS,
  MAX_METADATA_BYTES,
  MAX_METADATA_CHARACTERS,
  MAX_NAME_CHARACTERS,
  MAX_PER_PAGE,
  MAX_REASON_CHARACTERS,
  MAX_UDID_CHARACTERS,
  MAX_USER_ID_BYTES,
  MAX_USER_ID_CHARACTERS,
  MAX_YEAR,
  MIN_SEARCH_CHARACTERS,
  MIN_YEAR,
} from "./limits/request-limits.ts";
import type { MetadataField } from "./metadata-fields.ts";
import { EXAMPLE_BADGE, EXAMPLE_CLIENT_SIGNATURE, EXAMPLE_TOKEN } from "./openapi-examples.ts";
import { isSearchable } from "./text-search.ts";

/**
 * The schemas of requests. They validate, and `/openapi.json` is generated from them (src/docs-page/openapi/json-schemas.ts),
 * so each limit is defined once. `meta` adds descriptions, examples, and rules that JSON Schema cannot derive.
 */

/**
 * Text that every storage preserves: well-formed Unicode without control characters, which would take six bytes each in
 * JSON. As in JSON Schema, length counts code points.
 */
function text(maxCharacters: number, description: string, example: string) {
  return z
    .string()
    .regex(NO_CONTROL_CHARACTERS)
    .refine((value) => value.isWellFormed() && hasAtMost(value, maxCharacters))
    .meta({ minLength: 1, maxLength: maxCharacters, description, examples: [example] });
}

/** C0 and DEL (contract section 7). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression refuses them.
const NO_CONTROL_CHARACTERS = /^[^\u0000-\u001f\u007f]*$/;

/** A path cannot contain these as a user ID: URL parsers remove them (RFC 3986 section 5.2.4). */
const DOT_SEGMENTS: readonly string[] = [".", ".."];

/** A text has at most as many code points as UTF-16 code units, so most texts need no counting. */
const hasAtMost = (value: string, maxCharacters: number): boolean =>
  value.length <= maxCharacters || [...value].length <= maxCharacters;

/**
 * JSON Schema counts only characters, so `/openapi.json` has a keyword of its own for the maximum of UTF-8 bytes, of a text
 * or of all texts of an object.
 */
export const MAX_BYTES = "x-maxBytes";

const encoder = new TextEncoder();

/** UTF-8 bytes of some texts together. A code unit takes three at most, so most texts need no encoding. */
function hasAtMostBytes(values: readonly string[], maxBytes: number): boolean {
  const units = values.reduce((sum, value) => sum + value.length, 0);
  if (3 * units <= maxBytes) return true;
  return values.reduce((sum, value) => sum + encoder.encode(value).byteLength, 0) <= maxBytes;
}

/** An `X-Request-Id` that the service adopts from its caller. */
export const REQUEST_ID = /^[\w=-]{1,255}$/;

const PRINTABLE_ASCII = /^[\x20-\x7e]+$/;

export const udid = z.string().regex(PRINTABLE_ASCII).max(MAX_UDID_CHARACTERS);

/** The same check without zod, for every call of a device. */
export const isUdid = (text: string): boolean => text.length <= MAX_UDID_CHARACTERS && PRINTABLE_ASCII.test(text);

export const metadata = z
  .object({
    deviceModel: text(MAX_METADATA_CHARACTERS, "Model of the device, as its maker names it.", "Pixel 9").optional(),
    os: text(MAX_METADATA_CHARACTERS, "Operating system.", "Android").optional(),
    osVersion: text(MAX_METADATA_CHARACTERS, "Version of the operating system.", "16").optional(),
    sdkVersion: text(MAX_METADATA_CHARACTERS, "Version of the application's SDK.", "4.2.0").optional(),
  } satisfies Record<MetadataField, z.ZodType>)
  .refine((fields) =>
    hasAtMostBytes(
      Object.values(fields).filter((value) => value !== undefined),
      MAX_METADATA_BYTES,
    ),
  )
  .meta({
    description: `What the device is, for statistics and troubleshooting. At most ${MAX_METADATA_BYTES} bytes of UTF-8 together. Other fields are dropped.`,
    [MAX_BYTES]: MAX_METADATA_BYTES,
  });

/** A blank user ID counts as missing in a body, and is invalid in a path or a command. */
export const userId = text(
  MAX_USER_ID_CHARACTERS,
  `The application's own ID of the user who has logged in: at most ${MAX_USER_ID_BYTES} bytes of UTF-8. Not \`.\` or \`..\`, which a path cannot name.`,
  "alice",
)
  .refine((value) => value.trim() !== "" && !DOT_SEGMENTS.includes(value) && hasAtMostBytes([value], MAX_USER_ID_BYTES))
  .meta({ not: { enum: [...DOT_SEGMENTS] }, [MAX_BYTES]: MAX_USER_ID_BYTES });

/** The decoded header `actor` (contract section 23). */
export const actorName = text(MAX_NAME_CHARACTERS, "For whom the server calls.", "Ann Lee").refine(
  (value) => value.trim() !== "",
);

export const badgeRequest = z.object({
  userId,
  metadata: metadata.optional(),
  invitationToken: z
    .string()
    .meta({ description: "The `id` of an invitation, when the user was invited.", examples: [EXAMPLE_TOKEN] })
    .optional(),
});

/** Standard base64 with padding and zero pad bits, so that bytes have one encoding (RFC 4648 sections 3.5 and 4). */
const CANONICAL_BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$/;

/** The decoded length is computed without decoding. */
export const signRequest = z.object({
  base64: z
    .string()
    .regex(CANONICAL_BASE64)
    .refine((value) => decodedBytes(value) <= MAX_CLIENT_SIGNATURE_BYTES)
    .meta({
      contentEncoding: "base64",
      minLength: 1,
      maxLength: Math.ceil(MAX_CLIENT_SIGNATURE_BYTES / 3) * 4,
      description: `The signature that the client made: standard base64 with padding (RFC 4648 section 4), at most ${MAX_CLIENT_SIGNATURE_BYTES} bytes when decoded. The building defines what it signs and how.`,
      examples: [EXAMPLE_CLIENT_SIGNATURE],
    }),
  // Any value. A text that is not a badge number gets 404 UNKNOWN_BADGE, like another device's number; it does not make
  // the body invalid.
  badgeId: z
    .unknown()
    .meta({ type: "string", description: "The badge of this device that is to sign.", examples: [EXAMPLE_BADGE] })
    .optional(),
});

function decodedBytes(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

/** RFC 3339, with or without seconds. */
const DATE_TIMES = [z.iso.datetime({ offset: true }), z.iso.datetime({ offset: true, precision: -1 })];

/** ISO 8601 with a zone. Whether it lies ahead is checked against the clock. */
const dateTime = (description: string, example: string) =>
  z
    .string()
    .max(MAX_DATE_TIME_CHARACTERS)
    .refine((text) => DATE_TIMES.some((form) => form.safeParse(text).success))
    .refine(isInYears)
    .meta({ format: "date-time", description, examples: [example] });

/**
 * Responses have times in UTC, and a zone can move a time beyond the year that it is written with: 9999-12-31T23:59-01:00 is in
 * the year 10000.
 */
function isInYears(dateTime: string): boolean {
  const isYear = (year: number) => year >= MIN_YEAR && year <= MAX_YEAR;
  return isYear(Number(dateTime.slice(0, 4))) && isYear(new Date(dateTime).getUTCFullYear());
}

export const invitationRequest = z.object({
  expiresAt: dateTime(
    `Until when the invitation can be claimed: ISO 8601 with a zone (RFC 3339, seconds optional), in the future, at most ${MAX_INVITATION_DAYS} days ahead.`,
    "2027-01-22T18:00:00+01:00",
  ),
  badgeExpiresAt: dateTime(
    `End of the badge that is claimed: ISO 8601 with a zone, in the future, at most ${MAX_BADGE_DAYS} days ahead. The invitation ends with it, if that is earlier.`,
    "2027-01-23T00:00:00+01:00",
  ).optional(),
  badgeStartsAt: dateTime(
    "From when the badge that is claimed opens doors: ISO 8601 with a zone, before the badge's end.",
    "2027-01-22T08:00:00+01:00",
  ).optional(),
  name: text(MAX_NAME_CHARACTERS, "Who is invited, for the people who run the application.", "Ann Lee").optional(),
  userId: userId
    .meta({ description: "The user who is invited: only a device that names this user can claim the invitation." })
    .optional(),
});

/** The body of `POST /v1/invitations`. Each invitation is checked and refused separately. */
export const invitationsRequest = z.object({
  invitations: z
    .array(z.unknown().meta({ $ref: "#/components/schemas/InvitationRequest" }))
    .min(1)
    .max(MAX_INVITATIONS)
    .meta({ description: "Bodies of `POST /v1/invitation`." }),
});

/** The reason of a change, kept in the history. A blank reason counts as missing. */
const reason = text(MAX_REASON_CHARACTERS, "Why. The history keeps it.", "Lost his phone").optional();

/** The body of a `PATCH` that needs none. */
export const reasonRequest = z.object({ reason });

/** The body of `PATCH /v1/badges/{id}`: at least one of the two times. */
export const badgeTimesRequest = z.object({
  expiresAt: dateTime(
    "End of the badge: ISO 8601 with a zone; null for no end. A past time ends the badge now. Absent: unchanged.",
    "2027-01-23T00:00:00+01:00",
  )
    .nullable()
    .optional(),
  startsAt: dateTime(
    "From when the badge opens doors: ISO 8601 with a zone, before its end; null: from its issue on. Absent: unchanged.",
    "2027-01-22T08:00:00+01:00",
  )
    .nullable()
    .optional(),
  reason,
});

/** The header `Idempotency-Key`. */
export const idempotencyKey = z
  .string()
  .regex(/^[\x20-\x7e]+$/)
  .max(MAX_IDEMPOTENCY_KEY_CHARACTERS);

export const pageQuery = z.object({
  per_page: z
    .string()
    .regex(/^0*[1-9]\d*$/)
    .transform((digits) => Math.min(Number(digits), MAX_PER_PAGE))
    .default(DEFAULT_PER_PAGE)
    // Query parameters are text; the document calls it a number.
    .meta({ type: "integer", minimum: 1 }),
  cursor: z.string().optional(),
});

/** Part of a user ID or a name. */
const searchText = z
  .string()
  .refine((value) => hasAtLeast(value, MIN_SEARCH_CHARACTERS) && hasAtMost(value, MAX_USER_ID_CHARACTERS))
  .refine(isSearchable)
  .meta({
    minLength: MIN_SEARCH_CHARACTERS,
    maxLength: MAX_USER_ID_CHARACTERS,
    description: "Part of the user ID or of the name, in any case.",
  });

/** A page of things in a state. */
export const statePageQuery = <States extends readonly [string, ...string[]]>(states: States) =>
  pageQuery.extend({ state: z.enum(states).optional() });

/** The query of `GET /v1/badges`. */
export const badgePageQuery = statePageQuery(BADGE_STATES).extend({
  q: searchText.optional(),
  endsBefore: dateTime(
    "Only badges that end before this time: ISO 8601 with a zone.",
    "2027-01-23T00:00:00+01:00",
  ).optional(),
  order: z.literal("newest").meta({ description: "`newest`: newest first. Absent: oldest first." }).optional(),
});

const hasAtLeast = (value: string, minCharacters: number): boolean => [...value].length >= minCharacters;

/** The query of `GET /v1/invitations`. */
export const invitationPageQuery = statePageQuery(INVITATION_STATES).extend({
  from: dateTime(
    "Only invitations whose visit ends after this time: ISO 8601 with a zone.",
    "2027-01-22T00:00:00+01:00",
  ).optional(),
  until: dateTime(
    "Only invitations whose visit begins before this time: ISO 8601 with a zone.",
    "2027-01-23T00:00:00+01:00",
  ).optional(),
  q: searchText.optional(),
});

/** The query of `GET /v1/users`. */
export const userPageQuery = pageQuery.extend({ state: z.literal("blocked") });

/** The query of `GET /v1/history`. */
export const historyPageQuery = pageQuery.extend({
  badge: z
    .string()
    .regex(/^[1-9]\d{0,15}$/)
    .optional(),
  user: z.string().optional(),
  since: dateTime(
    "Only what was done at this time or later: ISO 8601 with a zone.",
    "2027-01-15T00:00:00+01:00",
  ).optional(),
  until: dateTime("Only what was done before this time: ISO 8601 with a zone.", "2027-01-16T00:00:00+01:00").optional(),
  actor: actorName.meta({ description: "Only what somebody of this name did.", examples: ["Ann Lee"] }).optional(),
  action: z
    .enum(HISTORY_ACTIONS)
    .meta({ description: "Only this action.", examples: ["badge:revoked"] })
    .optional(),
});
