/** The package `@badge-distribution/verify`. */

export {
  CARD_FORMATS,
  type CardFormat,
  type CardNumber,
  cardHex,
  type DecodedCard,
  decodeCard,
  encodeCard,
  type RefusedCard,
  splitBadgeNumber,
} from "../shared/card-formats.ts";
export {
  type BoundKey,
  type Expectations,
  type JwkSet,
  type RefusedBadgeSignature,
  type SinglePublicKey,
  type StatusDelta,
  type StatusList,
  type StatusListFailure,
  type VerificationFailure,
  type VerifiedBadgeSignature,
  verifyBadgeSignature,
} from "./badge-signature.ts";
export { verifyPossession } from "./possession.ts";
export { createChallenge, type NewChallenge } from "./possession-challenge.ts";
export type * from "./possession-types.ts";
export { applyStatusDelta, readStatusDelta } from "./status-delta.ts";
export { readStatusList } from "./status-list.ts";
