const encoder = new TextEncoder();

/**
 * 32 bytes for one purpose, derived under a key so that they need not be stored: HMAC-SHA-256 over a zero byte and each
 * part after its length, so no two lists of parts give the same bytes. The first part names the purpose. The application's
 * device key also digests udids; none of them begins with a zero byte.
 */
export async function deriveBytes(key: CryptoKey, ...parts: string[]): Promise<Uint8Array<ArrayBuffer>> {
  const text = parts.map((part) => `${part.length}:${part}`).join("");
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(`\0${text}`)));
}
