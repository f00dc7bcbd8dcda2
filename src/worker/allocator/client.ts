import type { ApplicationId, InvitationDigest } from "../../shared/identifiers.ts";
import { type Home, objectPlace } from "../homes.ts";
import { retryPlatform } from "../platform.ts";
import type { Claim } from "../storage/claim-writes.ts";
import type { EndedInvitation } from "../storage/invitation-ends.ts";
import type { InvitationLeases, KnownBadge } from "./adoption.ts";
import type { AllocationResult, AllocationRules } from "./allocations.ts";
import type {
  Allocator,
  HeldTransition,
  IssueRequest,
  ReserveRequest,
  RevokedBadge,
  TransitionResult,
} from "./allocator.ts";
import type { ClaimResult } from "./claims.ts";

/** Name of the object that remembers the clock row of a home's D1. No application ID has this form. */
type ClockName = "clock" | `clock-${number}`;

type Stub = DurableObjectStub<Allocator>;

/**
 * Calls the objects of a home's applications, with retries. Each try gets a new stub, because a broken stub stays broken. Only
 * the first call of an object decides where it is made: beside its home's D1, which it calls more than anybody calls it.
 */
export class AllocatorClient {
  readonly #namespace: DurableObjectNamespace<Allocator>;
  readonly #home: Pick<Home, "number" | "place">;
  #calls = 0;

  constructor(namespace: DurableObjectNamespace<Allocator>, home: Pick<Home, "number" | "place">) {
    this.#namespace = namespace;
    this.#home = home;
  }

  /** Calls made so far, retries included. */
  get calls(): number {
    return this.#calls;
  }

  issue(applicationId: ApplicationId, rules: AllocationRules, request: IssueRequest): Promise<AllocationResult> {
    return this.#call(applicationId, async (stub) =>
      request.keyThumbprint == null
        ? await stub.issue(rules, request, applicationId)
        : await stub.issueBound(rules, request, applicationId),
    );
  }

  reserve(applicationId: ApplicationId, rules: AllocationRules, request: ReserveRequest): Promise<AllocationResult> {
    return this.#call(applicationId, async (stub) => await stub.reserve(rules, request, applicationId));
  }

  claim(applicationId: ApplicationId, claim: Claim): Promise<ClaimResult> {
    return this.#call(applicationId, async (stub) =>
      claim.keyThumbprint == null
        ? await stub.claim(claim, applicationId)
        : await stub.claimBound(claim, applicationId),
    );
  }

  async release(applicationId: ApplicationId, ended: readonly EndedInvitation[]): Promise<void> {
    await this.#call(applicationId, async (stub) => await stub.release([...ended]));
  }

  transition(applicationId: ApplicationId, transitions: readonly HeldTransition[]): Promise<TransitionResult> {
    return this.#call(applicationId, async (stub) => await stub.transition([...transitions], applicationId));
  }

  noteRevocations(applicationId: ApplicationId, badges: readonly RevokedBadge[]): Promise<number> {
    return this.#call(applicationId, async (stub) => await stub.noteRevocations([...badges]));
  }

  findRevoked(applicationId: ApplicationId, badges: KnownBadge[]): Promise<number[]> {
    return this.#call(applicationId, async (stub) => await stub.findRevoked(badges));
  }

  seenClock(): Promise<number> {
    return this.#call(this.#clockName, async (stub) => await stub.seenClock());
  }

  async noteClock(sequence: number, seen: number): Promise<void> {
    await this.#call(this.#clockName, async (stub) => await stub.noteClock(sequence, seen));
  }

  findReleased(
    applicationId: ApplicationId,
    invitations: { digest: InvitationDigest; number: number }[],
  ): Promise<InvitationDigest[]> {
    return this.#call(applicationId, async (stub) => await stub.findReleased(invitations));
  }

  adopt(applicationId: ApplicationId, badges: KnownBadge[]): Promise<number> {
    return this.#call(applicationId, async (stub) => await stub.adopt(badges));
  }

  invitationLeases(applicationId: ApplicationId, after: number, limit: number): Promise<InvitationLeases> {
    return this.#call(applicationId, async (stub) => await stub.invitationLeases(after, limit));
  }

  get #clockName(): ClockName {
    const { number } = this.#home;
    return number === 1 ? "clock" : `clock-${number}`;
  }

  #call<Result>(name: ApplicationId | ClockName, act: (stub: Stub) => Promise<Result>): Promise<Result> {
    return retryPlatform("allocator", async () => {
      this.#calls++;
      return act(this.#open(name));
    });
  }

  #open(name: ApplicationId | ClockName): Stub {
    const { jurisdiction, locationHint } = objectPlace(this.#home);
    const namespace = jurisdiction === undefined ? this.#namespace : this.#namespace.jurisdiction(jurisdiction);
    return locationHint === undefined ? namespace.getByName(name) : namespace.getByName(name, { locationHint });
  }
}
