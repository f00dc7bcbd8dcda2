/**
 * The key that new badges get (contract section 10): the newest one whose `signsFrom` has passed. An older key never
 * replaces a newer one, even if its `signsFrom` is later: `key rotate --now` overtakes a scheduled rotation.
 *
 * @param keys of one application, oldest first
 * @param now milliseconds
 */
export function currentSigningKey<Key extends { signsFrom: number }>(keys: readonly [Key, ...Key[]], now: number): Key {
  return keys.findLast(({ signsFrom }) => signsFrom <= now) ?? keys[0];
}
