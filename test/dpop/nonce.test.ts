import { describe, expect, it } from "vitest";
import { base64Url } from "../../src/shared/identifiers.ts";
import { checkNonce, makeNonce } from "../../src/worker/dpop/nonce.ts";
import { deriveBytes } from "../../src/worker/keys/derivation.ts";
import { NONCE_KEY, NOW_SECONDS, newNonceKey } from "./support.ts";

const now = NOW_SECONDS * 1000;

describe("a nonce (contract section 15)", () => {
  it("a nonce is text that a header and a claim can carry (RFC 9449 section 8.1), new each second", async () => {
    const [nonce, next] = [await makeNonce(NONCE_KEY, now), await makeNonce(NONCE_KEY, now + 1000)];
    expect(nonce).toMatch(/^[\x21\x23-\x5b\x5d-\x7e]{20,64}$/);
    expect(await makeNonce(NONCE_KEY, now + 999)).toBe(nonce);
    expect(next).not.toBe(nonce);
  });

  it("a nonce may be reused for 300 s, and by a machine whose clock is some seconds behind, but not if a clock was far ahead", async () => {
    const nonce = await makeNonce(NONCE_KEY, now + 500);
    for (const later of [-10_000, 0, 300_999]) expect(await checkNonce(NONCE_KEY, nonce, now + later)).toBe(true);
    for (const later of [-11_000, 301_000]) expect(await checkNonce(NONCE_KEY, nonce, now + later)).toBe(false);
  });

  it("a nonce is the same in each release, because two releases serve a deployment", async () => {
    const mac = await deriveBytes(NONCE_KEY, "dpop-nonce", String(NOW_SECONDS));
    expect(await makeNonce(NONCE_KEY, now)).toBe(`${NOW_SECONDS}.${base64Url(mac.subarray(0, 16))}`);
  });

  it("a nonce cannot be made from another: every changed character is refused, and it is none of another application", async () => {
    const nonce = await makeNonce(NONCE_KEY, now);
    expect(await checkNonce(await newNonceKey(), nonce, now)).toBe(false);
    for (let index = 0; index < nonce.length; index++) {
      const changed = nonce.slice(0, index) + (nonce[index] === "1" ? "2" : "1") + nonce.slice(index + 1);
      expect(await checkNonce(NONCE_KEY, changed, now)).toBe(false);
    }
  });

  it("a nonce has exactly one encoding", async () => {
    const nonce = await makeNonce(NONCE_KEY, now);
    for (const other of ["", ".", "0", `0${nonce}`, ` ${nonce}`, `${nonce}=`, nonce.replace(".", "..")]) {
      expect(await checkNonce(NONCE_KEY, other, now)).toBe(false);
    }
  });
});
