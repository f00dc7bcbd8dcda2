import type { UserView } from "../../../../src/shared/badge-life/blocks.ts";
import type { BadgeView } from "../../../../src/shared/badge-life/view.ts";
import type { ChangePage } from "../../../../src/worker/badges/changes.ts";
import type { IssuedBadge } from "../../../../src/worker/badges/existing.ts";
import type { BadgePage } from "../../../../src/worker/badges/list.ts";
import type { Context } from "../../../../src/worker/context.ts";
import type { CreatedInvitation } from "../../../../src/worker/invitations/create.ts";
import type { RevokedInvitation } from "../../../../src/worker/invitations/revoke.ts";
import {
  type Attempt,
  type BadgeAttempt,
  type BlockAttempt,
  type InviteAttempt,
  type Outcome,
  type RevokeAttempt,
  type SignAttempt,
  type StepAttempt,
  withoutKeys,
} from "../invariants/book.ts";
import { checkAvailability, checkBadge } from "../invariants/responses.ts";
import {
  badgeCall,
  blockCall,
  type CallResult,
  type Credentials,
  changesCall,
  inviteCall,
  pageCall,
  revokeCall,
  signCall,
  stepCall,
} from "../service/door.ts";
import type { World } from "../world.ts";

/** How long a client waits for a response, in milliseconds. */
const PATIENCE_MILLISECONDS = 120_000;

