import { fromBase64 } from "./base64.ts";
import { parseJson } from "./json.ts";
import { readWebhookBody, type WebhookBody } from "./webhook-body.ts";

/** As the Standard Webhooks libraries have it; the service signs every attempt anew. */
const DEFAULT_TOLERANCE_SECONDS = 300;
/** The service sends one for each live secret, of which there are two at most. */
const MAX_SIGNATURES = 8;
const SIGNATURE_PREFIX = "v1,";

/** A webhook as it arrived. */
export interface WebhookToVerify {
  /** Of the request: `request.headers` of `fetch`'s kind or of node:http. */
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The body as it came: its bytes, or its text, never JSON serialized again. */
  body: Uint8Array | ArrayBuffer | string;
  /** The application's secret; while two are live, both. */
  secrets: string | readonly string[];
  /** How far `webhook-timestamp` may be from the clock. Default 300. */
  toleranceSeconds?: number;
  /** Milliseconds since 1970-01-01 UTC. Default `Date.now()`. */
  now?: number;
}

/** Answer it with a 2xx. */
export interface VerifiedWebhook extends WebhookBody {
  ok: true;
}

/**
 * Why a webhook was refused, in the order of the checks:
 *
 * - `missing-header`: `webhook-id`, `webhook-timestamp`, `webhook-signature` or `Signature` is not there exactly once
 * - `malformed-timestamp`: not a number of seconds
 * - `stale-timestamp`: too old or too new: sent again by somebody else, or a clock is wrong
 * - `wrong-signature`: one of the two signatures is by none of the secrets, over exactly these bytes
 * - `malformed-event`: genuine, but not what the contract says
 */
export type WebhookFailure =
  | "missing-header"
  | "malformed-timestamp"
  | "stale-timestamp"
  | "wrong-signature"
  | "malformed-event";

/** Answer it with a 4xx; `reason` is for the log. */
export interface WebhookRefused {
  ok: false;
  reason: WebhookFailure;
}

/**
 * Checks a webhook: Standard Webhooks 1.0 (HMAC-SHA256 over ID, time and body) and the `Signature` header (HMAC-SHA1
 * over the body), both by WebCrypto's `verify`, which compares in constant time.
 *
 * @throws RangeError without a secret, or when `now` or `toleranceSeconds` is not a finite number of at least 0: the
 *   caller's mistakes, which would turn checks off; never because of the webhook
 */
export async function verifyWebhook(webhook: WebhookToVerify): Promise<VerifiedWebhook | WebhookRefused> {
  const { headers, secrets, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, now = Date.now() } = webhook;
  for (const value of [toleranceSeconds, now]) {
    if (!(Number.isFinite(value) && value >= 0)) throw new RangeError("not a time or a number of seconds");
  }
  const keys = await importSecrets(typeof secrets === "string" ? [secrets] : secrets);
  const sent = readHeaders(headers);
  if (sent === null) return refused("missing-header");
  if (!/^\d{1,15}$/.test(sent.timestamp)) return refused("malformed-timestamp");
  if (Math.abs(Math.floor(now / 1000) - Number(sent.timestamp)) > toleranceSeconds) return refused("stale-timestamp");
  const body = bytesOf(webhook.body);
  if (!(await hasStandardSignature(keys.sha256, sent, body))) return refused("wrong-signature");
  if (!(await isByAnyOf(keys.sha1, sent.bodySignature, body))) return refused("wrong-signature");
  const read = readWebhookBody(parseJson(new TextDecoder().decode(body)));
  return read ? { ok: true, ...read } : refused("malformed-event");
}

/** The secrets as HMAC keys: their UTF-8 bytes, once for each digest. */
interface Keys {
  sha1: CryptoKey[];
  sha256: CryptoKey[];
}

async function importSecrets(secrets: readonly string[]): Promise<Keys> {
  // A secret that is not configured must not become the empty key, with which anyone can sign.
  const areThere = secrets.length > 0 && secrets.every((secret) => typeof secret === "string" && secret !== "");
  if (!areThere) throw new RangeError("a webhook cannot be checked without a secret");
  const bytes = secrets.map((secret) => new TextEncoder().encode(secret));
  const keys = (hash: string) =>
    Promise.all(bytes.map((raw) => crypto.subtle.importKey("raw", raw, { name: "HMAC", hash }, false, ["verify"])));
  return { sha1: await keys("SHA-1"), sha256: await keys("SHA-256") };
}

interface SentHeaders {
  id: string;
  timestamp: string;
  /** `v1,` and base64, one or more with spaces between. */
  signatures: string;
  /** Base64. */
  bodySignature: string;
}

function readHeaders(headers: WebhookToVerify["headers"]): SentHeaders | null {
  const id = headerOf(headers, "webhook-id");
  const timestamp = headerOf(headers, "webhook-timestamp");
  const signatures = headerOf(headers, "webhook-signature");
  const bodySignature = headerOf(headers, "signature");
  const areThere = id !== null && timestamp !== null && signatures !== null && bodySignature !== null;
  return areThere ? { id, timestamp, signatures, bodySignature } : null;
}

/** Null unless it is there once. Names are compared without regard to case (RFC 9110 section 5.1). */
function headerOf(headers: WebhookToVerify["headers"], name: string): string | null {
  if (isHeaders(headers)) return headers.get(name);
  const values = Object.entries(headers)
    .filter(([each]) => each.toLowerCase() === name)
    .flatMap(([, value]) => value ?? []);
  return values.length === 1 ? (values[0] ?? null) : null;
}

/** Also those of another realm or library. */
const isHeaders = (headers: WebhookToVerify["headers"]): headers is Headers => typeof headers.get === "function";

function bytesOf(body: WebhookToVerify["body"]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(typeof body === "string" ? new TextEncoder().encode(body) : body);
}

/** `webhook-signature` (Standard Webhooks 1.0): one of its entries is by one of the secrets. */
async function hasStandardSignature(keys: CryptoKey[], sent: SentHeaders, body: Uint8Array): Promise<boolean> {
  const start = new TextEncoder().encode(`${sent.id}.${sent.timestamp}.`);
  const content = new Uint8Array(start.length + body.length);
  content.set(start);
  content.set(body, start.length);
  const entries = sent.signatures.split(" ").filter((entry) => entry.startsWith(SIGNATURE_PREFIX));
  for (const entry of entries.slice(0, MAX_SIGNATURES)) {
    if (await isByAnyOf(keys, entry.slice(SIGNATURE_PREFIX.length), content)) return true;
  }
  return false;
}

async function isByAnyOf(keys: CryptoKey[], base64: string, content: Uint8Array<ArrayBuffer>): Promise<boolean> {
  const signature = fromBase64(base64);
  if (signature === null) return false;
  const checks = keys.map((key) => crypto.subtle.verify("HMAC", key, signature, content));
  return (await Promise.all(checks)).includes(true);
}

function refused(reason: WebhookFailure): WebhookRefused {
  return { ok: false, reason };
}
