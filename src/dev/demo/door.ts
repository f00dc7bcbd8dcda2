import * as z from "zod";
import { type JwkSet, verifyBadgeSignature } from "../../verify/badge-signature.ts";
import type { Narrator } from "./narrator.ts";
import { must } from "./narrator.ts";

const MAX_AGE_SECONDS = 60;
/** The story's door and service are one computer. Real doors allow for clocks that differ. */
const CLOCK_TOLERANCE_SECONDS = 0;
const P256 = { name: "ECDSA", namedCurve: "P-256" } as const;
const ES256 = { name: "ECDSA", hash: "SHA-256" } as const;

/** A phone's own key. The building knows its public half; the service is not involved. */
export async function newPhoneKey(): Promise<CryptoKeyPair> {
  return await crypto.subtle.generateKey(P256, false, ["sign", "verify"]);
}

/** What a phone signs at a door: its badge number and the door's challenge. */
const statement = (badgeId: string, challenge: string): BufferSource =>
  new Uint8Array(new TextEncoder().encode(`${badgeId} at ${challenge}`));

/** What a phone shows at a door. */
export interface Presentation {
  badgeId: string;
  challenge: string;
  /** ECDSA P-256 with SHA-256 over badge number and challenge. */
  clientSignature: Uint8Array<ArrayBuffer>;
  phoneKey: CryptoKey;
  /** The service's signature. */
  signature: string;
}

/** What a phone shows at a door, without the service's signature. */
export async function presentedAt(
  challenge: string,
  badgeId: string,
  key: CryptoKeyPair,
): Promise<Omit<Presentation, "signature">> {
  const clientSignature = await crypto.subtle.sign(ES256, key.privateKey, statement(badgeId, challenge));
  return { badgeId, challenge, clientSignature: new Uint8Array(clientSignature), phoneKey: key.publicKey };
}

/** What a door knows. */
export interface Door {
  keys: JwkSet;
  applicationId: string;
}

const jwkSet = z.object({ keys: z.array(z.unknown()) });

/** Fetches what a door needs in advance: the application's public keys. */
export async function fetchKeySet(narrator: Narrator, origin: string, applicationId: string): Promise<JwkSet> {
  const path = `/v1/applications/${applicationId}/jwks.json`;
  const response = await narrator.fetch(`${origin}${path}`, { method: "GET" });
  must(response.status === 200, "the key set needs no credentials");
  return jwkSet.parse(await response.json());
}

/**
 * Decides without asking the service: the service's signature says which badge presented which client signature, and
 * the client signature says that the phone answered this door's challenge.
 *
 * @returns what the door does
 */
export async function checkAtDoor(
  door: Door,
  { challenge, clientSignature, phoneKey, signature }: Presentation,
): Promise<string> {
  const verified = await verifyBadgeSignature(signature, {
    ...door,
    now: Date.now(),
    maxAgeSeconds: MAX_AGE_SECONDS,
    clockToleranceSeconds: CLOCK_TOLERANCE_SECONDS,
    clientSignature: Buffer.from(clientSignature).toString("base64"),
  });
  if (!verified.ok) return `closed: ${verified.reason}`;
  const data = statement(verified.badgeNumber, challenge);
  const isByPhone = await crypto.subtle.verify(ES256, phoneKey, clientSignature, data);
  return isByPhone ? `open for badge ${verified.badgeNumber}` : "closed: the phone did not sign this challenge";
}
