import { retryPlatform } from "../platform.ts";
import type { EndedInvitation } from "../storage/invitations.ts";
import type { AllocationResult, AllocationRules, Allocator, IssueRequest, ReserveRequest } from "./allocator.ts";

/** Calls an application's object. Each may be repeated; each try gets a stub of its own, because a broken one stays broken. */
export class AllocatorClient {
  readonly #namespace: DurableObjectNamespace<Allocator>;

  constructor(namespace: DurableObjectNamespace<Allocator>) {
    this.#namespace = namespace;
  }

  issue(applicationId: string, rules: AllocationRules, request: IssueRequest): Promise<AllocationResult> {
    return retryPlatform("allocator", async () => await this.#namespace.getByName(applicationId).issue(rules, request));
  }

  reserve(applicationId: string, rules: AllocationRules, request: ReserveRequest): Promise<AllocationResult> {
    return retryPlatform(
      "allocator",
      async () => await this.#namespace.getByName(applicationId).reserve(rules, request),
    );
  }

  holds(applicationId: string, invitation: string, number: number): Promise<boolean> {
    return retryPlatform(
      "allocator",
      async () => await this.#namespace.getByName(applicationId).holds(invitation, number),
    );
  }

  async release(applicationId: string, ended: readonly EndedInvitation[]): Promise<void> {
    await retryPlatform("allocator", async () => await this.#namespace.getByName(applicationId).release([...ended]));
  }
}
