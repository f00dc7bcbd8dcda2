import { homeOf } from "../../../../src/shared/homes.ts";
import type { ApplicationId } from "../../../../src/shared/identifiers.ts";
import { Member } from "../member.ts";
import { positionOf } from "../platform/d1.ts";
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
  /** Faults that the service had met when it was sent. */
  struckBefore: number;
}

/** How old a copy of D1 may be that accepts a badge, in milliseconds (contract section 16). */
const MAX_COPY_AGE_MILLISECONDS = 90_000;

/** A bookmark as clients have it: that of D1 after the number of their home. Null for another home's. */
export const positionOfHeader = (applicationId: ApplicationId, bookmark: string | null): number | null =>
  bookmark?.startsWith(`${homeOf(applicationId)}.`) ? positionOf(bookmark.slice(2)) : null;

export const isOf = <Name extends CallName>(attempt: Attempt<CallName>, name: Name): attempt is Attempt<Name> =>
  attempt.name === name;

/** Whether a client knows that its request is over. */
export const isAnswered = (outcome: Outcome<unknown>): boolean =>
  outcome.kind === "granted" || (outcome.kind === "refused" && outcome.reason !== "UNAVAILABLE");

/** Whether it may have had an effect that nobody was told of: also numbers may have run out for its second try only. */
export const isUntold = ({ outcome }: Attempt<CallName>): boolean =>
  outcome === null || !isAnswered(outcome) || (outcome.kind === "refused" && outcome.reason === "NUMBERS_EXHAUSTED");

/** Everything that the clients ever asked and were answered: what the service is held to. */
export class Book extends Member {
  /** By user device. */
  readonly #badgeAttempts = new Map<string, Attempt<"badge">[]>();
  /** Invitations that their servers know, by token. */
  readonly #invitations = new Map<string, { applicationId: string; number: number }>();
  /** Tokens that somebody asked to be revoked. */
  readonly revocations = new Set<string>();
  /** What was asked for with each Idempotency-Key of each caller, as text. */
  readonly #requestsOfKey = new Map<string, Set<string>>();
  /** The invitation that was told for it. */
  readonly #tokenOfKey = new Map<string, string>();
  readonly #demand = new Map<string, number>();
  readonly #rebinds: Attempt<"rebind">[] = [];

  begin(attempt: Attempt<CallName>): void {
    if (isOf(attempt, "rebind")) this.#rebinds.push(attempt);
    if (isOf(attempt, "revoke")) this.revocations.add(attempt.request.token);
    if (isOf(attempt, "invite")) {
      this.#addDemand(attempt.request);
      this.isIdempotent(attempt);
    }
    if (!isOf(attempt, "badge")) return;
    const { request, from } = attempt;
    const known = this.attemptsOf(request);
    this.#badgeAttempts.set(keyOf(request), [...known, attempt]);
    if (known.length === 0) this.#addDemand(request);
    // Each call of a blocked user may be leased another number, which goes back and rests.
    if (this.world.life.wasBlocked(request, { from: 0, to: from })) this.#addDemand(request);
  }

  #addDemand({ applicationId }: { applicationId: string }): void {
    this.#demand.set(applicationId, this.demandOf(applicationId) + 1);
  }

  /** How often a number was asked for so far, of an application: for user devices and invitations. */
  demandOf(applicationId: string): number {
    return this.#demand.get(applicationId) ?? 0;
  }

  get tokens(): Iterable<string> {
    return this.#invitations.keys();
  }

  /** An invitation was told. @returns whether it has the number that it was told with before */
  noteInvitation(applicationId: string, token: string, number: number): boolean {
    const known = this.#invitations.get(token);
    this.#invitations.set(token, known ?? { applicationId, number });
    return (known?.number ?? number) === number;
  }

  /**
   * One key and one request get one invitation (contract section 12).
   *
   * @param attempt as it begins, then as it ends
   * @returns whether its outcome is possible
   */
  isIdempotent({ request, outcome }: Attempt<"invite">): boolean {
    const { applicationId, udid, secret, idempotencyKey, ...body } = request;
    if (idempotencyKey === null) return true;
    const key = `${applicationId} ${secret === null ? udid : "server"} ${idempotencyKey}`;
    const text = JSON.stringify([udid, body]);
    const requests = this.#requestsOfKey.get(key) ?? new Set();
    this.#requestsOfKey.set(key, requests.add(text));
    if (outcome?.kind === "refused" && outcome.reason === "INVALID_IDEMPOTENCYKEY") return requests.size > 1;
    if (outcome?.kind !== "granted") return true;
    const told = this.#tokenOfKey.get(`${key} ${text}`) ?? outcome.granted.id;
    this.#tokenOfKey.set(`${key} ${text}`, told);
    return told === outcome.granted.id;
  }

  /**
   * Since when that may have changed which a device is accepted by, in milliseconds. Without a bookmark it is what D1 has
   * while it asks; with one, what a copy has, which is not older than the bookmark.
   */
  acceptedSince({ request, from }: Attempt<"badge" | "sign">): number {
    const position = positionOfHeader(request.applicationId, request.bookmark);
    if (position === null) return from;
    return Math.min(
      from,
      Math.max(from - MAX_COPY_AGE_MILLISECONDS, this.world.d1.of(request.applicationId).copies.since(position)),
    );
  }

  /** Whether somebody asks, at a time, that a badge may be bound to another key. */
  isRebound(number: number, time: number): boolean {
    return this.#rebinds.some(({ request, from, to }) => request.number === number && from <= time && to >= time);
  }

  get badgeAttempts(): ReadonlyMap<string, readonly Attempt<"badge">[]> {
    return this.#badgeAttempts;
  }

  attemptsOf(userDevice: UserDevice): readonly Attempt<"badge">[] {
    return this.#badgeAttempts.get(keyOf(userDevice)) ?? [];
  }

  attemptsOfApplication(applicationId: string): Attempt<"badge">[] {
    return [...this.#badgeAttempts.values()].flat().filter(({ request }) => request.applicationId === applicationId);
  }

  /** Badge numbers that clients of an application were told, and those that its invitations reserved. */
  numbersOf(applicationId: string): number[] {
    const told = this.attemptsOfApplication(applicationId).flatMap((attempt) => grantedNumber(attempt) ?? []);
    const invitations = [...this.#invitations.values()].filter((one) => one.applicationId === applicationId);
    return [...told, ...invitations.map(({ number }) => number)];
  }
}

const keyOf = ({ applicationId, udid, userId }: UserDevice): string => `${applicationId} ${udid} ${userId}`;

export const grantedNumber = ({ outcome }: Attempt<"badge">): number | null =>
  outcome?.kind === "granted" ? outcome.granted.number : null;

/** Public keys differ between two runs of one seed. */
export const withoutKeys = (text: string): string => text.replace(/"publicKey":"[^"]*"/, '"publicKey":"…"');