/** Every call of every client goes through here: it is noted, carried out, and held against the promises. */
export class Clients {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  async requestBadge(request: BadgeAttempt["request"]): Promise<Outcome<IssuedBadge>> {
    const { book, holders, invitations, signatures, life } = this.#world;
    const attempt: BadgeAttempt = this.#begin(request);
    book.addBadgeAttempt(attempt);
    // Each call of a blocked user may be leased another number, which goes back and rests.
    if (life.wasBlocked(request, { from: 0, to: attempt.from })) book.addDemand(request.applicationId);
    const { token, udid, userId, applicationId } = request;
    const what = `badge of ${udid} ${userId}${token === null ? "" : ` with ${token}`}`;
    const outcome = await this.#finish(attempt, what, badgeCall(request));
    life.checkBadge(attempt);
    signatures.keyTold(attempt);
    if (this.#world.isRestored) return outcome;
    checkBadge(this.#world, attempt);
    if (token !== null) invitations.checkClaim(attempt);
    if (outcome.kind === "granted") holders.issued(outcome.granted.number, { applicationId, udid, userId }, attempt.to);
    return outcome;
  }

  async sign(request: SignAttempt["request"]): Promise<Outcome<string>> {
    const attempt: SignAttempt = this.#begin(request);
    const outcome = await this.#finish(attempt, `signature of ${request.udid}`, signCall(request), () => "signed");
    this.#world.signatures.check(attempt);
    return outcome;
  }

  async invite(request: InviteAttempt["request"]): Promise<Outcome<CreatedInvitation>> {
    const { book, holders, credentials } = this.#world;
    const { applicationId, udid: creatorUdid, secret, expiresAtTime: sentExpiresAtTime, badgeExpiresAtTime } = request;
    book.addDemand(applicationId);
    const attempt: InviteAttempt = this.#begin(request);
    book.isIdempotent(attempt);
    const outcome = await this.#finish(attempt, "invitation", inviteCall(request));
    credentials.check(secret, attempt);
    const invariant = "one Idempotency-Key and one request have one invitation";
    this.#world.verdict.expect(book.isIdempotent(attempt), invariant, request, outcome);
    if (outcome.kind !== "granted" || this.#world.isRestored) return outcome;
    const { id: token, number } = outcome.granted;
    const known = book.invitations.get(token);
    this.#world.verdict.expect((known?.number ?? number) === number, "an invitation has one number", known, number);
    if (known) return outcome;
    const expiresAtTime = Math.min(sentExpiresAtTime, badgeExpiresAtTime ?? Number.POSITIVE_INFINITY);
    const span = { createdFrom: attempt.from, createdTo: attempt.to };
    const invitation = { applicationId, token, number, creatorUdid, sentExpiresAtTime, expiresAtTime, ...span };
    book.invitations.set(token, invitation);
    holders.reserved(invitation);
    return outcome;
  }

  async revoke(request: RevokeAttempt["request"]): Promise<Outcome<RevokedInvitation>> {
    const { book, credentials, invitations } = this.#world;
    const attempt: RevokeAttempt = this.#begin(request);
    book.revokeAttempts.push(attempt);
    const outcome = await this.#finish(attempt, `revocation of ${request.token}`, revokeCall(request));
    credentials.check(request.secret, attempt);
    if (!this.#world.isRestored) invitations.checkRevoke(attempt);
    return outcome;
  }

  async takeStep(request: StepAttempt["request"]): Promise<Outcome<BadgeView>> {
    const attempt: StepAttempt = this.#begin(request);
    const what = `${JSON.stringify(request.step)} of ${request.number}`;
    const outcome = await this.#finish(attempt, what, stepCall(request));
    this.#world.credentials.check(request.secret, attempt);
    this.#world.life.checkStep(attempt);
    return outcome;
  }

  async block(request: BlockAttempt["request"]): Promise<Outcome<UserView>> {
    const attempt: BlockAttempt = this.#begin(request);
    const what = `${request.isBlock ? "block" : "unblock"} of ${request.userId}`;
    const outcome = await this.#finish(attempt, what, blockCall(request));
    this.#world.credentials.check(request.secret, attempt);
    this.#world.life.checkBlock(attempt);
    return outcome;
  }

  async changes(request: Credentials, page: { cursor: string | null; perPage: number }): Promise<Outcome<ChangePage>> {
    const attempt: Attempt<Credentials, ChangePage> = this.#begin(request);
    // Cursors hold bytes that no seed decides.
    const word = ({ changes, more }: ChangePage) => JSON.stringify({ changes, more });
    const outcome = await this.#finish(attempt, "changes", changesCall(request, page), word);
    this.#world.credentials.check(request.secret, attempt);
    return outcome;
  }

  async page(
    request: Credentials,
    page: { userId: string | null; cursor: string | null; perPage: number },
  ): Promise<Outcome<BadgePage>> {
    const attempt: Attempt<Credentials, BadgePage> = this.#begin(request);
    const outcome = await this.#finish(attempt, "page", pageCall(request, page));
    this.#world.credentials.check(request.secret, attempt);
    return outcome;
  }

  #begin<Request>(request: Request): Attempt<Request, never> {
    const { timeline, faults } = this.#world;
    return { request, from: timeline.now, to: Number.POSITIVE_INFINITY, outcome: null, struckBefore: faults.struck };
  }

  /** Carries a call out and notes what came of it. */
  async #finish<Granted>(
    attempt: Attempt<{ applicationId: string }, Granted>,
    what: string,
    call: (context: Context) => Promise<CallResult<Granted>>,
    word: (granted: Granted) => string = (granted) => JSON.stringify(granted),
  ): Promise<Outcome<Granted>> {
    const { timeline, trace } = this.#world;
    trace.add("client", `asks for ${what}`);
    const outcome = await this.#ask(call);
    attempt.outcome = outcome;
    const isOver = outcome.kind === "granted" || (outcome.kind === "refused" && outcome.reason !== "UNAVAILABLE");
    if (isOver) attempt.to = timeline.now;
    const said = outcome.kind === "granted" ? word(outcome.granted) : outcome.kind === "lost" ? "lost" : outcome.reason;
    trace.add("client", `is answered ${what}: ${withoutKeys(said)}`);
    checkAvailability(this.#world, attempt, what);
    return outcome;
  }

  #ask<Granted>(call: (context: Context) => Promise<CallResult<Granted>>): Promise<Outcome<Granted>> {
    const { timeline, wire, faults, isolates } = this.#world;
    const fault = faults.draw("client");
    return new Promise((resolve) => {
      const lose = () => resolve({ kind: "lost" });
      timeline.after(PATIENCE_MILLISECONDS, lose);
      if (fault === "before") return wire.carry(lose);
      const back = (outcome: Outcome<Granted>) => wire.carry(() => (fault === "after" ? lose() : resolve(outcome)));
      wire.carry(async () => {
        const done = await isolates.enter(call);
        back(done ? done.result : { kind: "lost" });
      });
    });
  }
}
