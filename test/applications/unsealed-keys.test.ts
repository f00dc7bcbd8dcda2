import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { applicationId } from "../../src/shared/identifiers.ts";
import { SealingKeys } from "../../src/worker/keys/sealing-keys.ts";
import { UnsealedKeys } from "../../src/worker/keys/unsealed-keys.ts";
import { Unavailable } from "../../src/worker/platform.ts";
import { testSealer } from "../support/application.ts";

/** The tests' sealing keys 1 and 2. Here the second one plays another key of version 1. */
const { SEALING_KEY_1: right, SEALING_KEY_2: other } = env;

it.each<[string, boolean, Record<string, string>]>([
  ["of release 1.0, without a fingerprint", true, { SEALING_KEY_1: right }],
  ["by version and fingerprint", true, { SEALING_KEY_1_00112233aabbccdd: right }],
  ["behind one that lost the race for its version", true, { SEALING_KEY_1_00aa: other, SEALING_KEY_1_00bb: right }],
  ["before one that lost the race for its version", true, { SEALING_KEY_1_00bb: right, SEALING_KEY_1_00cc: other }],
  ["beside one that is no key at all", true, { SEALING_KEY_1: "aGVsbG8=", SEALING_KEY_1_00bb: right }],
  ["of another version", false, { SEALING_KEY_2: right, SEALING_KEY_10: right, SEALING_KEY_11_00aa: right }],
  ["of another key", false, { SEALING_KEY_1: other }],
  ["of another name", false, { SEALING_KEY_1_: right, XSEALING_KEY_1: right, SEALING_KEY_1_00AAx: right }],
])("the Worker looks for a secret %s, and takes it: %s (contract section 9)", async (_, isTaken, secrets) => {
  const sealer = await testSealer();
  const id = applicationId.parse("app_a");
  const sealed = await sealer.seal({ purpose: "device-key", applicationId: id, id }, new Uint8Array(32));
  const keys = new UnsealedKeys(new SealingKeys(secrets));
  // Twice: what the first call learned must not spoil the second.
  for (const _time of [1, 2]) {
    const opened = keys.rootKey(id, { sealed, sealingVersion: sealer.version });
    if (isTaken) expect((await opened).extractable).toBe(false);
    else await expect(opened).rejects.toThrow();
  }
});

describe("an isolate that has opened a sealed value (contract section 9)", () => {
  it("an isolate opens a key once for each of the 1,000 applications that it caches", async () => {
    const sealingKeys = new SealingKeys(env);
    const opening = vi.spyOn(sealingKeys, "open").mockResolvedValue({});
    const keys = new UnsealedKeys(sealingKeys);
    for (const _time of [1, 2]) {
      for (let place = 0; place < 1000; place++) {
        await keys.rootKey(applicationId.parse(`app_${place}`), { sealed: `sealed ${place}`, sealingVersion: 1 });
      }
    }
    expect(opening).toHaveBeenCalledTimes(1000);
  });

  it("an isolate that has opened a sealed value opens it in no row of another ID or application, and for no other purpose", async () => {
    const sealer = await testSealer();
    const [a, b] = [applicationId.parse("app_a"), applicationId.parse("app_b")];
    const text = new TextEncoder().encode("bdss_a-secret-of-an-application");
    const label = { purpose: "application-secret", applicationId: a, id: "app_a" } as const;
    const sealed = { sealed: await sealer.seal(label, text), sealingVersion: sealer.version };
    const keys = new UnsealedKeys(new SealingKeys(env));
    const opened = await keys.webhookKey(a, "app_a", sealed, "SHA-256");
    for (const open of [
      () => keys.webhookKey(b, "app_a", sealed, "SHA-256"),
      () => keys.webhookKey(a, "sec_b", sealed, "SHA-256"),
      () => keys.signingKey(a, "app_a", sealed),
      () => keys.rootKey(a, sealed),
    ]) {
      await expect(open()).rejects.toThrow(Unavailable);
    }
    expect(await keys.webhookKey(a, "app_a", sealed, "SHA-256")).toBe(opened);
    expect(await keys.webhookKey(a, "app_a", sealed, "SHA-1")).not.toBe(opened);
  });
});
