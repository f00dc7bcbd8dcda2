/**
 * The key that new badges get at a moment (contract section 10): the newest whose time has come. So a key never gives
 * way to one that was made before it, even if that one's time comes later: `key rotate --now` overtakes a rotation that
 * still waits.
 *
 * @param keys of one application, oldest first
 * @param now milliseconds
 */
export function currentSigningKey<Key extends { signsFrom: number }>(keys: readonly [Key, ...Key[]], now: number): Key {
  return keys.findLast(({ signsFrom }) => signsFrom <= now) ?? keys[0];
}
