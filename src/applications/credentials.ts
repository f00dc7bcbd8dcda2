import { digestOf } from "../digest.ts";
import type { Application } from "./registry.ts";

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
