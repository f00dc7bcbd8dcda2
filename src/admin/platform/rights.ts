import { UserError } from "../command-line/errors.ts";

export const TOKENS_PAGE = "https://dash.cloudflare.com/profile/api-tokens";

/** Codes of the platform's API for a token that is wrong or lacks a right. */
const CODES = new Set([1000, 7403, 9106, 9109, 10000]);

export const isAboutRights = (code: number): boolean => CODES.has(code);

/** Rights of an API token, as the page for tokens names them, by what a path has in it. */
const RIGHTS: readonly (readonly [part: RegExp, right: string])[] = [
  [/\/d1\//, "Account, D1, Edit"],
  [/\/queues/, "Account, Queues, Edit"],
  // Who attaches a domain has uploaded before.
  [/\/zones|\/domains\/records/, "Zone, Workers Routes, Edit"],
  [/\/workers\/(scripts|services|assets|subdomain|domains)/, "Account, Workers Scripts, Edit"],
  [/\/(accounts|memberships)$/, "Account, Account Settings, Read (or set CLOUDFLARE_ACCOUNT_ID)"],
];

/**
 * Says which right a refused call needs.
 *
 * @param path of the call, which may be a part of a longer text
 * @param reason the platform's words
 */
export function lackingRight(path: string, reason: string): UserError {
  const right = RIGHTS.find(([part]) => part.test(path))?.[1];
  const lacks = right === undefined ? "is not valid, or lacks a right" : `is not valid, or lacks the right "${right}"`;
  return new UserError(`The API token ${lacks} (${reason}): correct it at ${TOKENS_PAGE}, and run the command again.`);
}

/** The same for what wrangler printed. @returns undefined when it failed for another reason */
export function lackingRightIn(output: string): UserError | undefined {
  const [reason, code] = /[^\n.]*\[code: (\d+)\]/.exec(output) ?? [];
  if (reason === undefined || !isAboutRights(Number(code))) return undefined;
  const [, path = ""] = /Cloudflare API \((\S+)\) failed/.exec(output) ?? [];
  return lackingRight(path, reason.replace(/^[\s-]+/, ""));
}
