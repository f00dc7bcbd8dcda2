import { toBase64 } from "../../shared/sealing.ts";

/** One live application secret, its UTF-8 bytes as an HMAC key for each digest. */
export interface WebhookSecret {
  sha1: CryptoKey;
  sha256: CryptoKey;
}

/** The signed content. `body` is signed byte for byte, because receivers check before they parse. */
interface WebhookToSign {
  eventId: string;
  /** The time of this attempt, in whole seconds since 1970-01-01 UTC. */
  timestampSeconds: number;
  body: Uint8Array;
  /** The current secret first: `Signature` has room for one, `webhook-signature` carries all. */
  secrets: readonly WebhookSecret[];
}

/**
 * The headers of a webhook (contract section 8): `Signature`, base64 of HMAC-SHA1 over the body, and beside it the
 * three headers of Standard Webhooks 1.0, whose HMAC-SHA256 also covers the event's ID and the time.
 *
 * @throws Error without a secret, so that no webhook is unsigned
 */
export async function signWebhook(webhook: WebhookToSign): Promise<Record<string, string>> {
  const { eventId, timestampSeconds, body, secrets } = webhook;
  const current = secrets[0];
  if (current === undefined) throw new Error("a webhook needs a secret to sign with");
  const timestamp = String(timestampSeconds);
  const content = concatenate(new TextEncoder().encode(`${eventId}.${timestamp}.`), body);
  const entries = secrets.map(async ({ sha256 }) => `v1,${await hmac(sha256, content)}`);
  return {
    "Content-Type": "application/json",
    Signature: await hmac(current.sha1, body),
    "webhook-id": eventId,
    "webhook-timestamp": timestamp,
    "webhook-signature": (await Promise.all(entries)).join(" "),
  };
}

async function hmac(key: CryptoKey, bytes: Uint8Array): Promise<string> {
  return toBase64(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes)));
}

/** Works on bytes: decoding and re-encoding a body could change it. */
function concatenate(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
