import { hmac } from "@noble/hashes/hmac.js";
import { sha1 } from "@noble/hashes/legacy.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { fromBase64, toBase64 } from "../../src/shared/sealing.ts";
import { signWebhook, type WebhookSecret } from "../../src/worker/webhooks/signature.ts";
import { byEffort } from "../support/effort.ts";
import { fc } from "../support/random.ts";

const EVENT_ID = "evt_01k5gqz3v0abcdefghjkmnpqrs";
const utf8 = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(new TextEncoder().encode(text));

/** The published verifier rejects what is older than five minutes, so attempts are made now. */
const now = (): number => Math.floor(Date.now() / 1000);

async function importSecret(bytes: Uint8Array<ArrayBuffer>): Promise<WebhookSecret> {
  const key = (hash: string) => crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash }, false, ["sign"]);
  return { sha1: await key("SHA-1"), sha256: await key("SHA-256") };
}

async function signed(secrets: readonly string[], body: Uint8Array, timestampSeconds = now()) {
  const keys = await Promise.all(secrets.map((secret) => importSecret(utf8(secret))));
  return signWebhook({ eventId: EVENT_ID, timestampSeconds, body, secrets: keys });
}

/** What a receiver does with the headers and the text it got. */
const verify = (secret: string, text: string, headers: Record<string, string>): unknown =>
  new Webhook(toBase64(utf8(secret))).verify(text, headers);

const anyText = fc.string({ unit: "binary", maxLength: 100 });
/** Also longer than a block of the digest, where HMAC hashes the key first. */
const anySecret = fc.string({ unit: "binary", minLength: 1, maxLength: 100 });

describe("a receiver can verify every webhook (contract section 8)", () => {
  it("a receiver verifies every webhook with the Standard Webhooks library and with a plain HMAC-SHA1, for payloads of any characters", async () => {
    await fc.assert(
      fc.asyncProperty(anySecret, fc.dictionary(anyText, anyText), async (secret, data) => {
        const text = JSON.stringify({ event: "badge:created", ...data });
        const headers = await signed([secret], utf8(text));
        expect(JSON.stringify(verify(secret, text, headers))).toBe(JSON.stringify(JSON.parse(text)));
        expect(headers.Signature).toBe(toBase64(hmac(sha1, utf8(secret), utf8(text))));
      }),
      { numRuns: byEffort(200, 10_000) },
    );
  });

  it("a receiver verifies every webhook over the exact bytes, UTF-8 or not", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), fc.nat(), async (body, timestamp) => {
        const headers = await signed(["secret"], body, timestamp);
        const content = new Uint8Array([...utf8(`${EVENT_ID}.${timestamp}.`), ...body]);
        expect(headers.Signature).toBe(toBase64(hmac(sha1, utf8("secret"), body)));
        expect(headers["webhook-signature"]).toBe(`v1,${toBase64(hmac(sha256, utf8("secret"), content))}`);
      }),
    );
  });

  it("a webhook's signature equals the example of the Standard Webhooks libraries", async () => {
    const headers = await signWebhook({
      eventId: "msg_p5jXN8AQM9LWM0D4loKWxJek",
      timestampSeconds: 1614265330,
      body: utf8('{"test": 2432232314}'),
      secrets: [await importSecret(fromBase64("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))],
    });
    expect(headers["webhook-signature"]).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });
});

it("a webhook has the headers of contract section 8 and no others", async () => {
  const headers = await signed(["secret"], utf8("{}"), 1_800_000_000);
  expect(headers).toEqual({
    "Content-Type": "application/json",
    Signature: expect.stringMatching(/^[A-Za-z0-9+/]{27}=$/),
    "webhook-id": EVENT_ID,
    "webhook-timestamp": "1800000000",
    "webhook-signature": expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
  });
});

describe("a secret can be rotated without losing a webhook (contract sections 8 and 9)", () => {
  it("webhook-signature verifies with each valid secret and no other, and the current one makes Signature", async () => {
    const headers = await signed(["current", "added"], utf8("{}"));
    expect(headers["webhook-signature"]?.split(" ")).toHaveLength(2);
    for (const secret of ["current", "added"]) expect(verify(secret, "{}", headers)).toEqual({});
    expect(() => verify("retired", "{}", headers)).toThrow("No matching signature");
    expect(headers.Signature).toBe(toBase64(hmac(sha1, utf8("current"), utf8("{}"))));
  });

  it("nothing is signed without a secret", async () => {
    await expect(signed([], utf8("{}"))).rejects.toThrow("needs a secret");
  });
});
