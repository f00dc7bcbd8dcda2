const encoder = new TextEncoder();

/**
 * Derives 32 bytes for one purpose from a key, so that they need not be stored. The input of HMAC-SHA-256 is a zero byte,
 * then each part preceded by its length, so different lists of parts give different input. The first part names the purpose.
 * The application's root key also digests udids, none of which begins with a zero byte.
 */
export async function deriveBytes(key: CryptoKey, ...parts: string[]): Promise<Uint8Array<ArrayBuffer>> {
  const text = parts.map((part) => `${part.length}:${part}`).join("");
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(`\0${text}`)));
}
