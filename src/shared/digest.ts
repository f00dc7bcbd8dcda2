import { base64Url } from "./identifiers.ts";

const encoder = new TextEncoder();

/** The form in which D1 stores a secret or an invitation token: SHA-256, base64url. Both have at least 160 random bits. */
export async function digestOf(secret: string): Promise<string> {
  return base64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(secret))));
}
