const P256 = { name: "ECDSA", namedCurve: "P-256" } as const;
const ES256 = { name: "ECDSA", hash: "SHA-256" } as const;

/** A phone's own key. The building knows its public half; the service never sees it. */
export async function newPhoneKey(): Promise<CryptoKeyPair> {
  return await crypto.subtle.generateKey(P256, false, ["sign", "verify"]);
}

/** The bytes that a phone signs at a door: its badge number and the door's challenge. */
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

/** Whether the phone signed this challenge for this badge. */
export function isByPhone({ phoneKey, clientSignature, challenge }: Presentation, badgeId: string): Promise<boolean> {
  return crypto.subtle.verify(ES256, phoneKey, clientSignature, statement(badgeId, challenge));
}
