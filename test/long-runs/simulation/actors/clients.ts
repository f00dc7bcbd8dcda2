import type { IssuedBadge } from "../../../../src/worker/badges/existing.ts";
import type { BadgePage } from "../../../../src/worker/badges/list.ts";
import type { Context } from "../../../../src/worker/context.ts";
import type { CreatedInvitation } from "../../../../src/worker/invitations/create.ts";
import type { RevokedInvitation } from "../../../../src/worker/invitations/revoke.ts";
import {
  type Attempt,
  type BadgeAttempt,
  type InviteAttempt,
  type Outcome,
  type RevokeAttempt,
  type SignAttempt,
  withoutKeys,
} from "../invariants/book.ts";
import { checkAvailability, checkBadge } from "../invariants/responses.ts";
import {
  badgeCall,
  type CallResult,
  type Credentials,
  inviteCall,
  pageCall,
  revokeCall,
  signCall,
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
    const { book, holders, invitations, signatures } = this.#world;
    const attempt: BadgeAttempt = this.#begin(request);
    book.addBadgeAttempt(attempt);
    const { token, udid, userId, applicationId } = request;
    const what = `badge of ${udid} ${userId}${token === null ? "" : ` with ${token}`}`;
    const outcome = await this.#finish(attempt, what, badgeCall(request));
    checkBadge(this.#world, attempt);
    if (token !== null) invitations.checkClaim(attempt);
    signatures.keyTold(attempt);
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
    const { applicationId, udid: creatorUdid, secret, expiresAtTime } = request;
    book.addDemand(applicationId);
    const attempt: InviteAttempt = this.#begin(request);
    const outcome = await this.#finish(attempt, "invitation", inviteCall(request));
    credentials.check(secret, attempt);
    if (outcome.kind !== "granted") return outcome;
    const { id: token, number } = outcome.granted;
    const span = { createdFrom: attempt.from, createdTo: attempt.to };
    const invitation = { applicationId, token, number, creatorUdid, expiresAtTime, ...span };
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
    invitations.checkRevoke(attempt);
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
