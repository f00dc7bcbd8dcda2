import type { Command } from "commander";
import { SUBSCRIBABLE_EVENTS, type SubscribableEvent } from "../../shared/events.ts";
import { MIN_STATUS_LIFETIME_SECONDS } from "../../shared/limits.ts";
import { parsePublicUrl } from "../../shared/public-url.ts";
import type { application } from "../../shared/schema.ts";
import { checkWebhookUrl, describeUrlRefusal } from "../../shared/webhook-url.ts";
import { eventList, MAX_SECONDS, seconds, timeOrNever, wholeNumber } from "../command-line/arguments.ts";
import { UserError } from "../command-line/errors.ts";
import { commonOptions } from "../command-line/session.ts";
import { readTarget } from "../platform/target.ts";
import { loadWrangler } from "../platform/wrangler.ts";
import { addUserOptions, readUserOptions, type UserOptions } from "./user-options.ts";

/** The options of `application create` and `application update`. False: the option with `--no-`. */
export interface SettingOptions extends UserOptions {
  webhookUrl?: string | false;
  events?: SubscribableEvent[];
  invitationLink?: string | false;
  requireSecret?: boolean;
  reuseAfter?: number;
  /** 0: none. */
  signatureLifetime?: number;
  statusList?: boolean;
  statusLifetime?: number;
  requireProof?: boolean;
  bindUntil?: ReturnType<typeof timeOrNever>;
  newBadgesPerHour?: number | false;
}

type Columns = typeof application.$inferInsert;

/** What the columns of src/shared/schema.ts are to be; undefined: their default, or as they are. */
export type Settings = { [Name in keyof Columns]?: Columns[Name] | undefined };

export function addSettingOptions(command: Command): Command {
  command
    .option("--webhook-url <url>", 'where events are sent, by https (http://localhost:PORT locally); "" for nowhere')
    .option("--no-webhook-url", "send no events")
    .option(
      "--events <list>",
      `the events to send, separated by commas, of ${SUBSCRIBABLE_EVENTS.join(", ")}`,
      eventList,
    )
    .option(
      "--invitation-link <url>",
      "what the console's QR codes of invitations open, with {token} where the token goes: https, or your app's own scheme",
    )
    .option("--no-invitation-link", "let those QR codes have the token alone")
    .option("--require-secret", "let only callers with the secret create invitations")
    .option("--no-require-secret", "let devices create invitations too")
    .option("--reuse-after <seconds>", "how long the number of a revoked or expired invitation rests", seconds)
    .option("--signature-lifetime <seconds>", "how long signatures are valid; none or 0: for ever", lifetime)
    .option(
      "--status-list",
      "let doors that are offline learn which badges have ended; needs PUBLIC_URL in wrangler.toml",
    )
    .option("--no-status-list", "publish no status lists; doors then refuse badges whose signatures name one")
    .option("--status-lifetime <seconds>", "how long a door may go on without a newer list", statusLifetime)
    .option("--require-proof", "refuse device calls without a proof (DPoP), and badges that are not bound to a key")
    .option("--no-require-proof", "let devices call without proofs; bound badges still need their key")
    .option(
      "--bind-until <time>",
      "until then the first login with a proof binds a badge that is not bound; a time that has passed, or never, ends that",
      timeOrNever,
    )
    .option(
      "--new-badges-per-hour <n>",
      "refuse logins without an invitation that would take more fresh numbers within an hour",
      wholeNumber(1),
    )
    .option("--no-new-badges-per-hour", "let logins take any number of fresh numbers");
  return addUserOptions(command);
}

/** Commander makes an empty text of an option's value that is null, so it is 0 that means: they do not expire. */
const lifetime = (text: string): number => (text === "none" ? 0 : seconds(text));

const statusLifetime = wholeNumber(MIN_STATUS_LIFETIME_SECONDS, MAX_SECONDS);

/** @throws UserError for a value that the service could not use */
export async function readSettings(options: SettingOptions, command: Command): Promise<Settings> {
  const { env: environment } = commonOptions(command);
  const { webhookUrl, invitationLink } = options;
  const isLocal = environment === undefined;
  if (webhookUrl) assertWebhookUrl(webhookUrl, isLocal);
  if (invitationLink) assertInvitationLink(invitationLink);
  if (options.statusList) assertPublicUrl(readTarget(loadWrangler(), environment).publicUrl, environment);
  return {
    webhookUrl: webhookUrl === undefined ? undefined : webhookUrl || null,
    events: options.events?.join(),
    invitationLink: invitationLink === undefined ? undefined : invitationLink || null,
    requireSecret: options.requireSecret,
    reuseAfterSeconds: options.reuseAfter,
    signatureLifetimeSeconds: options.signatureLifetime === 0 ? null : options.signatureLifetime,
    statusList: options.statusList,
    statusLifetimeSeconds: options.statusLifetime,
    requireProof: options.requireProof,
    bindUntil: options.bindUntil?.time,
    newBadgesPerHour: options.newBadgesPerHour === false ? null : options.newBadgesPerHour,
    ...(await readUserOptions(options, isLocal)),
  };
}

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
