import type { HistoryActor, HistoryEntry } from "../../client/index.ts";
import { shortTime } from "../parts/texts.tsx";

export const ACTION_WORDS: Readonly<Record<string, string>> = {
  "badge:created": "Badge issued",
  "badge:suspended": "Badge suspended",
  "badge:resumed": "Badge resumed",
  "badge:revoked": "Badge revoked",
  "badge:expired": "Badge ended",
  "badge:replaced": "Badge replaced by an invitation's",
  "badge:rebound": "Badge may move to another phone key",
  "badge:rescheduled": "Start or end changed",
  "invitation:created": "Visitor invited",
  "invitation:revoked": "Invitation revoked",
  "invitation:expired": "Invitation ended unused",
  "user:blocked": "Person blocked",
  "user:unblocked": "Person unblocked",
  "user:erased": "Person erased",
  "application:updated": "Settings changed",
  "application:disabled": "Application switched off",
  "application:enabled": "Application switched on",
  "secret:added": "Secret added",
  "secret:promoted": "Secret promoted",
  "secret:retired": "Secret retired",
  "key:rotated": "Signing key changed",
  "event:replayed": "Delivery sent again",
};

/** What was done, in plain words. */
export const actionWords = ({ action }: Pick<HistoryEntry, "action">): string => ACTION_WORDS[action] ?? action;

/**
 * Who did it, and who vouches for that. A name comes last, after our own words, so that a name that an application's server
 * states in the header `actor` never looks like a person who has signed in.
 */
export function actorWords({ kind, name }: HistoryActor): string {
  const words = VOUCHERS[kind];
  if (name === undefined) return words;
  return kind === "server" ? `${words}, which says: ${name}` : `${words}: ${name}`;
}

/** Who vouches for an actor. */
const VOUCHERS: Readonly<Record<HistoryActor["kind"], string>> = {
  person: "Signed in here",
  server: "The application's server",
  administrator: "Administrator",
  user: "The person, by login",
  device: "The phone",
  service: "The service",
};

/** Who did it, as the subject of a sentence. */
export function actorSubject(actor: HistoryActor): string {
  const { kind, name } = actor;
  if (kind === "person" && name !== undefined) return name;
  if (kind === "server" && name !== undefined) return `The application's server, for “${name}” as it says,`;
  return kind === "administrator" && name !== undefined ? `Administrator ${name}` : actorWords(actor);
}

/** Who did it, in two parts: the first line and the one below it. A name that a server states is never in the first. */
export function actorParts({ kind, name }: HistoryActor): { first: string; second?: string } {
  const words = VOUCHERS[kind];
  if (name === undefined) return { first: words };
  if (kind === "server") return { first: words, second: `which says: ${name}` };
  return { first: name, second: words.toLowerCase() };
}

/** The times that an entry has in its detail, in words. */
export function detailWords({ detail = {} }: HistoryEntry): string {
  const time = (name: string, words: string) => {
    const value = detail[name];
    if (value === null) return `${words} none`;
    return typeof value === "string" && !Number.isNaN(Date.parse(value)) ? `${words} ${shortTime(value)}` : undefined;
  };
  return [time("startsAt", "start:"), time("expiresAt", "end:")].filter((part) => part !== undefined).join(", ");
}
