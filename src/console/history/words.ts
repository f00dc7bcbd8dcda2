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

/** Who did it. */
export function actorWords({ kind, name }: HistoryActor): string {
  switch (kind) {
    case "person":
      return name ?? "Somebody";
    case "server":
      return name ?? "The application's server";
    case "administrator":
      return name === undefined ? "An administrator" : `${name} (administrator)`;
    case "user":
      return "The person";
    case "device":
      return "The phone";
    case "service":
      return "By itself";
  }
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
