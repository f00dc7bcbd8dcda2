/** A user ID in a text is a word of its own: that of `ada` is not in `adam`, nor in `ada@example.com`. */
const IN_WORD_BEFORE = String.raw`(?<![\p{L}\p{N}_]|[\p{L}\p{N}_][.@+-])`;
const IN_WORD_AFTER = String.raw`(?![\p{L}\p{N}_]|[.@+-][\p{L}\p{N}_])`;

/**
 * Puts an alias in place of a user ID that somebody wrote into the name of an actor or into a reason (contract section 24).
 *
 * @returns what does that to a text
 */
export function withoutUser(userId: string, alias: string): (text: string) => string {
  const written = userId.replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
  const mention = new RegExp(`${IN_WORD_BEFORE}${written}${IN_WORD_AFTER}`, "gu");
  return (text) => text.replace(mention, alias);
}
