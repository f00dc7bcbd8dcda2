import { type Command, InvalidArgumentError } from "commander";
import { SUBSCRIBABLE_EVENTS, type SubscribableEvent } from "../../shared/events.ts";
import {
  MAX_BADGE_NUMBER,
  MAX_NAME_CHARACTERS,
  MAX_USER_ID_CHARACTERS,
  MIN_STATUS_LIFETIME_SECONDS,
} from "../../shared/limits.ts";
import { badgeTimesRequest, userId as userIdSchema } from "../../shared/requests.ts";
import { checkWebhookUrl, describeUrlRefusal } from "../../shared/webhook-url.ts";
import { UserError } from "./errors.ts";
import { commonOptions } from "./session.ts";

/** Ten years: no duration here is meant to be longer. */
const MAX_SECONDS = 10 * 366 * 24 * 3600;

/** Parses a badge number. */
export const badgeNumber = (text: string): number => wholeNumber(text, 1, MAX_BADGE_NUMBER);

/** Parses a facility or company code of a card. Each format has a limit of its own. */
export const siteCode = (text: string): number => wholeNumber(text, 0, MAX_BADGE_NUMBER);

/** Parses a duration; 0 is allowed. */
export const seconds = (text: string): number => wholeNumber(text, 0, MAX_SECONDS);

/**
 * Parses a signature lifetime; 0 and `none` mean that signatures do not expire. The result is 0 then: commander makes an
 * empty text of an option's value that is null.
 */
export const lifetime = (text: string): number => (text === "none" ? 0 : seconds(text));

/** Parses a status lifetime. */
export const statusLifetime = (text: string): number => wholeNumber(text, MIN_STATUS_LIFETIME_SECONDS, MAX_SECONDS);

/** Parses `--new-badges-per-hour`. */
export const newBadgesPerHour = (text: string): number => wholeNumber(text, 1, MAX_BADGE_NUMBER);

export const NEW_BADGES_HELP = "refuse logins without an invitation that would take more fresh numbers within an hour";

export const positiveNumber = (text: string): number => wholeNumber(text, 1, MAX_BADGE_NUMBER);

/** Parses `--skip`. */
export const skippedNumbers = (text: string): number => wholeNumber(text, 0, MAX_BADGE_NUMBER);

/** The highest home: three digits fit an application's ID. */
const MAX_HOME = 999;

/** Parses the number of a home. */
export const homeNumber = (text: string): number => wholeNumber(text, 1, MAX_HOME);

export const listLimit = (text: string): number => wholeNumber(text, 1, 10_000);

/** Parses `--events`: names of events, each once, in the order of the list. */
export function eventList(text: string): SubscribableEvent[] {
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.filter((name) => !SUBSCRIBABLE_EVENTS.some((event) => event === name));
  if (unknown.length > 0) {
    throw new InvalidArgumentError(
      `Unknown: ${unknown.map((name) => `"${name}"`).join(", ")}. The events are ${SUBSCRIBABLE_EVENTS.join(", ")}.`,
    );
  }
  return SUBSCRIBABLE_EVENTS.filter((event) => names.includes(event));
}

export const EVENTS_HELP = `the events to send, separated by commas, of ${SUBSCRIBABLE_EVENTS.join(", ")}`;

/** Parses the end of a badge: ISO 8601 with a zone, or `never`. */
export function badgeEnd(text: string): BadgeEnd {
  if (text === "never") return { expiresAt: null };
  const parsed = badgeTimesRequest.shape.expiresAt.safeParse(text);
  if (!parsed.success || parsed.data == null) {
    throw new InvalidArgumentError("Give a date-time with a zone, like 2027-01-31T18:00:00+01:00, or never.");
  }
  return { expiresAt: Date.parse(parsed.data) };
}

/** An object, because commander makes an empty text of an option's value that is null. */
interface BadgeEnd {
  /** Milliseconds; null for no end. */
  expiresAt: number | null;
}

/** Parses the ID of a user. */
export function userId(text: string): string {
  const parsed = userIdSchema.safeParse(text);
  if (!parsed.success) {
    throw new InvalidArgumentError(
      `Give 1 to ${MAX_USER_ID_CHARACTERS} characters without control characters, not "." or "..".`,
    );
  }
  return parsed.data;
}

/** Parses the name of an application or of a person. Only people read it, so anything on one line will do. */
export function onOneLine(text: string): string {
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
 * Checks `--webhook-url`. A URL is kept as it was given, not normalized.
 *
 * @param text false for `--no-webhook-url`
 * @returns null for no URL, undefined when the option was not given
 * @throws UserError that says why the URL may not be called
 */
export function checkedWebhookUrl(text: string | false | undefined, command: Command): string | null | undefined {
  if (text === undefined) return undefined;
  if (text === "" || text === false) return null;
  const check = checkWebhookUrl(text, { local: commonOptions(command).env === undefined });
  if (!check.ok) throw new UserError(describeUrlRefusal(check.reason));
  return text;
}
