import { Custody, type Sealed } from "../../../../src/worker/keys/custody.ts";
import { SealingKeys } from "../../../../src/worker/keys/sealing-keys.ts";
import { hmacKey, newSigningPair, type SigningPair } from "../platform/crypto.ts";

/** Pairs are made once for all seeds. */
const pairs: SigningPair[] = [];

/** The signing key whose "sealed" text says that it is this one. */
export function signingPair(place: number): SigningPair {
  while (pairs.length <= place) pairs.push(newSigningPair());
  const pair = pairs[place];
  if (!pair) throw new Error("there is a pair at every place");
  return pair;
}

const opened = new Map<string, CryptoKey>();

/**
 * Hands out keys without opening anything: RSA costs more than all else of a simulation. What stands where the sealed
 * value would be is the secret itself, or the place of the signing key.
 */
export class ReadyCustody extends Custody {
  constructor() {
    super(new SealingKeys({}));
  }

  override async signingKey(_applicationId: string, _kid: string, { sealed }: Sealed): Promise<CryptoKey> {
    return signingPair(Number(sealed)).privateKey;
  }

  override async deviceKey(_applicationId: string, { sealed }: Sealed): Promise<CryptoKey> {
    return secretKey(sealed, "SHA-256");
  }

  override async webhookKey(
    _applicationId: string,
    _secretId: string,
    { sealed }: Sealed,
    hash: "SHA-1" | "SHA-256",
  ): Promise<CryptoKey> {
    return secretKey(sealed, hash);
  }
}

function secretKey(secret: string, hash: "SHA-1" | "SHA-256"): CryptoKey {
  const name = `${hash} ${secret}`;
  const known = opened.get(name);
  if (known) return known;
  const key = hmacKey(new TextEncoder().encode(secret), hash);
  opened.set(name, key);
  return key;
}
