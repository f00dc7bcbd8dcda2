import type { Rules } from "../commands.ts";

/** What decides whether a key may use a badge. */
interface KeyOfBadge {
  /** Thumbprint of the key that it is bound to; null if unbound. */
  keyThumbprint: string | null;
  /** Until when another key may take its place, in milliseconds; null: none may. */
  rebindUntil: number | null;
}

/**
 * Whether the badge may be used by a caller who has proved this key, or no key (contract section 15).
 *
 * @param thumbprint null: no key was proved
 */
export function mayUse(
  { keyThumbprint }: Pick<KeyOfBadge, "keyThumbprint">,
  thumbprint: string | null,
  { requireProof }: Pick<Rules, "requireProof">,
): boolean {
  return keyThumbprint === null ? !requireProof : keyThumbprint === thumbprint;
}

/**
 * Whether a login with this key binds the badge to it: while the badge is to be rebound, or unbound badges of the application
 * are to be bound (contract section 15).
 */
export function mayBind(
  { keyThumbprint, rebindUntil }: KeyOfBadge,
  thumbprint: string | null,
  { bindUntil }: Pick<Rules, "bindUntil">,
  now: number,
): thumbprint is string {
  if (thumbprint === null || thumbprint === keyThumbprint) return false;
  const isAhead = (time: number | null) => time !== null && now < time;
  return isAhead(rebindUntil) || (keyThumbprint === null && isAhead(bindUntil));
}
