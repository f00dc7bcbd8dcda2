import type { Origin } from "../../shared/actor.ts";
import { type ApplicationId, newRandomId } from "../../shared/identifiers.ts";
import { CALL_DEADLINE_MILLISECONDS } from "../../shared/limits.ts";
import { type Home, objectPlace } from "../homes.ts";
import { retryPlatform, Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import type { Database } from "../storage/database.ts";
import type { Allocator } from "./allocator.ts";
import type { Command, Outcome } from "./commands.ts";

/** What a call leads to when it is carried out. */
export type Answer = Exclude<Outcome, { kind: "refused" | "unavailable" | "failed" }>;

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

  /**
   * Carries out a command in its turn. It had happened when this rejects, or never will.
   *
   * @param db gets the bookmark of what was read or written
   * @throws Refusal
   * @throws Unavailable
   */
  async carryOut(db: Database, applicationId: ApplicationId, command: Command, origin: Origin): Promise<Answer> {
    const call = { id: newRandomId(), until: Date.now() + CALL_DEADLINE_MILLISECONDS, origin, command };
    const { outcome, bookmark } = await this.#try(applicationId, async (stub) => await stub.call(applicationId, call));
    db.noteBookmark(bookmark);
    switch (outcome.kind) {
      case "refused":
        throw new Refusal(outcome.code);
      case "unavailable":
        throw new Unavailable("allocator", undefined);
      case "failed":
        throw new Error("D1 refuses to store what was decided");
      default:
        return outcome;
    }
  }

  /** Does what is due in an application. @param isToCompare whether D1 may have been restored */
  wake(applicationId: ApplicationId, isToCompare: boolean): Promise<void> {
    return this.#try(applicationId, async (stub) => await stub.wake(applicationId, isToCompare));
  }

  #try<T>(applicationId: ApplicationId, method: (stub: DurableObjectStub<Allocator>) => Promise<T>): Promise<T> {
    return retryPlatform("allocator", () => {
      this.#calls++;
      return method(this.#stub(applicationId));
    });
  }

  #stub(applicationId: ApplicationId): DurableObjectStub<Allocator> {
    const { locationHint, jurisdiction } = objectPlace(this.#home);
    const namespace = jurisdiction ? this.#namespace.jurisdiction(jurisdiction) : this.#namespace;
    return namespace.getByName(applicationId, locationHint && { locationHint });
  }
}
