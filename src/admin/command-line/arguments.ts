import { InvalidArgumentError } from "commander";
import { SUBSCRIBABLE_EVENTS, type SubscribableEvent } from "../../shared/events.ts";
import {
  MAX_BADGE_NUMBER,
  MAX_NAME_CHARACTERS,
  MAX_USER_ID_BYTES,
  MAX_USER_ID_CHARACTERS,
} from "../../shared/limits/request-limits.ts";
import { badgeTimesRequest, userId as userIdSchema } from "../../shared/requests.ts";

/** Ten years, longer than any duration here needs to be. */
export const MAX_SECONDS = 10 * 366 * 24 * 3600;

/** @returns a function that parses a whole number from `least` to `most` */
export const wholeNumber =
  (least: number, most: number = MAX_BADGE_NUMBER) =>
  (text: string): number => {
    const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least && value <= most)) {
      throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`);
    }
    return value;
  };

export const badgeNumber = wholeNumber(1);

/** Parses a duration; 0 is allowed. */
export const seconds = wholeNumber(0, MAX_SECONDS);

/** An application's ID has room for three digits of its home. */
export const homeNumber = wholeNumber(1, 999);

export const listLimit = wholeNumber(1, 10_000);

/** Parses `--events` into names of events, each once, in canonical order. */
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

/** Parses a time: ISO 8601 with a zone, or `never`. @returns milliseconds; null for never */
export function timeOrNever(text: string): number | null {
  if (text === "never") return null;
  const parsed = badgeTimesRequest.shape.expiresAt.safeParse(text);
  if (!parsed.success || parsed.data == null) {
    throw new InvalidArgumentError("Give a date-time with a zone, like 2027-01-31T18:00:00+01:00, or never.");
  }
  return Date.parse(parsed.data);
}

/** Parses where the service is reached, without a slash at the end. */
export function serviceAddress(text: string): string {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    throw new InvalidArgumentError("Give a URL like https://badges.example.com.");
  }
  return text.replace(/\/+$/, "");
}

export function userId(text: string): string {
  const parsed = userIdSchema.safeParse(text);
  if (!parsed.success) {
    throw new InvalidArgumentError(
      `Give 1 to ${MAX_USER_ID_CHARACTERS} characters (at most ${MAX_USER_ID_BYTES} bytes of UTF-8) without control characters, not all blank, and not "." or "..".`,
    );
  }
  return parsed.data;
}

/** Parses the name of an application, a person or a door. Only people read it, so any single line will do. */
export function onOneLine(text: string): string {
  const name = text.trim();
  if (name === "" || name.length > MAX_NAME_CHARACTERS || /\p{Cc}/u.test(name)) {
    throw new InvalidArgumentError(`Give one line of 1 to ${MAX_NAME_CHARACTERS} characters.`);
  }
  return name;
}
