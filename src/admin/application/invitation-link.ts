import { UserError } from "../command-line/errors.ts";

/** A QR code of more is hard to scan from a phone's screen. */
const MAX_CHARACTERS = 300;

const TOKEN = "{token}";

/** Schemes that run what they contain, or show it without a host. */
const UNFIT_SCHEMES: ReadonlySet<string> = new Set([
  "http:",
  "javascript:",
  "data:",
  "blob:",
  "vbscript:",
  "file:",
  "about:",
]);

export const INVITATION_LINK_HELP =
  "what the console's QR codes of invitations open, with {token} where the token goes: https, or your app's own scheme";

/**
 * Checks `--invitation-link`.
 *
 * @param text false for `--no-invitation-link`
 * @returns null for no link, undefined when the option was not given
 * @throws UserError that says what is wrong with it
 */
export function checkedInvitationLink(text: string | false | undefined): string | null | undefined {
  if (text === undefined) return undefined;
  if (text === "" || text === false) return null;
  if (text.split(TOKEN).length !== 2)
    throw new UserError(`The invitation link needs ${TOKEN} once, where the token goes.`);
  if (text.length > MAX_CHARACTERS) {
    throw new UserError(
      `The invitation link has more than ${MAX_CHARACTERS} characters: its QR code would be hard to scan.`,
    );
  }
  const url = URL.parse(text.replace(TOKEN, "inv_token"));
  if (url === null || /[\s\p{Cc}]/u.test(text)) throw new UserError(`"${text}" is not a URL.`);
  if (UNFIT_SCHEMES.has(url.protocol)) {
    throw new UserError(
      "The invitation link must begin with https: or the scheme of an app, because it carries a secret.",
    );
  }
  return text;
}
