import { Member } from "../member.ts";
import type { CallName } from "../service/door.ts";
import type { Attempt } from "./book.ts";

/** How old settings and secrets may be that a call is accepted by, in milliseconds (contract section 9, and clocks differ). */
export const STALE_MILLISECONDS = 31_000;
/** How long a webhook may be on its way from the claim, which reads the secrets, to its receiver, in milliseconds. */
const ON_ITS_WAY_MILLISECONDS = 60_000;

interface KnownSecret {
  applicationId: string;
  secret: string;
  /** Milliseconds since 1970-01-01 UTC, like the others; Infinity: not yet. */
  addedAt: number;
  currentFrom: number;
  currentUntil: number;
  retiredAt: number;
}

/** Which secrets live, as the administrator knows it (contract section 9). */
export class Credentials extends Member {
  readonly #secrets: KnownSecret[] = [];

  get #now(): number {
    return this.world.timeline.now;
  }

  added(applicationId: string, secret: string): void {
    const never = { currentFrom: Infinity, currentUntil: Infinity, retiredAt: Infinity };
    this.#secrets.push({ applicationId, secret, addedAt: this.#now, ...never });
  }

  promoted(secret: string): void {
    const promoted = this.#find(secret);
    if (!promoted) return;
    const current = this.#secrets.find(
      ({ applicationId, currentFrom, currentUntil }) =>
        applicationId === promoted.applicationId && currentFrom <= this.#now && currentUntil > this.#now,
    );
    if (current) current.currentUntil = this.#now;
    promoted.currentFrom = this.#now;
  }

  retired(secret: string): void {
    const retired = this.#find(secret);
    if (retired) retired.retiredAt = this.#now;
  }

  /** Secrets that were current when a webhook was claimed that arrives now. */
  currentAround(applicationId: string, sentAt: number): string[] {
    return this.#secrets
      .filter((known) => known.applicationId === applicationId && known.currentFrom <= sentAt)
      .filter(({ currentUntil }) => currentUntil > sentAt - ON_ITS_WAY_MILLISECONDS)
      .map(({ secret }) => secret);
  }

  /** Holds a response against whether the secret lived while it was asked. */
  check(secret: string | null, attempt: Attempt<CallName>): void {
    const { from, to, outcome } = attempt;
    const { verdict } = this.world;
    if (!outcome || outcome.kind === "lost") return;
    const isDenied = outcome.kind === "refused" && outcome.reason === "INVALID_CREDENTIALS";
    verdict.expect(secret !== null || !isDenied, "a call that needs no secret is not denied for it");
    if (secret === null) return;
    const { addedAt, retiredAt } = this.#find(secret) ?? { addedAt: Infinity, retiredAt: 0 };
    const isLive = addedAt < from && retiredAt > to;
    verdict.expect(!isDenied || !isLive, "a live secret authenticates", secret);
    const isOver = addedAt > to || retiredAt + STALE_MILLISECONDS < from;
    verdict.expect(outcome.kind !== "granted" || !isOver, "a secret that does not live denies", secret);
  }

  #find(secret: string): KnownSecret | undefined {
    return this.#secrets.find((known) => known.secret === secret);
  }
}
