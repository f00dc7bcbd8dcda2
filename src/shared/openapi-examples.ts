/**
 * Examples for the reference. All of them describe alice's phone in one application and are consistent: the JWT verifies
 * with the public key, the webhook's headers with the secret (a test checks both). The signing key is the example of RFC
 * 7515 appendix A.3, so it is obviously no secret.
 */

import { USER_AGENT } from "./identifiers.ts";

export const EXAMPLE_APPLICATION_ID = "app_0123456789abcdefghjk";
export const EXAMPLE_SECRET = "bdss_EXAMPLE_ONLY_0123456789abcdefghijklmnopqrst";
export const EXAMPLE_UDID = "2b6f0cc904d137be2e1730235f5664094b831186";
export const EXAMPLE_BADGE = "1004711815";
export const EXAMPLE_OTHER_BADGE = "1007352219";
export const EXAMPLE_TOKEN = "inv_Zk3vQm8RtW1xYb7cLp0NfJd5Hs2GaEuT";
export const EXAMPLE_EXPIRES_AT = "2027-01-22T18:00:00+01:00";
export const EXAMPLE_REQUEST_ID = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
/** Of home 1. */
export const EXAMPLE_BOOKMARK = "1.00000085-0000024c-00004c6d-8e61117bf38d7adb71b934ebbf891683";
export const EXAMPLE_METADATA = { deviceModel: "Pixel 9", os: "Android", osVersion: "16", sdkVersion: "4.2.0" };
export const EXAMPLE_CLIENT_SIGNATURE = "GsnH9lTgaz27rVLwjf7++w==";

export const EXAMPLE_PUBLIC_KEY =
  "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==";

export const EXAMPLE_JWK = {
  kty: "EC",
  crv: "P-256",
  x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
  y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
  kid: "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U",
  alg: "ES256",
  use: "sig",
};

/** Of the key that a phone binds its badge to: the example of RFC 9449 section 6.1. */
export const EXAMPLE_KEY_THUMBPRINT = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I";

/** Header and claims of `EXAMPLE_SIGNATURE`. */
export const EXAMPLE_SIGNATURE_HEADER = { alg: "ES256", kid: EXAMPLE_JWK.kid, typ: "badge-signature+jwt" };
export const EXAMPLE_SIGNATURE_CLAIMS = {
  client_signature: EXAMPLE_CLIENT_SIGNATURE,
  sub: EXAMPLE_BADGE,
  aud: EXAMPLE_APPLICATION_ID,
  iat: 1_800_000_000,
  exp: 1_800_000_300,
};

export const EXAMPLE_SIGNATURE = [
  "eyJhbGciOiJFUzI1NiIsImtpZCI6Im9LSXl3dkdVcFRWVHl4TVEzYndJSWVRVXVkZnJfQ2tMTWpDRTE5RUNELVUiLCJ0eXAiOiJiYWRnZS1zaWduYXR1cmUrand0In0",
  "eyJjbGllbnRfc2lnbmF0dXJlIjoiR3NuSDlsVGdhejI3clZMd2pmNysrdz09Iiwic3ViIjoiMTAwNDcxMTgxNSIsImF1ZCI6ImFwcF8wMTIzNDU2Nzg5YWJjZGVmZ2hqayIsImlhdCI6MTgwMDAwMDAwMCwiZXhwIjoxODAwMDAwMzAwfQ",
  "9C6X0z_1BWRrsngRdQY0yPPWu52SKk3FA1jBP5to9B6NIZP_2GH7ZBcpv1B5k9Xx6C_8LW4IIuHjx5BTiVu8Dw",
].join(".");

/** The status list of the application's first badges, none of which has ended. */
export const EXAMPLE_STATUS_LIST = [
  "eyJhbGciOiJFUzI1NiIsImtpZCI6Im9LSXl3dkdVcFRWVHl4TVEzYndJSWVRVXVkZnJfQ2tMTWpDRTE5RUNELVUiLCJ0eXAiOiJzdGF0dXNsaXN0K2p3dCJ9",
  "eyJzdWIiOiJodHRwczovL2JhZGdlcy5leGFtcGxlLmNvbS92MS9hcHBsaWNhdGlvbnMvYXBwXzAxMjM0NTY3ODlhYmNkZWZnaGprL3N0YXR1cy8wIiwiaWF0IjoxODAwMDAwMDAwLCJleHAiOjE4MDAwODY0MDAsInR0bCI6NjAsImNoYW5nZSI6NDcxMSwic3RhdHVzX2xpc3QiOnsiYml0cyI6MiwibHN0IjoiZUp6dHdRRUJBQUFBZ0pELXItNElDZ0FBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBWWdBQUFBUSJ9fQ",
  "Qzo7HG-Km1ajbjACeDeh87l4ba1ohvUOTgun-M484X-i4YmSRIn22Xcb1NB1tklRVcR6wEKhVWewZvZTtNXYfg",
].join(".");

/** A badge is suspended: the change after that list. */
export const EXAMPLE_STATUS_DELTA = [
  "eyJhbGciOiJFUzI1NiIsImtpZCI6Im9LSXl3dkdVcFRWVHl4TVEzYndJSWVRVXVkZnJfQ2tMTWpDRTE5RUNELVUiLCJ0eXAiOiJzdGF0dXNkZWx0YStqd3QifQ",
  "eyJzdWIiOiJodHRwczovL2JhZGdlcy5leGFtcGxlLmNvbS92MS9hcHBsaWNhdGlvbnMvYXBwXzAxMjM0NTY3ODlhYmNkZWZnaGprL3N0YXR1cyIsImlhdCI6MTgwMDAwMDA2MCwic2luY2UiOjQ3MTEsImNoYW5nZSI6NDcxMywiZW50cmllcyI6W1swLDk3MzEyLDJdXX0",
  "zRjSFIJOVlAChzoey_81OU8A_tmDwjyxjma7hMdEsseZSV40IzTp298x-Jg0wEkh1lNqmUD3dwTuZMJtQE3z3A",
].join(".");

/** Sent to alice's application when her badge was issued. */
export const EXAMPLE_WEBHOOK = {
  id: "evt_01mcc5rmfmctq3726vv8xjfmh9",
  event: "badge:created",
  createdAt: "2027-01-15T08:00:00.500Z",
  data: { id: EXAMPLE_BADGE, userId: "alice", metadata: EXAMPLE_METADATA },
};

/** `EXAMPLE_WEBHOOK_HEADERS` sign exactly these bytes. */
export const EXAMPLE_WEBHOOK_BODY = JSON.stringify(EXAMPLE_WEBHOOK);

export const EXAMPLE_WEBHOOK_HEADERS = {
  "User-Agent": USER_AGENT,
  Signature: "jxb4HEQ95BMxDB5Oz4lPuuErjKQ=",
  "webhook-id": "evt_01mcc5rmfmctq3726vv8xjfmh9",
  "webhook-timestamp": "1800000001",
  "webhook-signature": "v1,ZznO/cJB2t6NfjaexRzfNL/P+3qsWK3MIBdF6/lSSk0=",
};
