import { homeOf } from "../../../../src/shared/homes.ts";
import type { ApplicationId } from "../../../../src/shared/identifiers.ts";
import { Member } from "../member.ts";
import { positionOf } from "../platform/d1-binding.ts";
import type { CallName, CallResult, GrantedBy, RequestOf, UserDevice } from "../service/door.ts";

/** What a client was told; `lost`: nothing. */
export type Outcome<Granted> = CallResult<Granted> | { kind: "lost" };

/** One request of a client, from when it was sent until its client had the response, in milliseconds. */
export interface Attempt<Name extends CallName> {
  name: Name;
  request: RequestOf<Name>;
  from: number;
  /** Infinity as long as it may still take effect: it is under way, or its client was not told what it did. */
  to: number;
  outcome: Outcome<GrantedBy<Name>> | null;
  /** When its client had the response, or gave up; Infinity: not yet. */
  toldAt: number;
  /** Faults that the service had met when it was sent. */
  struckBefore: number;
}

export type Granted<Name extends CallName> = Attempt<Name> & {
  outcome: { kind: "granted"; granted: GrantedBy<Name>; bookmark: string | null };
};

/** How old a copy of D1 may be that accepts a badge, in milliseconds (contract section 16). */
const MAX_COPY_AGE_MILLISECONDS = 90_000;

/** How long an object may still decide a call that its client has an answer to, in milliseconds: until its deadline. */
const SETTLING_MILLISECONDS = 12_000;

/** A bookmark as clients have it: that of D1 after the number of their home. Null for another home's. */
export const positionOfHeader = (applicationId: ApplicationId, bookmark: string | null): number | null =>
  bookmark?.startsWith(`${homeOf(applicationId)}.`) ? positionOf(bookmark.slice(2)) : null;

export const isOf = <Name extends CallName>(attempt: Attempt<CallName>, name: Name): attempt is Attempt<Name> =>
  attempt.name === name;

export const isGranted = <Name extends CallName>(attempt: Attempt<CallName>, name: Name): attempt is Granted<Name> =>
  attempt.name === name && attempt.outcome?.kind === "granted";

/** Whether a client knows that its request is over. */
export const isAnswered = (outcome: Outcome<unknown>): boolean =>
  outcome.kind === "granted" || (outcome.kind === "refused" && outcome.reason !== "UNAVAILABLE");

/** Whether it may have had an effect that nobody was told of: also numbers may have run out for its second try only. */
export const isUntold = ({ outcome }: Attempt<CallName>): boolean =>
  outcome === null || !isAnswered(outcome) || (outcome.kind === "refused" && outcome.reason === "NUMBERS_EXHAUSTED");

export const userDeviceOf = ({ applicationId, udid, userId }: UserDevice) => ({ applicationId, udid, userId });

/** Everything that the clients ever asked and were answered: what the service is held to. */
export class Book extends Member {
  readonly #attempts: Attempt<CallName>[] = [];

  begin(attempt: Attempt<CallName>): void {
    this.#attempts.push(attempt);
  }

  /**
   * A call that changes an application was answered. What was told 503 well before that one began had happened by now, or never
   * will (contract section 21).
   */
  settle({ request: { applicationId }, from, to }: Attempt<CallName>): void {
    for (const attempt of this.#attempts) {
      const isBefore = attempt.toldAt + SETTLING_MILLISECONDS < from;
      if (attempt.to === Infinity && isBefore && attempt.request.applicationId === applicationId) attempt.to = to;
    }
  }

  /** Calls with these values in their requests, oldest first. */
  of<Name extends CallName>(name: Name, wanted: Partial<RequestOf<Name>> = {}): Attempt<Name>[] {
    const fields = Object.entries(wanted);
    return this.#attempts
      .filter((attempt) => isOf(attempt, name))
      .filter(({ request }) => fields.every(([field, value]) => Reflect.get(request, field) === value));
  }

  /** Those of them that may have taken effect since a time, in milliseconds. */
  since<Name extends CallName>(name: Name, wanted: Partial<RequestOf<Name>>, time: number): Attempt<Name>[] {
    return this.of(name, wanted).filter((attempt) => this.#endOf(attempt) >= time);
  }

  /** A refusal changes nothing and is not logged, so the next instance decides a copy of the call that comes late. */
  #endOf({ outcome, request: { applicationId }, from, to }: Attempt<CallName>): number {
    const isForgotten = outcome?.kind === "refused" && this.world.replica.newestInstanceOf(applicationId) >= from;
    return isForgotten ? to + SETTLING_MILLISECONDS : to;
  }

  granted<Name extends CallName>(name: Name, wanted: Partial<RequestOf<Name>> = {}): Granted<Name>[] {
    return this.of(name, wanted).filter((attempt) => isGranted(attempt, name));
  }

  get tokens(): string[] {
    return this.granted("invite").map(({ outcome }) => outcome.granted.id);
  }

  /** Badge numbers that clients of an application were told, and those that its invitations reserved. */
  numbersOf(applicationId: ApplicationId): number[] {
    const told = [...this.granted("badge", { applicationId }), ...this.granted("invite", { applicationId })];
    return told.map(({ outcome }) => outcome.granted.number);
  }

  /** How often a number was asked for so far, of an application: for user devices and invitations. */
  demandOf(applicationId: ApplicationId): number {
    const badges = this.of("badge", { applicationId });
    const userDevices = new Set(badges.map(({ request }) => `${request.udid} ${request.userId}`));
    // Whoever was erased gets another one.
    const lives = 1 + this.of("erase", { applicationId }).length + this.world.administrator.erasures;
    return userDevices.size * lives + this.of("invite", { applicationId }).length;
  }

  /**
   * Since when that may have changed which a device is accepted by, in milliseconds. Without a bookmark it is what D1 has
   * while it asks; with one, what a copy has, which is not older than the bookmark.
   */
  acceptedSince({ request, from }: Attempt<"badge" | "sign">): number {
    const position = positionOfHeader(request.applicationId, request.bookmark);
    if (position === null) return from;
    const d1 = this.world.d1.of(request.applicationId);
    return Math.min(from, Math.max(from - MAX_COPY_AGE_MILLISECONDS, d1.since(position)));
  }
}
