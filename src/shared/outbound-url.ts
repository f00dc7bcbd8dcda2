import { MAX_WEBHOOK_URL_CHARACTERS } from "./limits/webhook-limits.ts";

/**
 * The rules for URLs that the service fetches: webhooks and OpenID providers (contract sections 8 and 22). Checked when a URL is
 * set and again before every attempt. Runs on Workers and on Node.
 *
 * The WHATWG URL parser normalizes hosts: it decodes percent-encoding, maps look-alike characters (UTS #46) and turns
 * every spelling of an IPv4 address into four decimal numbers. The rules check the normalized host. The resolution of
 * names is not checked here; the Worker's `global_fetch_strictly_public` flag covers it.
 */

/** The reason why a URL is refused. `local-only`: it would be allowed if the service ran locally. */
export type UrlRefusal =
  | "too-long"
  | "malformed"
  | "user-info"
  | "fragment"
  | "local-only"
  | "not-https"
  | "ip-literal"
  | "malformed-host"
  | "local-name"
  | "single-label"
  | "not-port-443";

/** `url` is the normalized form, which passes the same check. */
type UrlCheck = { ok: true; url: URL } | { ok: false; reason: UrlRefusal };

/** White space, control characters and backslashes: always a mistake, and parsers treat them differently. */
const AMBIGUOUS_CHARACTER = /[\s\p{Cc}\\]/u;
/** Requires both slashes, since a missing one is a typo, though the parser accepts it. The group is user info, host, port. */
const AUTHORITY = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]+)/i;
/** Receivers of local development, in their plain spelling only. */
const LOCAL_RECEIVER = /^http:\/\/(localhost|127\.0\.0\.1)(:[1-9][0-9]*)?$/i;
/** RFC 1123 section 2.1, and the underscore, which occurs in practice. */
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MAX_HOST_CHARACTERS = 253;
/**
 * Last labels of names that only one machine or one network knows: RFC 6761, RFC 6762 with its appendix G, RFC 8375 (home.arpa;
 * other names below arpa have no web servers), RFC 7686 (onion), and the names that ICANN does not delegate because networks use
 * them.
 * Not `test` and `invalid` (RFC 6761): the contract allows them, and no public name server has them.
 */
const LOCAL_TOP_LABELS: ReadonlySet<string> = new Set(
  "localhost localdomain domain local internal intranet private lan home corp mail arpa onion".split(" "),
);

/**
 * Checks the URL of a webhook or of an OpenID provider.
 *
 * @param local whether the service runs locally: only then may a receiver be `http://localhost` or `http://127.0.0.1`
 */
export function checkOutboundUrl(text: string, { local }: { local: boolean }): UrlCheck {
  if (text.length > MAX_WEBHOOK_URL_CHARACTERS) return { ok: false, reason: "too-long" };
  const authority = AUTHORITY.exec(text)?.[1];
  const url = URL.parse(text);
  if (url === null || authority === undefined || AMBIGUOUS_CHARACTER.test(text)) {
    return { ok: false, reason: "malformed" };
  }
  const reason = refusalOfForm(url, authority) ?? refusalOfTarget(url, authority, local);
  return reason === null ? { ok: true, url } : { ok: false, reason };
}

/** Rules for any target. Empty user info and an empty fragment count too, though the parsed fields hide them. */
function refusalOfForm(url: URL, authority: string): UrlRefusal | null {
  if (url.href.length > MAX_WEBHOOK_URL_CHARACTERS) return "too-long";
  if (authority.includes("@")) return "user-info";
  return url.href.includes("#") ? "fragment" : null;
}

function refusalOfTarget(url: URL, authority: string, local: boolean): UrlRefusal | null {
  if (LOCAL_RECEIVER.test(`${url.protocol}//${authority}`)) return local ? null : "local-only";
  if (url.protocol !== "https:") return "not-https";
  // The parser leaves the port empty when it is the scheme's own.
  return refusalOfHost(url.hostname) ?? (url.port === "" ? null : "not-port-443");
}

/** @param hostname as the parser gives it: lower case, ASCII, an IPv6 address in brackets */
function refusalOfHost(hostname: string): UrlRefusal | null {
  if (hostname.startsWith("[") || /^[0-9]+(\.[0-9]+){3}$/.test(hostname)) return "ip-literal";
  // One trailing dot marks a fully qualified name.
  const name = hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  const labels = name.split(".");
  if (name.length > MAX_HOST_CHARACTERS || !labels.every((label) => LABEL.test(label))) return "malformed-host";
  if (LOCAL_TOP_LABELS.has(labels.at(-1) ?? "")) return "local-name";
  return labels.length === 1 ? "single-label" : null;
}

/** The fault of a refused URL and its remedy, as one line for a terminal. */
export function describeUrlRefusal(reason: UrlRefusal): string {
  switch (reason) {
    case "too-long":
      return `The webhook URL is longer than ${MAX_WEBHOOK_URL_CHARACTERS} characters: give a shorter one.`;
    case "malformed":
      return "The webhook URL cannot be read: write it as https://host/path, without spaces or backslashes.";
    case "user-info":
      return "The webhook URL contains a user name or password: leave out everything up to the @ sign.";
    case "fragment":
      return "The webhook URL contains a fragment, which is never sent: leave out the # sign and what follows it.";
    case "local-only":
      return "A webhook URL on localhost works only while the service runs locally: give a public https URL.";
    case "not-https":
      return "The webhook URL does not start with https://: give an https URL (only a local service takes http, on localhost).";
    case "ip-literal":
      return "The webhook URL's host is an IP address: give a host name.";
    case "malformed-host":
      return "The webhook URL's host is not a valid host name: correct it.";
    case "local-name":
      return "The webhook URL's host is a name of a local network (.local, .lan, .corp or the like): give a public host name.";
    case "single-label":
      return "The webhook URL's host is a single word: give a full host name such as hooks.example.com.";
    case "not-port-443":
      return "The webhook URL names a port other than 443: leave the port out and let the receiver listen on 443.";
  }
}
