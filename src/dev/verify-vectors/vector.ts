import type { StatusListFailure, VerificationFailure } from "../../verify/badge-signature.ts";
import { type Jwk, OTHER_KEY, SIGNING_KEY } from "./keys.ts";
import { APPLICATION_ID, CLAIMS, HEADER, ISSUED_AT, type Members } from "./tokens.ts";

/** One case of `vectors.json`. Times are seconds. */
export interface Vector extends Circumstances {
  name: string;
  expected: "ok" | VerificationFailure;
  jwt: string;
  applicationId: string;
  nowSeconds: number;
  clockToleranceSeconds: number;
  claims?: Members;
  keyId?: string;
  acceptedDespite?: "status-unknown" | "status-stale";
  /** Of the only list of the case: why reading it by itself fails. */
  statusListFailure?: StatusListFailure;
}

/** What a case may change. By default it is verified with the signing key alone, a minute after it was issued. */
export interface Circumstances {
  publicKeys?: { keys: Members[] };
  publicKey?: string;
  applicationId?: string;
  badgeNumber?: string;
  clientSignature?: string;
  nowSeconds?: number;
  clockToleranceSeconds?: number;
  maxAgeSeconds?: number;
  statusLists?: Record<string, string>;
  /** Also values that are no policy. */
  missingStatusList?: string;
  staleStatusList?: string;
}

/** The application's two keys, the signing key second, so that a verifier cannot just take the first. */
export const KEY_SET: { keys: Jwk[] } = { keys: [OTHER_KEY.publicJwk, SIGNING_KEY.publicJwk] };
export const IN_SET: Circumstances = { publicKeys: KEY_SET };

/** A case that must be accepted, with the claims that the verifier must report. */
export function accept(
  name: string,
  jwt: string,
  circumstances: Circumstances & Pick<Vector, "claims" | "keyId" | "acceptedDespite"> = {},
): Vector {
  return { ...vector(name, "ok", jwt, circumstances), claims: CLAIMS, keyId: HEADER.kid, ...circumstances };
}

/** A case that must be refused for this reason. */
export function refuse(
  expected: VerificationFailure,
  name: string,
  jwt: string,
  circumstances: Circumstances = {},
): Vector {
  return { ...vector(name, expected, jwt, circumstances), ...circumstances };
}

function vector(name: string, expected: Vector["expected"], jwt: string, { publicKeys }: Circumstances): Vector {
  const keys = publicKeys === undefined ? { publicKey: SIGNING_KEY.spki } : {};
  const defaults = { applicationId: APPLICATION_ID, nowSeconds: ISSUED_AT + 60, clockToleranceSeconds: 60 };
  return { name, expected, jwt, ...keys, ...defaults };
}
