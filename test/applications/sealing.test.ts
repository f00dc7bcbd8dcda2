import { beforeAll, describe, expect, it } from "vitest";
import { applicationId } from "../../src/shared/identifiers.ts";
import {
  fromBase64,
  generateSealingKey,
  importSealingPrivateKey,
  importSealingPublicKey,
  open,
  type SealLabel,
  seal,
  toBase64,
  unwrapHmacKey,
  unwrapSigningKey,
} from "../../src/shared/sealing.ts";
import { byEffort } from "../support/effort.ts";

const LABEL: SealLabel = {
  purpose: "application-secret",
  applicationId: applicationId.parse("app_one"),
  id: "sec_one",
};
const SECRET = new TextEncoder().encode("bdss_a-secret-of-an-application");

let publicKey: CryptoKey;
let privateKey: CryptoKey;
let sealed: string;

beforeAll(async () => {
  const pair = await generateSealingKey();
  publicKey = await importSealingPublicKey(pair.publicKey);
  privateKey = await importSealingPrivateKey(pair.privateKey);
  sealed = await seal(publicKey, LABEL, SECRET);
});

describe("sealing to a public key (contract section 9)", () => {
  it("sealing never gives the same blob twice, so equal secrets do not show", async () => {
    expect(await seal(publicKey, LABEL, SECRET)).not.toBe(sealed);
  });

  it("a blob in which any one byte was changed is not opened", async () => {
    const bytes = fromBase64(sealed);
    expect(bytes).toHaveLength(384);
    for (let place = 0; place < bytes.length; place += byEffort(6, 1)) {
      const changed = bytes.slice();
      changed[place] = (changed[place] ?? 0) ^ 0x01;
      await expect(open(privateKey, LABEL, toBase64(changed)), `byte ${place}`).rejects.toThrow();
    }
  });

  it.each<[string, SealLabel]>([
    ["another purpose", { ...LABEL, purpose: "signing-key" }],
    ["another application", { ...LABEL, applicationId: applicationId.parse("app_two") }],
    ["another ID", { ...LABEL, id: "sec_two" }],
    [
      "IDs that only look the same when joined",
      { ...LABEL, applicationId: applicationId.parse("app_onesec_"), id: "one" },
    ],
  ])("a blob in the place of %s is not opened", async (_, label) => {
    await expect(open(privateKey, label, sealed)).rejects.toThrow();
    await expect(unwrapHmacKey(privateKey, label, sealed, "SHA-256")).rejects.toThrow();
  });

  it("sealed keys are unwrapped as keys that cannot be exported", async () => {
    const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
    if (!("privateKey" in pair)) throw new Error("no key pair");
    const der = await crypto.subtle.exportKey("pkcs8", pair.privateKey);
    if (!(der instanceof ArrayBuffer)) throw new Error("no DER");
    const label: SealLabel = { ...LABEL, purpose: "signing-key" };
    const signingKey = await unwrapSigningKey(privateKey, label, await seal(publicKey, label, der));
    const hmacKey = await unwrapHmacKey(privateKey, LABEL, sealed, "SHA-1");
    expect([signingKey.extractable, hmacKey.extractable]).toEqual([false, false]);
  });
});
