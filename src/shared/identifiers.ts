import { base64url } from "jose";
import * as z from "zod";

/** ID of an application; the part before the underscore names its home (homes.ts). */
export const applicationId = z.string().brand<"ApplicationId">();
export type ApplicationId = z.infer<typeof applicationId>;

const APPLICATION_ID = /^app([2-9]|[1-9]\d{1,2})?_[0-9a-z]{20}$/;

/** @returns undefined if the text does not have the form of an application ID, so that D1 need not be queried */
export const parseApplicationId = (text: string): ApplicationId | undefined =>
  APPLICATION_ID.test(text) ? applicationId.parse(text) : undefined;

/** ID of a device in storage: the keyed hash of its udid (src/worker/applications/derived-ids.ts). */
export const deviceId = z.string().brand<"DeviceId">();
export type DeviceId = z.infer<typeof deviceId>;

/** An invitation in storage: the digest of its token. */
export const invitationDigest = z.string().brand<"InvitationDigest">();
export type InvitationDigest = z.infer<typeof invitationDigest>;

/** A user ID in storage after its user was erased: a keyed hash (src/worker/applications/derived-ids.ts). */
export const userDigest = z.string().brand<"UserDigest">();
export type UserDigest = z.infer<typeof userDigest>;

/** Crockford's base 32 in lower case: no ambiguous letters, and text sorts like the encoded bits. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

const TIME_CHARACTERS = 10;
const INDEX_CHARACTERS = 4;
const RANDOM_CHARACTERS = 16;
/** 192 bits; `REDACTED_FORM` reduces the randomness by less than one bit. */
const INVITATION_TOKEN_BYTES = 24;

/** 100 random bits, enough to be unique: the ID is public. @param home in which the application lives for ever */
export const newApplicationId = (home = 1): ApplicationId =>
  applicationId.parse(`app${home === 1 ? "" : home}_${randomText(20)}`);
export const newSecretId = (): string => `sec_${randomText(12)}`;

/** At least two upper-case letters, two lower-case letters and two digits. */
const REDACTED_FORM = /^(?=(?:[^A-Z]*[A-Z]){2})(?=(?:[^a-z]*[a-z]){2})(?:[^0-9]*[0-9]){2}/;

/**
 * An invitation token from random bytes: base64url, of a form that the platform's telemetry redacts from URLs (contract section 5).
 *
 * @param bytes at least 24, as random as a token must be
 * @returns null for the 3 % of texts that do not have the form; the caller then tries other bytes
 */
export function invitationTokenOf(bytes: Uint8Array): string | null {
  const text = base64Url(bytes.subarray(0, INVITATION_TOKEN_BYTES));
  return REDACTED_FORM.test(text) ? `inv_${text}` : null;
}

/** The invitation token is a secret (contract section 5 asks for 128 random bits). */
export function newInvitationToken(): string {
  for (;;) {
    const token = invitationTokenOf(crypto.getRandomValues(new Uint8Array(INVITATION_TOKEN_BYTES)));
    if (token !== null) return token;
  }
}

/** `bdss_` and 256 random bits as base64url (contract section 9). */
export function newApplicationSecret(): string {
  return `bdss_${base64Url(crypto.getRandomValues(new Uint8Array(32)))}`;
}

/** `evt_` and a ULID: 48 bits of time, 80 random bits. IDs sort by time of creation. */
export const newEventId = (nowMilliseconds: number): string =>
  `${eventIdPrefix(nowMilliseconds)}${randomText(RANDOM_CHARACTERS)}`;

/** Prefix of the IDs of events made in a millisecond; the IDs of earlier events sort before it. */
export const eventIdPrefix = (milliseconds: number): string => sortablePrefix("evt_", milliseconds);

/** The start of an ID that sorts by time. Times are from 1970 on. */
export const sortablePrefix = (prefix: string, milliseconds: number): string =>
  `${prefix}${sortableText(Math.max(0, milliseconds), TIME_CHARACTERS)}`;

/** The time of an event's ID, or of the start of one, in milliseconds; 0 for an empty text. */
export const eventIdTime = (id: string): number =>
  Array.from(id.slice("evt_".length, "evt_".length + TIME_CHARACTERS)).reduce(
    (time, character) => time * ALPHABET.length + ALPHABET.indexOf(character),
    0,
  );

/** An ID that sorts by time, then by `index` (below 32^4); the rest is random. */
export const sortableId = (prefix: string, milliseconds: number, index: number): string =>
  `${sortablePrefix(prefix, milliseconds)}${sortableText(index, INDEX_CHARACTERS)}${randomText(RANDOM_CHARACTERS - INDEX_CHARACTERS)}`;

/** The pseudonym of an erased user. */
export const newAlias = (): string => `${ALIAS}${randomText(RANDOM_CHARACTERS)}`;

const ALIAS = "erased:";

/** Whether a user ID has the form of an erased user's pseudonym. */
export const isAlias = (userId: string): boolean =>
  userId.startsWith(ALIAS) && userId.length === ALIAS.length + RANDOM_CHARACTERS;

/** 80 random bits: the ID of a call, of a script's command or of a log entry, and the feed's epoch. */
export const newRandomId = (): string => randomText(RANDOM_CHARACTERS);

function sortableText(value: number, characters: number): string {
  let rest = value;
  let text = "";
  for (let index = 0; index < characters; index++) {
    text = ALPHABET.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** @param token any text; the digest of a text that is not a token matches no invitation */
export const invitationDigestOf = async (token: string): Promise<InvitationDigest> =>
  invitationDigest.parse(await digestOf(token));

/**
 * SHA-256, base64url: the form in which D1 stores secrets and invitation tokens, which are too random to be guessed, and in
 * which a proof names its udid and its body (contract section 15).
 */
export async function digestOf(content: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return base64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

/** `User-Agent` of every webhook, by which receivers and their firewalls recognize the sender. */
export const USER_AGENT = "badge-distribution-service/1.0";

/** Base64 for URLs, without padding (RFC 4648 section 5). */
export const base64Url = (bytes: Uint8Array): string => base64url.encode(bytes);

const randomText = (characters: number): string => textOf(crypto.getRandomValues(new Uint8Array(characters)));

/** Each byte becomes one character, by its lowest five bits. */
function textOf(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += ALPHABET.charAt(byte & 31);
  return text;
}
