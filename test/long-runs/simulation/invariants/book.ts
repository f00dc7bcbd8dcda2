import type { UserView } from "../../../../src/shared/badge-life/blocks.ts";
import type { Step } from "../../../../src/shared/badge-life/states.ts";
import type { BadgeView } from "../../../../src/shared/badge-life/view.ts";
import type { IssuedBadge } from "../../../../src/worker/badges/existing.ts";
import type { CreatedInvitation } from "../../../../src/worker/invitations/create.ts";
import type { RevokedInvitation } from "../../../../src/worker/invitations/revoke.ts";
import type { CallResult, Credentials, InvitationTerms } from "../service/door.ts";

/** What a client was told; `lost`: nothing. */
export type Outcome<Granted> = CallResult<Granted> | { kind: "lost" };

/** One request of a client, from when it was sent until its client had the response, in milliseconds. */
export interface Attempt<Request, Granted> {
  request: Request;
  from: number;
  /** Infinity as long as it may still take effect: it is under way, or its client never had a response. */
  to: number;
  outcome: Outcome<Granted> | null;
  /** Faults that the service had met when it was sent. */
  struckBefore: number;
}

export interface UserDevice {
  applicationId: string;
  udid: string;
  userId: string;
}

export type BadgeAttempt = Attempt<UserDevice & { token: string | null; metadata: string | null }, IssuedBadge>;
export type InviteAttempt = Attempt<
  { applicationId: string; udid: string; secret: string | null } & InvitationTerms,
  CreatedInvitation
>;
export type RevokeAttempt = Attempt<
  { applicationId: string; udid: string; secret: string | null; token: string },
  RevokedInvitation
>;
export type StepAttempt = Attempt<Credentials & { number: number; step: Step }, BadgeView>;
export type BlockAttempt = Attempt<
  Credentials & { userId: string; isBlock: boolean },
  UserView & { revoked: string[] }
>;
export type SignAttempt = Attempt<{ applicationId: string; udid: string; base64: string }, string>;

/** An invitation as the server that created it knows it. */
export interface KnownInvitation {
  applicationId: string;
  token: string;
  number: number;
  creatorUdid: string;
  /** As it was sent, in milliseconds. */
  sentExpiresAtTime: number;
  /** When it ends. */
  expiresAtTime: number;
  createdFrom: number;
  createdTo: number;
}

export const keyOf = ({ applicationId, udid, userId }: UserDevice): string => `${applicationId} ${udid} ${userId}`;

/** Everything that the clients ever asked and were answered: what the service is held to. */
export class Book {
  readonly badgeAttempts = new Map<string, BadgeAttempt[]>();
  readonly revokeAttempts: RevokeAttempt[] = [];
  readonly invitations = new Map<string, KnownInvitation>();
  /** What was asked for with each Idempotency-Key of each caller, as text. */
  readonly #requestsOfKey = new Map<string, Set<string>>();
  /** The invitation that was told for it. */
  readonly #tokenOfKey = new Map<string, string>();
  readonly #demand = new Map<string, number>();

  /** Who asked for a number so far, of an application: user devices and invitations. */
  demandOf(applicationId: string): number {
    return this.#demand.get(applicationId) ?? 0;
  }

  addDemand(applicationId: string): void {
    this.#demand.set(applicationId, this.demandOf(applicationId) + 1);
  }

  /**
   * One key and one request get one invitation (contract section 12).
   *
   * @param attempt as it begins, then as it ends
   * @returns whether its outcome is possible
   */
  isIdempotent({ request, outcome }: InviteAttempt): boolean {
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

  addBadgeAttempt(attempt: BadgeAttempt): void {
    const { request } = attempt;
    const key = keyOf(request);
    const known = this.badgeAttempts.get(key);
    if (known) known.push(attempt);
    else this.badgeAttempts.set(key, [attempt]);
    if (!known) this.addDemand(request.applicationId);
  }

  attemptsOf(userDevice: UserDevice): readonly BadgeAttempt[] {
    return this.badgeAttempts.get(keyOf(userDevice)) ?? [];
  }

  attemptsOfDevice(applicationId: string, udid: string): BadgeAttempt[] {
    return [...this.badgeAttempts.values()]
      .flat()
      .filter(({ request }) => request.applicationId === applicationId && request.udid === udid);
  }

  /** How many other requests for the badge of the same user device were under way during this one. */
  rivalsOf(attempt: Attempt<unknown, unknown>): number {
    const ofUserDevice = [...this.badgeAttempts.values()].find((attempts) => attempts.some((one) => one === attempt));
    return ofUserDevice?.filter((other) => other !== attempt && other.to >= attempt.from).length ?? 0;
  }

  /** Badge numbers that clients of an application were told, and those that its invitations reserved. */
  numbersOf(applicationId: string): number[] {
    const attempts = [...this.badgeAttempts.values()]
      .flat()
      .filter((one) => one.request.applicationId === applicationId);
    const invitations = [...this.invitations.values()].filter((one) => one.applicationId === applicationId);
    return [...attempts.flatMap((attempt) => grantedNumber(attempt) ?? []), ...invitations.map(({ number }) => number)];
  }

  /** Attempts to claim one invitation, by whomever. */
  claimsOf(token: string): BadgeAttempt[] {
    return [...this.badgeAttempts.values()].flat().filter(({ request }) => request.token === token);
  }

  revokesOf(token: string): RevokeAttempt[] {
    return this.revokeAttempts.filter(({ request }) => request.token === token);
  }

  /** The number that an attempt claims, if it claims any. */
  claimedNumber({ request }: BadgeAttempt): number | null {
    return request.token === null ? null : (this.invitations.get(request.token)?.number ?? null);
  }
}

export const grantedNumber = ({ outcome }: BadgeAttempt): number | null =>
  outcome?.kind === "granted" ? outcome.granted.number : null;

/** Whether it may have had an effect that nobody was told of: also numbers may have run out for its second try only. */
export const isUntold = ({ outcome }: Attempt<unknown, unknown>): boolean =>
  outcome === null ||
  outcome.kind === "lost" ||
  (outcome.kind === "refused" && ["UNAVAILABLE", "NUMBERS_EXHAUSTED"].includes(outcome.reason));

/** For details of breaches. */
export function describe({ request, outcome }: BadgeAttempt): string {
  const { udid, userId, token } = request;
  const said = outcome === null ? "under way" : withoutKeys(JSON.stringify(outcome));
  return `${udid} of ${userId}${token === null ? "" : ` with ${token}`}: ${said}`;
}

/** Public keys differ between two runs of one seed. */
export const withoutKeys = (text: string): string => text.replace(/"publicKey":"[^"]*"/, '"publicKey":"…"');
