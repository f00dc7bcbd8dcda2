/**
 * The variable `PUBLIC_URL` of wrangler.toml: the URL under which callers reach the service. URLs of status lists and links of
 * invitations begin with it, and proofs must name it (contract sections 14, 15 and 27).
 *
 * @returns the URL without a slash at its end; null if the text is not an http or https URL of host, port and path only
 */
export function parsePublicUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { protocol, origin, pathname, username, password, search, hash } = new URL(text);
  const isPlain = username === "" && password === "" && search === "" && hash === "";
  if (!isPlain || (protocol !== "https:" && protocol !== "http:")) return null;
  return origin + pathname.replace(/\/+$/, "");
}
