import { SUBSCRIBABLE_EVENTS } from "../../shared/events.ts";
import { DEFAULT_NEW_BADGES_PER_HOUR } from "../../shared/limits/request-limits.ts";
import { MIN_STATUS_LIFETIME_SECONDS } from "../../shared/limits/status-list-limits.ts";
import { checkOutboundUrl, describeUrlRefusal } from "../../shared/outbound-url.ts";
import type { application } from "../../shared/schema.ts";
import { parsePublicUrl } from "../../shared/service-url.ts";
import { eventList, MAX_SECONDS, seconds, timeOrNever, wholeNumber } from "../command-line/arguments.ts";
import { negatable, type OptionValues, option } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { readTarget } from "../platform/target.ts";
import { loadWrangler } from "../platform/wrangler.ts";
import { readUserOptions, USER_OPTIONS } from "./user-options.ts";

type Columns = typeof application.$inferInsert;

/** New values of the application's columns; undefined for the default, or to keep the value. */
export type Settings = { [Name in keyof Columns]?: Columns[Name] | undefined };

/** Options of `application create` and `application update`. Most have the name of the column that they set. */
export const SETTING_OPTIONS = {
  webhookUrl: negatable(
    option(
      "--webhook-url <url>",
      'where events are sent: https (http://localhost:PORT locally), or "" for nowhere',
      urlOrNone,
    ),
    "send no events",
  ),
  events: option(
    "--events <list>",
    `the events to send, separated by commas, of ${SUBSCRIBABLE_EVENTS.join(", ")}`,
    eventList,
  ),
  invitationLink: negatable(
    option(
      "--invitation-link <url>",
      "the link in the console's QR codes of invitations, with {token} in place of the token: https, or your app's own scheme. Default, if PUBLIC_URL is set: the service's page for visitors, /pass",
      urlOrNone,
    ),
    "use the default link again; without PUBLIC_URL those QR codes have only the token",
  ),
  requireSecret: negatable(
    option("--require-secret", "let only callers with the secret create invitations; always so with --user-issuer"),
    "let devices create invitations too",
  ),
  reuseAfterSeconds: option(
    "--reuse-after <seconds>",
    "how long the number of a revoked or expired invitation cools down",
    seconds,
  ),
  signatureLifetimeSeconds: option(
    "--signature-lifetime <seconds>",
    "how long signatures are valid; none or 0 for ever",
    (text) => (text === "none" ? null : seconds(text) || null),
  ),
  statusList: negatable(
    option("--status-list", "publish the status of badges for offline doors; needs PUBLIC_URL in wrangler.toml"),
    "publish no status lists; doors then refuse badges whose signatures name one",
  ),
  statusLifetimeSeconds: option(
    "--status-lifetime <seconds>",
    "how long a door may go on without a newer list",
    wholeNumber(MIN_STATUS_LIFETIME_SECONDS, MAX_SECONDS),
  ),
  requireProof: negatable(
    option("--require-proof", "refuse device calls without a proof (DPoP), and badges that are not bound to a key"),
    "let devices call without proofs; bound badges still need their key",
  ),
  bindUntil: option(
    "--bind-until <time>",
    "until this time, the first login with a proof binds an unbound badge; a past time, or never, ends that",
    timeOrNever,
  ),
  newBadgesPerHour: option(
    "--new-badges-per-hour <n>",
    `the most fresh numbers that badges and invitations without the secret take in a clock hour (${DEFAULT_NEW_BADGES_PER_HOUR}), or none for no limit`,
    (text) => (text === "none" ? null : wholeNumber(1)(text)),
  ),
  ...USER_OPTIONS,
};

function urlOrNone(text: string): string | null {
  return text || null;
}

/**
 * @param environment undefined for local state
 * @throws UserError for a value that the service could not use
 */
export async function readSettings(
  { userIssuer, userAudience, userClaim, observe, unchecked, ...columns }: OptionValues<typeof SETTING_OPTIONS>,
  environment: string | undefined,
): Promise<Settings> {
  const isLocal = environment === undefined;
  if (columns.webhookUrl) assertWebhookUrl(columns.webhookUrl, isLocal);
  if (columns.invitationLink) assertInvitationLink(columns.invitationLink);
  if (columns.statusList) assertPublicUrl(readTarget(loadWrangler(), environment).publicUrl, environment);
  if (columns.requireSecret === false && userIssuer) throw requiredSecretError();
  const users = await readUserOptions({ userIssuer, userAudience, userClaim, observe, unchecked }, isLocal);
  return { ...columns, events: columns.events?.join(), ...users };
}

export const requiredSecretError = (): UserError =>
  new UserError(
    "With a user issuer, invitations always need the secret: leave out --no-require-secret, or add --no-user-issuer.",
  );

/** The URL is stored as given, not normalized. */
function assertWebhookUrl(url: string, isLocal: boolean): void {
  const check = checkOutboundUrl(url, { local: isLocal });
  if (!check.ok) throw new UserError(describeUrlRefusal(check.reason));
}

/** The QR code of a longer link is hard to scan from a phone's screen. */
const MAX_LINK_CHARACTERS = 300;

/** Schemes that run or show their own content, and http, which sends the token unencrypted. */
const UNFIT_SCHEMES = ["http:", "javascript:", "data:", "blob:", "vbscript:", "file:", "about:"];

function assertInvitationLink(link: string): void {
  if (link.split("{token}").length !== 2) {
    throw new UserError("The invitation link needs {token} exactly once, in place of the token.");
  }
  if (link.length > MAX_LINK_CHARACTERS) {
    throw new UserError(
      `The invitation link has more than ${MAX_LINK_CHARACTERS} characters: its QR code would be hard to scan.`,
    );
  }
  const url = URL.parse(link.replace("{token}", "inv_token"));
  if (url === null || /[\s\p{Cc}]/u.test(link)) throw new UserError(`"${link}" is not a URL.`);
  if (UNFIT_SCHEMES.includes(url.protocol)) {
    throw new UserError(
      "The invitation link must begin with https: or the scheme of an app, because it carries a secret.",
    );
  }
}

/**
 * Signatures contain the URLs of status lists, which begin with `PUBLIC_URL` (contract section 14).
 *
 * @param environment undefined for local state, where the URL may be http
 */
export function assertPublicUrl(text: string, environment: string | undefined): void {
  const section = environment === undefined ? "[vars]" : `[env.${environment}.vars]`;
  const example = 'such as "https://badges.example.com"';
  if (text === "") {
    throw new UserError(
      `Status lists need the service's address: set PUBLIC_URL in ${section} of wrangler.toml, ${example}, and deploy.`,
    );
  }
  const url = parsePublicUrl(text);
  if (url === null || (environment !== undefined && !url.startsWith("https://"))) {
    throw new UserError(`PUBLIC_URL in ${section} of wrangler.toml is not an https URL, ${example}.`);
  }
}
