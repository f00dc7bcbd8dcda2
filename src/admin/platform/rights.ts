import { UserError } from "../command-line/errors.ts";
import { DEPLOY } from "../command-line/shell.ts";

export const TOKENS_PAGE = "https://dash.cloudflare.com/profile/api-tokens";

/** Codes of the platform's API for a token that is wrong or lacks a right. */
const CODES = new Set([1000, 7403, 9106, 9109, 10000]);

export const isAboutRights = (code: number): boolean => CODES.has(code);

/** Rights of an API token, as the page for tokens names them, by a part of the call's path. */
const RIGHTS: readonly (readonly [part: RegExp, right: string])[] = [
  [/\/d1\//, "Account, D1, Edit"],
  [/\/queues/, "Account, Queues, Edit"],
  // Before a call attaches a domain, the same token has uploaded the Worker.
  [/\/zones|\/domains\/records/, "Zone, Workers Routes, Edit"],
  [/\/workers\/(scripts|services|assets|subdomain|domains)/, "Account, Workers Scripts, Edit"],
  [/\/(accounts|memberships)$/, "Account, Account Settings, Read (or set CLOUDFLARE_ACCOUNT_ID)"],
];

/**
 * Says which right a refused call needs.
 *
 * @param path the call's path, or a text that contains it
 * @param reason the platform's message
 */
export function lackingRight(path: string, reason: string): UserError {
  const right = RIGHTS.find(([part]) => part.test(path))?.[1];
  const lacks = right === undefined ? "is not valid, or lacks a right" : `is not valid, or lacks the right "${right}"`;
  return new UserError(`The API token ${lacks} (${reason}): correct it at ${TOKENS_PAGE}, and run the command again.`);
}

const NEEDS_WORKERS_PAID =
  "The account is on the Workers Free plan, and the service needs Workers Paid ($5 a month): one call may need more than Free's 10 ms of CPU and 50 queries, and D1 can be restored for 7 days only. Choose it at https://dash.cloudflare.com/?to=/:account/workers/plans, and run the command again.";

/** What to do about an error of the platform, by its code, if its own message does not say. */
const ADVICE: ReadonlyMap<number, string> = new Map([
  // The first refuses limits.cpu_ms, the second queues that the account's plan does not have.
  [100328, NEEDS_WORKERS_PAID],
  [100129, NEEDS_WORKERS_PAID],
  [
    11002,
    "Queues are not enabled in this account yet: open https://dash.cloudflare.com/?to=/:account/workers/queues once, enable them, and run the command again.",
  ],
  [
    10215,
    `The newest version of the Worker does not have all traffic (a gradual deployment, or a rollback), and secrets can be changed only when it has. Finish the gradual deployment (npx wrangler versions deploy --env production), or deploy the release that is to run (${DEPLOY}; an older one needs --force), and run the command again.`,
  ],
]);

/** What to do about an error of the platform; undefined when its own message must do. */
export const adviceFor = (codes: readonly number[]): string | undefined =>
  codes.map((code) => ADVICE.get(code)).find((advice) => advice !== undefined);

/** Finds such an error in what wrangler printed. @returns undefined when it failed for another reason */
export function knownErrorIn(output: string): UserError | undefined {
  const [reason, code] = /[^\n.]*\[code: (\d+)\]/.exec(output) ?? [];
  // wrangler replaces the platform's message for this one.
  const isGradual = output.includes("the latest version of your Worker isn't currently deployed");
  const advice = adviceFor([isGradual ? 10215 : Number(code)]);
  if (advice !== undefined) return new UserError(advice);
  if (reason === undefined || !isAboutRights(Number(code))) return undefined;
  const [, path = ""] = /Cloudflare API \((\S+)\) failed/.exec(output) ?? [];
  return lackingRight(path, reason.replace(/^[\s-]+/, ""));
}
