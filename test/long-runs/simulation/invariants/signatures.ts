import { createPublicKey, verify } from "node:crypto";
import type { World } from "../world.ts";
import { type BadgeAttempt, grantedNumber, isUntold, type SignAttempt } from "./book.ts";

/** How long a request that nobody was answered may still do something, in milliseconds: the longest of its retries. */
const AFTERLIFE_MILLISECONDS = 1_800_000;

/**
 * A signature is of the device's current badge, the one that it was answered last, and verifies with the public key that
 * came with that badge, whatever keys came later (contract sections 1 and 3).
 */
export class Signatures {
  readonly #world: World;
  readonly #publicKeys = new Map<number, string>();

  constructor(world: World) {
    this.#world = world;
  }

  /** The response to a badge request brought a public key. */
  keyTold(attempt: BadgeAttempt): void {
    if (attempt.outcome?.kind !== "granted" || attempt.outcome.granted.kind !== "created") return;
    const { number, publicKey } = attempt.outcome.granted;
    this.#publicKeys.set(number, publicKey);
  }

  /** D1 was restored: a number that is written again comes with the key of that time. */
  restored(): void {
    this.#publicKeys.clear();
  }

  check(attempt: SignAttempt): void {
    const { book, verdict, life, isRestored } = this.#world;
    const { request, outcome } = attempt;
    const { applicationId, udid } = request;
    const attempts = book.attemptsOfDevice(applicationId, udid);
    const answered = attempts.filter((badge) => grantedNumber(badge) !== null && badge.to < attempt.from);
    const isUnknown = outcome?.kind === "refused" && outcome.reason === "UNKNOWN_BADGE";
    verdict.expect(
      !isUnknown || answered.length === 0 || isRestored,
      "a device that was answered a badge can sign",
      udid,
    );
    const users = attempts.map((badge) => badge.request.userId);
    const claims = outcome?.kind === "granted" ? this.#verify(outcome.granted) : null;
    life.checkSignature(attempt, claims && Number(claims.sub), users);
    if (claims === null) return;
    const { sub, aud } = claims;
    verdict.expect(aud === applicationId, "a signature names its application", aud);
    if (isRestored) return;
    const candidates = attempts.filter((badge) => mayBeLast(badge, answered, attempt));
    // Of a request that nobody was answered it is known whose badge it made current, not always which.
    const numbers = candidates.flatMap((badge) => this.#numbersOf(badge));
    const isLast = numbers.includes(Number(sub));
    verdict.expect(isLast, "a device signs with the badge that it was answered last", udid, sub, "not", numbers);
  }

  #numbersOf(badge: BadgeAttempt): number[] {
    const number = grantedNumber(badge);
    if (number !== null) return [number, ...this.#replacing(badge, number)];
    const { applicationId, userId } = badge.request;
    const rows = [...this.#world.rows.issued.values()];
    return rows.filter((row) => row.applicationId === applicationId && row.userId === userId).map((row) => row.number);
  }

  /** Numbers that the user device may have got since, by a claim that is not over. */
  #replacing({ request }: BadgeAttempt, number: number): number[] {
    const { book } = this.#world;
    const claims = book.attemptsOf(request).map((claim) => book.claimedNumber(claim));
    return claims.filter((claimed) => claimed !== null && claimed !== number).map(Number);
  }

  #verify(jws: string): { sub?: unknown; aud?: unknown } {
    const [header = "", payload = "", signature = ""] = jws.split(".");
    const claims: { sub?: unknown; aud?: unknown } = JSON.parse(Buffer.from(payload, "base64url").toString());
    const spki = this.#publicKeys.get(Number(claims.sub));
    if (spki === undefined) return claims;
    const key = createPublicKey({ key: Buffer.from(spki, "base64"), type: "spki", format: "der" });
    const bytes = Buffer.from(`${header}.${payload}`);
    const isValid = verify("sha256", bytes, { key, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url"));
    this.#world.verdict.expect(isValid, "a signature verifies with the badge's public key", claims.sub);
    return claims;
  }
}

/** Whether no other request was answered between this one's end and the signature. */
function mayBeLast(badge: BadgeAttempt, answered: readonly BadgeAttempt[], { from, to }: SignAttempt): boolean {
  if (badge.from > to) return false;
  const isDenied = badge.outcome?.kind === "refused" && !isUntold(badge);
  if (isDenied) return false;
  const end = isUntold(badge) ? badge.from + AFTERLIFE_MILLISECONDS : badge.to;
  return end >= from || !answered.some((later) => later.from > end);
}
