/** `http` or `https`, an authority without user info, and only characters that a URI may have (RFC 3986 appendix A). */
const HTTP_URI = /^https?:\/\/[A-Za-z0-9\-._~:[\]!$&'()*+,;=%]+(?:[/?#][A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]*)?$/i;
const BROKEN_PERCENT_ENCODING = /%(?![0-9A-Fa-f]{2})/;
const PERCENT_ENCODED = /%[0-9A-Fa-f]{2}/g;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/**
 * One text for all spellings of a URL, without query and fragment (RFC 9449 section 4.3; RFC 3986 sections 6.2.2 and
 * 6.2.3): scheme and host in lower case, no default port, no dot segments, at least `/` as the path, percent-encoding
 * in upper case and only where it is needed.
 *
 * @returns null unless the text is an absolute http or https URL
 */
export function normalizeUrl(text: string): string | null {
  // `URL` also accepts texts that are not URIs: white space, backslashes, a missing or additional slash.
  if (!HTTP_URI.test(text) || BROKEN_PERCENT_ENCODING.test(text)) return null;
  const url = URL.parse(text);
  // `URL` does all of this except the percent-encoding. It accepts `%2e` as a dot in dot segments.
  return url && url.origin + url.pathname.replace(PERCENT_ENCODED, normalizePercentEncoding);
}

function normalizePercentEncoding(encoded: string): string {
  const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
  return UNRESERVED.test(character) ? character : encoded.toUpperCase();
}

/**
 * The URLs that a proof may name (contract section 15). With a `PUBLIC_URL`, only the URL under it is valid, so that a
 * proof for another host or its proxy is useless here. Local development is reached as localhost, as 127.0.0.1 and by
 * its address in the network, so the called URL is also valid there.
 *
 * @param publicUrl without a slash at its end; null if it is not set
 */
export function callUrls(requestUrl: string, publicUrl: string | null, isLocal: boolean): string[] {
  if (publicUrl === null) return [requestUrl];
  const publicOne = publicUrl + new URL(requestUrl).pathname;
  return isLocal ? [requestUrl, publicOne] : [publicOne];
}
