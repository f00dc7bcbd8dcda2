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

  // For another purpose, application or ID: unsealed-keys.test.ts.
  it("a blob is not opened under a label whose IDs only look the same when joined", async () => {
    const label: SealLabel = { ...LABEL, applicationId: applicationId.parse("app_onesec_"), id: "one" };
    await expect(open(privateKey, label, sealed)).rejects.toThrow();
  });
});
