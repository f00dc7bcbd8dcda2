import { base64Url } from "../identifiers.ts";
import type { Application } from "./registry.ts";

/** How D1 keeps a secret or an invitation token for comparison: SHA-256, base64url. Both have 160 random bits or more. */
export async function digestOf(secret: string): Promise<string> {
  return base64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret))));
}

/** Whether this is one of the application's live secrets. Digests are compared in constant time, all of them. */
export async function hasSecret(application: Application, secret: string): Promise<boolean> {
  const encoder = new TextEncoder();
  const presented = encoder.encode(await digestOf(secret));
  let matches = false;
  for (const { digest } of application.secrets) {
    // Both are base64url of 32 bytes, so the lengths that timingSafeEqual insists on are equal.
    if (crypto.subtle.timingSafeEqual(presented, encoder.encode(digest))) matches = true;
  }
  return matches;
}
