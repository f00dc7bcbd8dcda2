import { z } from "zod";
import type { Expectations, StatusListFailure, VerificationFailure } from "../../src/verify/badge-signature.ts";
import vectorsJson from "../../src/verify/vectors.json" with { type: "json" };

/** Every reason for refusing a status list; the compiler keeps the list complete. */
const LIST_FAILURES: Record<StatusListFailure, true> = {
  malformed: true,
  "wrong-algorithm": true,
  "wrong-type": true,
  "unknown-key": true,
  "bad-signature": true,
  "wrong-uri": true,
};
const { "wrong-uri": _, ...COMMON_FAILURES } = LIST_FAILURES;
/** Every reason for a refusal. */
const FAILURES: Record<VerificationFailure, true> = {
  ...COMMON_FAILURES,
  "wrong-audience": true,
  "not-yet-valid": true,
  expired: true,
  "too-old": true,
  "wrong-badge-number": true,
  "wrong-client-signature": true,
  "status-unknown": true,
  revoked: true,
  suspended: true,
  "status-stale": true,
};
export const LIST_OUTCOMES = Object.keys(LIST_FAILURES);
export const OUTCOMES = ["ok", ...Object.keys(FAILURES)];

const keySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())) });
/** A caller in JavaScript may pass anything. */
const policy = z.custom<"refuse" | "accept">((value) => typeof value === "string");

const vectorSchema = z.strictObject({
  name: z.string(),
  expected: z.enum(OUTCOMES),
  jwt: z.string(),
  publicKeys: keySet.exactOptional(),
  publicKey: z.string().exactOptional(),
  applicationId: z.string(),
  badgeNumber: z.string().exactOptional(),
  clientSignature: z.string().exactOptional(),
  nowSeconds: z.int(),
  clockToleranceSeconds: z.int(),
  maxAgeSeconds: z.int().exactOptional(),
  statusLists: z.record(z.string(), z.string()).exactOptional(),
  missingStatusList: policy.exactOptional(),
  staleStatusList: policy.exactOptional(),
  acceptedDespite: z.enum(["status-unknown", "status-stale"]).exactOptional(),
  statusListFailure: z.enum(LIST_OUTCOMES).exactOptional(),
  claims: z
    .looseObject({
      sub: z.string(),
      aud: z.string(),
      iat: z.int(),
      exp: z.int().exactOptional(),
      client_signature: z.string(),
    })
    .exactOptional(),
  keyId: z.string().exactOptional(),
});

/** One case of the published vectors. */
export type Vector = z.infer<typeof vectorSchema>;

const cardFormat = z.enum(["h10301", "h10302", "h10304", "corporate1000", "corporate1000_48"]);
const card = z.strictObject({
  format: cardFormat,
  badgeNumber: z.string(),
  siteCode: z.int().nullable(),
  cardNumber: z.int(),
  bits: z.string(),
  hex: z.string(),
});
const refusedCard = z.strictObject({ format: cardFormat, name: z.string(), bits: z.string(), expected: z.string() });
const statuses = z.record(z.string(), z.int());
const encoding = z.strictObject({ name: z.string(), bits: z.int(), lst: z.string(), entries: z.int(), statuses });

/** A delta and what becomes of a list with it. */
const statusDelta = z.strictObject({
  name: z.string(),
  expected: z.enum(["ok", "does-not-fit", ...LIST_OUTCOMES]),
  jwt: z.string(),
  uri: z.string(),
  publicKeys: keySet,
  list: z.string(),
  listUri: z.string(),
  change: z.int().exactOptional(),
  statuses: statuses.exactOptional(),
});

const vectors = z
  .object({
    cases: z.array(vectorSchema),
    statusListEncodings: z.array(encoding),
    statusDeltas: z.array(statusDelta),
    cards: z.array(card),
    refusedCards: z.array(refusedCard),
    unfitNumbers: z.array(z.strictObject({ format: cardFormat, badgeNumber: z.string() })),
  })
  .parse(vectorsJson);

export const CASES: readonly Vector[] = vectors.cases;
export const STATUS_LIST_ENCODINGS = vectors.statusListEncodings;
export const STATUS_DELTAS = vectors.statusDeltas;
export const CARDS = vectors.cards;
export const REFUSED_CARDS = vectors.refusedCards;
export const UNFIT_NUMBERS = vectors.unfitNumbers;
export const GOOD = CASES.filter(({ expected }) => expected === "ok");

/** The arguments of the verifier for one case. */
export function expectationsOf(vector: Vector): Expectations {
  const { name, expected, jwt, acceptedDespite, statusListFailure, claims, keyId, ...given } = vector;
  const { publicKeys, publicKey = "", nowSeconds, ...others } = given;
  return { ...others, keys: publicKeys ?? { publicKey }, now: nowSeconds * 1000 };
}

/** The verifier's expected result for one case. */
export function resultOf({ expected, claims, keyId, acceptedDespite }: Vector): object {
  if (expected !== "ok") return { ok: false, reason: expected };
  if (claims === undefined) throw new Error("an accepted case states its claims");
  return {
    ok: true,
    badgeNumber: claims.sub,
    issuedAt: claims.iat * 1000,
    expiresAt: claims.exp === undefined ? null : claims.exp * 1000,
    clientSignature: claims.client_signature,
    keyId,
    boundKey: null,
    ...(acceptedDespite === undefined ? {} : { acceptedDespite }),
  };
}
