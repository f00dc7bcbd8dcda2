import { digestOf } from "../../shared/digest.ts";
import type { Application } from "./registry.ts";

const encoder = new TextEncoder();

/** Whether this is one of the application's live secrets. */
export async function hasSecret(application: Application, secret: string): Promise<boolean> {
  return hasDigest(application, await digestOf(secret));
}

/**
 * Whether one of the application's live secrets has this digest. All digests are compared, each in constant time.
 *
 * @param digest base64url of SHA-256
 */
export function hasDigest({ secrets }: Application, digest: string): boolean {
  const presented = encoder.encode(digest);
  let matches = false;
  for (const { digest: stored } of secrets) {
    // Both are base64url of 32 bytes, so the lengths that timingSafeEqual insists on are equal.
    if (crypto.subtle.timingSafeEqual(presented, encoder.encode(stored))) matches = true;
  }
  return matches;
}
