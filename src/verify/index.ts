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
  type Expectations,
  type JwkSet,
  type RefusedBadgeSignature,
  type SinglePublicKey,
  type StatusList,
  type StatusListFailure,
  type VerificationFailure,
  type VerifiedBadgeSignature,
  verifyBadgeSignature,
} from "./badge-signature.ts";
export { readStatusList } from "./status-list.ts";
