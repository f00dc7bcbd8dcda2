/** A P-256 public key: a JWK with its required members (RFC 7518 section 6.2.1). */
export interface PublicJwk {
  kty: "EC";
  crv: "P-256";
  /** 32 bytes, base64url without padding. */
  x: string;
  y: string;
}

/**
 * The key that a badge is bound to. It signs proofs for the service and responses to doors. The
 * private half stays in WebCrypto (`webCryptoProofKey`), or in the platform's key store behind the app's own `sign`.
 */
export interface ProofKey {
  readonly publicJwk: PublicJwk;
  /**
   * Signs with ECDSA and SHA-256, once over exactly these bytes.
   *
   * @returns r and s, 32 bytes each. Android Keystore and the Secure Enclave return DER: see `rawSignatureFromDer`.
   */
  sign(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array>;
}

/** A key pair of WebCrypto: ECDSA, P-256. The private key should not be extractable. Any `CryptoKeyPair` fits. */
export interface WebCryptoKeyPair {
  publicKey: WebCryptoKey;
  privateKey: WebCryptoKey;
}

/** The part of a `CryptoKey` that the client uses, because each runtime has its own types, and some have none. */
export interface WebCryptoKey {
  readonly type: string;
  readonly extractable: boolean;
  readonly algorithm: object;
  readonly usages: readonly string[];
}

/**
 * Uses a pair that the app has made with `crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false,
 * ["sign"])` and keeps, for example in IndexedDB. Nothing is stored here.
 *
 * @throws RangeError for a pair of another kind
 */
export async function webCryptoProofKey({ publicKey, privateKey }: WebCryptoKeyPair): Promise<ProofKey> {
  if (!isPublicKey(publicKey) || !isSigningKey(privateKey)) throw notP256();
  const jwk = await crypto.subtle.exportKey("jwk", publicKey);
  if (!("kty" in jwk) || jwk.kty !== "EC" || jwk.crv !== "P-256") throw notP256();
  const { kty, crv, x, y } = jwk;
  if (x === undefined || y === undefined) throw notP256();
  const sign = async (bytes: Uint8Array<ArrayBuffer>) =>
    new Uint8Array(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, bytes));
  return { publicJwk: { kty, crv, x, y }, sign };
}

const isPublicKey = (key: WebCryptoKey): key is CryptoKey => key.type === "public";
const isSigningKey = (key: WebCryptoKey): key is CryptoKey => key.type === "private" && key.usages.includes("sign");
const notP256 = () => new RangeError("not an ECDSA key pair with P-256 that may sign");

const COORDINATE_BYTES = 32;

/**
 * Converts an ECDSA signature from DER (RFC 3279 section 2.2.3), which key stores return, to r and s (RFC 7518 section
 * 3.4).
 *
 * @throws RangeError if the bytes are not the DER of a P-256 signature
 */
export function rawSignatureFromDer(der: Uint8Array): Uint8Array {
  const [r, afterR] = readInteger(der, 2);
  const [s, end] = readInteger(der, afterR);
  if (der[0] !== 0x30 || der[1] !== der.length - 2 || end !== der.length) throw notDer();
  const raw = new Uint8Array(2 * COORDINATE_BYTES);
  raw.set(r, COORDINATE_BYTES - r.length);
  raw.set(s, 2 * COORDINATE_BYTES - s.length);
  return raw;
}

/** @returns the magnitude of the INTEGER at `start`, and the offset behind it */
function readInteger(der: Uint8Array, start: number): [Uint8Array, number] {
  const [tag, length = 0] = der.subarray(start, start + 2);
  const end = start + 2 + length;
  if (tag !== 0x02 || length === 0 || end > der.length) throw notDer();
  const bytes = der.subarray(start + 2, end);
  // A zero byte keeps the number positive when the highest bit is set.
  const magnitude = bytes[0] === 0 ? bytes.subarray(1) : bytes;
  if (magnitude.length > COORDINATE_BYTES) throw notDer();
  return [magnitude, end];
}

const notDer = () => new RangeError("not the DER of an ECDSA signature with P-256");
