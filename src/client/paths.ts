/**
 * Encodes one segment of a path. "." and ".." cannot be encoded: `fetch` resolves them even if percent-encoded (URL
 * Standard, path state), and the request for one user's badges would list those of all users.
 *
 * @throws RangeError if the text cannot be a segment
 */
export function pathSegment(text: string | undefined): string {
  if (text === undefined || text === "" || text === "." || text === "..") {
    throw new RangeError(`${text === undefined ? "undefined" : `"${text}"`} cannot be part of a path`);
  }
  return percentEncode(text);
}

/** @throws RangeError for half a surrogate pair, which UTF-8 does not have */
export function percentEncode(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    throw new RangeError(`${JSON.stringify(text)} is not Unicode`);
  }
}

/**
 * The query with its question mark, without the parameters that are null or undefined. Written by hand because React
 * Native's URLSearchParams is read-only.
 */
export function queryText(query: Record<string, string | number | null | undefined>): string {
  const pairs = Object.entries(query).filter(([, value]) => value != null);
  return pairs
    .map(([name, value], index) => `${index === 0 ? "?" : "&"}${name}=${percentEncode(String(value))}`)
    .join("");
}
