import { hmac } from "@noble/hashes/hmac.js";
import { sha1 } from "@noble/hashes/legacy.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { describe, expect, it } from "vitest";
import { fromBase64, toBase64 } from "../../src/shared/sealing.ts";
import { signWebhook } from "../../src/worker/webhooks/signature.ts";
import { importSecret, utf8 } from "../client/support.ts";
import { byEffort } from "../support/effort.ts";
import { fc } from "../support/random.ts";

// What a receiver gets, and what each of several secrets signs: test/webhooks/delivery.test.ts.
describe("a receiver can verify every webhook (contract section 8)", () => {
  // Also longer than a block of the digest, where HMAC hashes the key first.
  const anySecret = fc.uint8Array({ minLength: 1, maxLength: 100 });

  it("a receiver verifies every webhook by plain HMACs over the exact bytes, UTF-8 or not, with any secret", async () => {
    await fc.assert(
      fc.asyncProperty(
        anySecret,
        fc.uint8Array({ maxLength: 200 }),
        fc.nat(),
        async (secret, body, timestampSeconds) => {
          const secrets = [await importSecret(secret)];
          const headers = await signWebhook({ eventId: "evt_1", timestampSeconds, body, secrets });
          const content = new Uint8Array([...utf8(`evt_1.${timestampSeconds}.`), ...body]);
          expect(headers.Signature).toBe(toBase64(hmac(sha1, secret, body)));
          expect(headers["webhook-signature"]).toBe(`v1,${toBase64(hmac(sha256, secret, content))}`);
        },
      ),
      { numRuns: byEffort(200, 10_000) },
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

  it("nothing is signed without a secret", async () => {
    const webhook = { eventId: "evt_1", timestampSeconds: 1, body: utf8("{}"), secrets: [] };
    await expect(signWebhook(webhook)).rejects.toThrow("needs a secret");
  });
});
