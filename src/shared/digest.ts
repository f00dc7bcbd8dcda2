import { base64Url } from "./identifiers.ts";

const encoder = new TextEncoder();

/**
 * SHA-256, base64url. D1 stores secrets and invitation tokens so, which have at least 160 random bits; a proof names its
 * udid and its body so (contract section 15).
 */
export async function digestOf(content: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof content === "string" ? encoder.encode(content) : content;
  return base64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}
