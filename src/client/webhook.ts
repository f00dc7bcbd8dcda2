import { fromBase64 } from "./base64.ts";
import { parseJson } from "./json.ts";
import { readWebhookBody, type WebhookBody } from "./webhook-body.ts";

/** The default of the Standard Webhooks libraries. The service signs each attempt anew, so retries are never too old. */
const DEFAULT_TOLERANCE_SECONDS = 300;
/** The service sends one for each live secret, at most two; the limit bounds the work for a forged header. */
const MAX_SIGNATURES = 8;
const SIGNATURE_PREFIX = "v1,";

/** A webhook as it was received. */
export interface WebhookToVerify {
  /** `request.headers`: a `Headers` object, or the record of node:http. */
  headers: { get(name: string): string | null } | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The body as it was received, bytes or text: JSON that was parsed and serialized again has another signature. */
  body: Uint8Array | ArrayBuffer | string;
  /** The application's secret, or both while two are live. */
  secrets: string | readonly string[];
  /** Allowed difference of `webhook-timestamp` from `now`, in both directions. Default 300. */
  toleranceSeconds?: number;
  /** Milliseconds since 1970-01-01 UTC. Default `Date.now()`. */
  now?: number;
}

/** A genuine webhook: respond with a 2xx status. */
export interface VerifiedWebhook extends WebhookBody {
  ok: true;
}

/**
 * Why a webhook was refused, in the order of the checks:
 *
 * - `missing-header`: `webhook-id`, `webhook-timestamp`, `webhook-signature` or `Signature` is missing or repeated
 * - `malformed-timestamp`: not a number of seconds
 * - `stale-timestamp`: too old or too new: a replay, or a wrong clock
 * - `wrong-signature`: at least one of the two signatures was not made with any of the secrets over exactly these bytes
 * - `malformed-event`: genuine, but not what the contract says
 */
export type WebhookFailure =
  | "missing-header"
  | "malformed-timestamp"
  | "stale-timestamp"
  | "wrong-signature"
  | "malformed-event";

/** Respond with a 4xx status; `reason` is for the log. */
export interface WebhookRefused {
  ok: false;
  reason: WebhookFailure;
}

/**
 * Verifies a webhook: Standard Webhooks 1.0 (HMAC-SHA256 over ID, time and body) and the `Signature` header (HMAC-SHA1
 * over the body), both with WebCrypto's `verify`, which compares in constant time.
 *
 * @throws RangeError without a secret, or if `now` or `toleranceSeconds` is not a finite number of at least 0. These
 *   mistakes of the caller would turn checks off. A webhook never causes an error.
 */
export async function verifyWebhook(webhook: WebhookToVerify): Promise<VerifiedWebhook | WebhookRefused> {
  const { headers, secrets, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, now = Date.now() } = webhook;
  for (const value of [toleranceSeconds, now]) {
    if (!(Number.isFinite(value) && value >= 0))
      throw new RangeError("now or toleranceSeconds is not a finite number of at least 0");
  }
  // Callers in JavaScript may pass a missing value.
  const keys = await importSecrets(typeof secrets === "string" ? [secrets] : (secrets ?? []));
  const sent = readHeaders(headers);
  if (sent === null) return refused("missing-header");
  if (!/^\d{1,15}$/.test(sent.timestamp)) return refused("malformed-timestamp");
  if (Math.abs(Math.floor(now / 1000) - Number(sent.timestamp)) > toleranceSeconds) return refused("stale-timestamp");
  const body = bytesOf(webhook.body);
  if (!(await hasStandardSignature(keys.sha256, sent, body))) return refused("wrong-signature");
  if (!(await isSignedWithAny(keys.sha1, sent.bodySignature, body))) return refused("wrong-signature");
  const read = readWebhookBody(parseJson(new TextDecoder().decode(body)));
  return read ? { ok: true, ...read } : refused("malformed-event");
}

/** HMAC keys of the UTF-8 bytes of the secrets. */
interface Keys {
  sha1: CryptoKey[];
  sha256: CryptoKey[];
}

async function importSecrets(secrets: readonly string[]): Promise<Keys> {
  // An unset secret must not become an empty key, with which anyone can sign.
  const arePresent = secrets.length > 0 && secrets.every((secret) => typeof secret === "string" && secret !== "");
  if (!arePresent) throw new RangeError("a webhook cannot be verified without a secret");
  const bytes = secrets.map((secret) => new TextEncoder().encode(secret));
  const keys = (hash: string) =>
    Promise.all(bytes.map((raw) => crypto.subtle.importKey("raw", raw, { name: "HMAC", hash }, false, ["verify"])));
  return { sha1: await keys("SHA-1"), sha256: await keys("SHA-256") };
}

interface SentHeaders {
  id: string;
  timestamp: string;
  /** One or more of `v1,` and base64, separated by spaces. */
  signatures: string;
  /** Base64. */
  bodySignature: string;
}

function readHeaders(headers: WebhookToVerify["headers"]): SentHeaders | null {
  const id = headerOf(headers, "webhook-id");
  const timestamp = headerOf(headers, "webhook-timestamp");
  const signatures = headerOf(headers, "webhook-signature");
  const bodySignature = headerOf(headers, "signature");
  const isComplete = id !== null && timestamp !== null && signatures !== null && bodySignature !== null;
  return isComplete ? { id, timestamp, signatures, bodySignature } : null;
}

/** Null unless it is present exactly once. Names are case-insensitive (RFC 9110 section 5.1). */
function headerOf(headers: WebhookToVerify["headers"], name: string): string | null {
  if (isHeaders(headers)) return headers.get(name);
  const values = Object.entries(headers)
    .filter(([each]) => each.toLowerCase() === name)
    .flatMap(([, value]) => value ?? []);
  return values.length === 1 ? (values[0] ?? null) : null;
}

/** Not `instanceof`: a library may have its own `Headers` class. */
const isHeaders = (headers: WebhookToVerify["headers"]): headers is { get(name: string): string | null } =>
  typeof headers.get === "function";

function bytesOf(body: WebhookToVerify["body"]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(typeof body === "string" ? new TextEncoder().encode(body) : body);
}

/** Whether any entry of `webhook-signature` was made with any of the secrets (Standard Webhooks 1.0). */
async function hasStandardSignature(keys: CryptoKey[], sent: SentHeaders, body: Uint8Array): Promise<boolean> {
  const start = new TextEncoder().encode(`${sent.id}.${sent.timestamp}.`);
  const content = new Uint8Array(start.length + body.length);
  content.set(start);
  content.set(body, start.length);
  const entries = sent.signatures.split(" ").filter((entry) => entry.startsWith(SIGNATURE_PREFIX));
  for (const entry of entries.slice(0, MAX_SIGNATURES)) {
    if (await isSignedWithAny(keys, entry.slice(SIGNATURE_PREFIX.length), content)) return true;
  }
  return false;
}

async function isSignedWithAny(keys: CryptoKey[], base64: string, content: Uint8Array<ArrayBuffer>): Promise<boolean> {
  const signature = fromBase64(base64);
  if (signature === null) return false;
  const checks = keys.map((key) => crypto.subtle.verify("HMAC", key, signature, content));
  return (await Promise.all(checks)).includes(true);
}

function refused(reason: WebhookFailure): WebhookRefused {
  return { ok: false, reason };
}
