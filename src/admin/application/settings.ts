import { SUBSCRIBABLE_EVENTS } from "../../shared/events.ts";
import { DEFAULT_NEW_BADGES_PER_HOUR, MIN_STATUS_LIFETIME_SECONDS } from "../../shared/limits.ts";
import { parsePublicUrl } from "../../shared/public-url.ts";
import type { application } from "../../shared/schema.ts";
import { checkWebhookUrl, describeUrlRefusal } from "../../shared/webhook-url.ts";
import { eventList, MAX_SECONDS, seconds, timeOrNever, wholeNumber } from "../command-line/arguments.ts";
import { type OptionValues, option, orNo } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { readTarget } from "../platform/target.ts";
import { loadWrangler } from "../platform/wrangler.ts";
import { readUserOptions, USER_OPTIONS } from "./user-options.ts";

type Columns = typeof application.$inferInsert;

/** What the columns of src/shared/schema.ts are to be; undefined: their default, or as they are. */
export type Settings = { [Name in keyof Columns]?: Columns[Name] | undefined };

/** Of `application create` and `application update`; most are named as the columns that they set. */
export const SETTING_OPTIONS = {
  webhookUrl: orNo(
    option(
      "--webhook-url <url>",
      'where events are sent, by https (http://localhost:PORT locally); "" for nowhere',
      urlOrNone,
    ),
    "send no events",
  ),
  events: option(
    "--events <list>",
    `the events to send, separated by commas, of ${SUBSCRIBABLE_EVENTS.join(", ")}`,
    eventList,
  ),
  invitationLink: orNo(
    option(
      "--invitation-link <url>",
      "what the console's QR codes of invitations open, with {token} where the token goes: https, or your app's own scheme; where PUBLIC_URL is set, by default the service's page for visitors, /pass",
      urlOrNone,
    ),
    "let those QR codes open the default again; without PUBLIC_URL they have the token alone",
  ),
  requireSecret: orNo(
    option(
      "--require-secret",
      "let only callers with the secret create invitations; an issuer of user tokens always does",
    ),
    "let devices create invitations too",
  ),
  reuseAfterSeconds: option(
    "--reuse-after <seconds>",
    "how long the number of a revoked or expired invitation cools down",
    seconds,
  ),
  signatureLifetimeSeconds: option(
    "--signature-lifetime <seconds>",
    "how long signatures are valid; none or 0: for ever",
    (text) => (text === "none" ? null : seconds(text) || null),
  ),
  statusList: orNo(
    option(
      "--status-list",
      "let doors that are offline learn which badges have ended; needs PUBLIC_URL in wrangler.toml",
    ),
    "publish no status lists; doors then refuse badges whose signatures name one",
  ),
  statusLifetimeSeconds: option(
    "--status-lifetime <seconds>",
    "how long a door may go on without a newer list",
    wholeNumber(MIN_STATUS_LIFETIME_SECONDS, MAX_SECONDS),
  ),
  requireProof: orNo(
    option("--require-proof", "refuse device calls without a proof (DPoP), and badges that are not bound to a key"),
    "let devices call without proofs; bound badges still need their key",
  ),
  bindUntil: option(
    "--bind-until <time>",
    "until then the first login with a proof binds a badge that is not bound; a time that has passed, or never, ends that",
    timeOrNever,
  ),
  newBadgesPerHour: option(
    "--new-badges-per-hour <n>",
    `how many fresh numbers new badges, and invitations without the secret, take in a clock hour at most (${DEFAULT_NEW_BADGES_PER_HOUR}), or none for no limit`,
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

/** An issuer makes the secret required for invitations (contract section 5). */
export const requiredSecretError = (): UserError =>
  new UserError(
    "With an issuer of user tokens invitations always need the secret: leave out --no-require-secret, or add --no-user-issuer.",
  );

/** A URL is kept as it was given, not normalized. */
function assertWebhookUrl(url: string, isLocal: boolean): void {
  const check = checkWebhookUrl(url, { local: isLocal });
  if (!check.ok) throw new UserError(describeUrlRefusal(check.reason));
}

/** A QR code of more is hard to scan from a phone's screen. */
const MAX_LINK_CHARACTERS = 300;

/** Those that run what they contain, or show it without a host, and the one that sends it in the clear. */
const UNFIT_SCHEMES = ["http:", "javascript:", "data:", "blob:", "vbscript:", "file:", "about:"];

function assertInvitationLink(link: string): void {
  if (link.split("{token}").length !== 2) {
    throw new UserError("The invitation link needs {token} once, where the token goes.");
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
 * Signatures name the addresses of status lists, which begin with `PUBLIC_URL` (contract section 14).
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
