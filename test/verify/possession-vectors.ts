import { z } from "zod";
import type { PossessionFailure, VerificationFailure } from "../../src/verify/index.ts";
import vectorsJson from "../../src/verify/vectors-possession.json" with { type: "json" };

/** Every reason of its own; the compiler keeps the list complete. */
const FAILURES: Record<Exclude<PossessionFailure, VerificationFailure>, true> = {
  "not-bound": true,
  "malformed-response": true,
  "wrong-response-algorithm": true,
  "wrong-response-type": true,
  "bad-response-signature": true,
  "wrong-role": true,
  "wrong-challenge": true,
  "expired-challenge": true,
  "wrong-application": true,
  "wrong-badge-signature": true,
};
export const POSSESSION_FAILURES = Object.keys(FAILURES);

const vectorSchema = z.strictObject({
  name: z.string(),
  expected: z.string(),
  badgeSignature: z.string(),
  response: z.string(),
  challenge: z.string(),
  doorId: z.string(),
  publicKey: z.string(),
  applicationId: z.string(),
  nowSeconds: z.int(),
  clockToleranceSeconds: z.int(),
});
const publicJwk = z.object({ kty: z.literal("EC"), crv: z.literal("P-256"), x: z.string(), y: z.string() });
const schema = z.object({
  testKeys: z.object({ phone: z.object({ publicJwk }) }),
  cases: z.array(vectorSchema),
});

/** One case of the published vectors. */
type PossessionVector = z.infer<typeof vectorSchema>;

const vectors = schema.parse(vectorsJson);
export const POSSESSION_CASES: readonly PossessionVector[] = vectors.cases;
export const BOUND_KEY = vectors.testKeys.phone.publicJwk;

/** The arguments of the verifier for one case. */
export function expectationsOf(vector: PossessionVector) {
  const { name, expected, badgeSignature, response, publicKey, nowSeconds, ...others } = vector;
  return { ...others, keys: { publicKey }, now: nowSeconds * 1000 };
}
