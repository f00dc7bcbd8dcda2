import { base64Url } from "./identifiers.ts";

const encoder = new TextEncoder();

/** How D1 keeps a secret or an invitation token for comparison: SHA-256, base64url. Both have 160 random bits or more. */
export async function digestOf(secret: string): Promise<string> {
  return base64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(secret))));
}
