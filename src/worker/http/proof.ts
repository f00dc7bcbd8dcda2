import type { Context as HonoContext } from "hono";
import { digestOf } from "../../shared/identifiers.ts";
import { ApiError } from "../api-error.ts";
import type { Application } from "../applications/application-cache.ts";
import { makeNonce } from "../dpop/nonce.ts";
import { callUrls } from "../dpop/url.ts";
import { type AcceptedProof, type ProvenKey, type RefusedProof, verifyDpopProof } from "../dpop/verify-proof.ts";
import { readBytes } from "./body.ts";
import type { HttpEnv } from "./environment.ts";
import { limitAddress } from "./rate-limits.ts";

export type CheckedProof = AcceptedProof | RefusedProof;

/**
 * Checks the proof of a call.
 *
 * @param proof the `DPoP` header
 */
export async function verifyProofOfCall(
  c: HonoContext<HttpEnv>,
  proof: string,
  { application, udid }: { application: Application; udid: string },
): Promise<CheckedProof> {
  const { publicUrl, isLocal, now } = c.get("context");
  return verifyDpopProof(proof, {
    method: c.req.raw.method,
    urls: callUrls(c.req.raw.url, publicUrl(), isLocal),
    applicationId: application.id,
    udid,
    bodyHash: await digestOf(await readBytes(c)),
    now: now(),
    nonceKey: await nonceKeyOf(c, application),
  });
}

/**
 * The key that a call has proved. A call without a proof counts for its address.
 *
 * @param proof null without a proof
 * @returns null if the call has no proof and needs none
 * @throws ApiError INVALID_PROOF, USE_DPOP_NONCE with a nonce for the next call, or RATE_LIMITED
 */
export async function requireKey(
  c: HonoContext<HttpEnv>,
  { application, proof }: { application: Application; proof: CheckedProof | null },
): Promise<ProvenKey | null> {
  if (proof === null) {
    if (application.requireProof) throw new ApiError("INVALID_PROOF", { detail: "no-proof" });
    await limitAddress(c);
    return null;
  }
  if (proof.ok) return proof;
  const { code, reason: detail } = proof;
  if (code === "INVALID_PROOF") throw new ApiError(code, { detail });
  throw new ApiError(code, {
    detail,
    nonce: await makeNonce(await nonceKeyOf(c, application), c.get("context").now()),
  });
}

const nonceKeyOf = (c: HonoContext<HttpEnv>, { id, rootKey }: Application): Promise<CryptoKey> =>
  c.get("context").unsealedKeys.rootKey(id, rootKey);
