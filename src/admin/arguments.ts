import { type Command, InvalidArgumentError } from "commander";
import { MAX_BADGE_NUMBER } from "../shared/limits.ts";
import { checkWebhookUrl, describeUrlRefusal } from "../shared/webhook-url.ts";
import { UserError } from "./errors.ts";
import { commonOptions } from "./session.ts";

/** Ten years: longer than any of these is meant to be. */
const MAX_SECONDS = 10 * 366 * 24 * 3600;

const MAX_NAME_CHARACTERS = 100;

/** Reads a badge number of a command line. */
export const badgeNumber = (text: string): number => wholeNumber(text, 1, MAX_BADGE_NUMBER);

/** Reads a duration that may be none. */
export const seconds = (text: string): number => wholeNumber(text, 0, MAX_SECONDS);

/** Reads a signature lifetime: `0` and `none` mean that signatures do not expire. */
export const lifetime = (text: string): number | null => (text === "none" ? null : seconds(text) || null);

export const positiveNumber = (text: string): number => wholeNumber(text, 1, MAX_BADGE_NUMBER);

export const listLimit = (text: string): number => wholeNumber(text, 1, 10_000);

/** Reads the name of an application: for people, so anything that fits on a line. */
export function applicationName(text: string): string {
  const name = text.trim();
  if (name === "" || name.length > MAX_NAME_CHARACTERS || /\p{Cc}/u.test(name)) {
    throw new InvalidArgumentError(`Give one line of 1 to ${MAX_NAME_CHARACTERS} characters.`);
  }
  return name;
}

function wholeNumber(text: string, least: number, most: number): number {
  const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) {
    throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`);
  }
  return value;
}

/**
 * The URL if it may be called, kept as it was given; null for none, undefined when nothing was said.
 *
 * @throws UserError with the reason it may not be called
 */
export function checkedWebhookUrl(text: string | false | undefined, command: Command): string | null | undefined {
  if (text === undefined) return undefined;
  if (text === "" || text === false) return null;
  const check = checkWebhookUrl(text, { local: commonOptions(command).env === undefined });
  if (!check.ok) throw new UserError(describeUrlRefusal(check.reason));
  return text;
}
