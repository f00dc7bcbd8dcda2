import { BADGE_NUMBER, CLAIMS, CLIENT_SIGNATURE, claimsWithout, EXPIRES_AT, ISSUED_AT, makeJwt } from "./tokens.ts";
import { type Circumstances, refuse, type Vector } from "./vector.ts";

/** Genuine badge signatures that do not match the expectations. */
export function claimVectors(): Vector[] {
  return [
    ...audienceVectors(),
    ...timeVectors(),
    ...notBeforeVectors(),
    ...ageVectors(),
    ...expectationVectors(),
    ...orderVectors(),
  ];
}

function audienceVectors(): Vector[] {
  const { aud } = CLAIMS;
  const others = ["app_zyxwvtsrqpnmkjhgfedc", aud.toUpperCase(), `${aud} `, `${aud}x`, aud.slice(0, -1), ""];
  return [
    ...others.map((other) =>
      refuse("wrong-audience", `for application "${other}"`, makeJwt({ claims: { ...CLAIMS, aud: other } })),
    ),
    refuse("wrong-audience", "checked by another application", makeJwt(), {
      applicationId: "app_zyxwvtsrqpnmkjhgfedc",
    }),
  ];
}

function timeVectors(): Vector[] {
  const jwt = makeJwt();
  const inMilliseconds = makeJwt({ claims: { ...CLAIMS, iat: ISSUED_AT * 1000, exp: EXPIRES_AT * 1000 } });
  const at = (nowSeconds: number, clockToleranceSeconds: number): Circumstances => ({
    nowSeconds,
    clockToleranceSeconds,
  });
  return [
    refuse("expired", "at the second of the expiry", jwt, at(EXPIRES_AT, 0)),
    refuse("expired", "a second after the expiry", jwt, at(EXPIRES_AT + 1, 0)),
    refuse("expired", "at the end of the tolerance after the expiry", jwt, at(EXPIRES_AT + 60, 60)),
    refuse("expired", "a year after the expiry", jwt, at(EXPIRES_AT + 31_536_000, 60)),
    refuse("expired", "an expiry of zero", makeJwt({ claims: { ...CLAIMS, exp: 0 } })),
    refuse("not-yet-valid", "a second before its issue", jwt, at(ISSUED_AT - 1, 0)),
    refuse("not-yet-valid", "a second beyond the tolerance before its issue", jwt, at(ISSUED_AT - 61, 60)),
    refuse("not-yet-valid", "a year before its issue", jwt, at(ISSUED_AT - 31_536_000, 60)),
    refuse("not-yet-valid", "times in milliseconds", inMilliseconds),
  ];
}

/** The service sets no `nbf`, but a verifier must honour one (RFC 7519 section 4.1.5). */
function notBeforeVectors(): Vector[] {
  const NOT_BEFORE = ISSUED_AT + 120;
  const jwt = makeJwt({ claims: { ...CLAIMS, nbf: NOT_BEFORE } });
  const at = (nowSeconds: number, clockToleranceSeconds: number): Circumstances => ({
    nowSeconds,
    clockToleranceSeconds,
  });
  return [
    refuse("not-yet-valid", "a second before its nbf", jwt, at(NOT_BEFORE - 1, 0)),
    refuse("not-yet-valid", "a second beyond the tolerance before its nbf", jwt, at(NOT_BEFORE - 61, 60)),
    refuse(
      "not-yet-valid",
      "an nbf after the expiry, at the expiry",
      makeJwt({ claims: { ...CLAIMS, nbf: EXPIRES_AT + 300 } }),
      at(EXPIRES_AT, 0),
    ),
  ];
}

function ageVectors(): Vector[] {
  const eternal = makeJwt({ claims: claimsWithout("exp") });
  const at = (age: number, clockToleranceSeconds: number): Circumstances => ({
    nowSeconds: ISSUED_AT + age,
    clockToleranceSeconds,
    maxAgeSeconds: 120,
  });
  return [
    refuse("too-old", "a second more than the greatest age", eternal, at(121, 0)),
    refuse("too-old", "a second more than the greatest age and the tolerance", eternal, at(181, 60)),
    refuse("too-old", "too old, though not expired", makeJwt(), at(200, 0)),
    refuse("too-old", "a second old where only this second will do", makeJwt(), {
      nowSeconds: ISSUED_AT + 1,
      clockToleranceSeconds: 0,
      maxAgeSeconds: 0,
    }),
  ];
}

function expectationVectors(): Vector[] {
  const jwt = makeJwt();
  const otherNumbers = ["1004711816", `0${BADGE_NUMBER}`, `${BADGE_NUMBER}0`, ""];
  const unpadded = CLIENT_SIGNATURE.replace(/=+$/, "");
  const otherSignatures = ["AAAA", unpadded, CLIENT_SIGNATURE.replaceAll("+", "-").replaceAll("/", "_"), ""];
  return [
    ...otherNumbers.map((badgeNumber) =>
      refuse("wrong-badge-number", `badge number "${badgeNumber}" expected`, jwt, { badgeNumber }),
    ),
    ...otherSignatures.map((clientSignature) =>
      refuse("wrong-client-signature", `client signature "${clientSignature}" expected`, jwt, { clientSignature }),
    ),
  ];
}

/** Of several faults, the one that is checked first is the reason. */
function orderVectors(): Vector[] {
  const late = { nowSeconds: EXPIRES_AT + 3600, badgeNumber: "7", clientSignature: "AAAA" };
  const otherAudience = makeJwt({ claims: { ...CLAIMS, aud: "app_zyxwvtsrqpnmkjhgfedc" } });
  return [
    refuse("wrong-audience", "another application's, expired and of another badge", otherAudience, late),
    refuse("expired", "expired, too old and of another badge", makeJwt(), { ...late, maxAgeSeconds: 60 }),
    refuse("wrong-badge-number", "of another badge and client signature", makeJwt(), {
      badgeNumber: "7",
      clientSignature: "AAAA",
    }),
  ];
}
