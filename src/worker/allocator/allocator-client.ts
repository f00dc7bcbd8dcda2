import type { AuditContext } from "../../shared/actor.ts";
import { type ApplicationId, newRandomId } from "../../shared/identifiers.ts";
import {
  CALL_DEADLINE_MILLISECONDS,
  CALL_RETRY_BASE_MILLISECONDS,
  CALL_RETRY_MAX_MILLISECONDS,
} from "../../shared/limits/allocator-limits.ts";
import { isOverloaded } from "../../shared/retryable.ts";
import { ApiError } from "../api-error.ts";
import { type Home, objectOf } from "../homes.ts";
import { Unavailable, withDeadline } from "../platform.ts";
import type { Database } from "../storage/database.ts";
import type { Allocator } from "./allocator.ts";
import { CALL_VERSION, type CallMessage, type Command, type Result } from "./commands.ts";
import type { Reply } from "./waiting-calls.ts";

/** The result of a call that was not refused. */
export type Success = Exclude<Result, { kind: "refused" }>;

/**
 * Calls the allocators of a home's applications. Each try gets a new stub, because a broken stub stays broken. Only the first call
 * of an object decides where it is made: beside its home's D1, which it calls more than anybody calls it.
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
   * Sends a command to its application's allocator, which decides it in its turn.
   *
   * @param db gets the bookmark of what was read or written
   * @throws ApiError
   * @throws Unavailable at the call's deadline, after which the command is not decided any more, or when the allocator has given it up
   */
  async execute(db: Database, applicationId: ApplicationId, command: Command, audit: AuditContext): Promise<Success> {
    const until = Date.now() + CALL_DEADLINE_MILLISECONDS;
    const message = { version: CALL_VERSION, id: newRandomId(), until, audit, command };
    const { outcome, bookmark } = await this.#try(applicationId, message);
    db.noteBookmark(bookmark);
    switch (outcome.kind) {
      case "refused":
        throw new ApiError(outcome.code);
      case "unavailable":
        throw new Unavailable("allocator", undefined);
      case "failed":
        throw new Error("the allocator could not decide the call");
      default:
        return outcome;
    }
  }

  /**
   * Wakes an allocator to carry out the commands of the script.
   *
   * @param isInDoubt whether D1 may have been restored
   */
  async wake(applicationId: ApplicationId, isInDoubt: boolean): Promise<void> {
    this.#calls++;
    await this.#stub(applicationId).wake(applicationId, isInDoubt);
  }

  /**
   * Repeats the call until its deadline: it has the same ID, so it is decided once, and after an earlier 503 a late copy of it
   * could undo a later call.
   */
  #try(applicationId: ApplicationId, call: CallMessage): Promise<Reply> {
    return withDeadline("allocator", CALL_DEADLINE_MILLISECONDS, async (hasTimedOut) => {
      for (let pause = CALL_RETRY_BASE_MILLISECONDS; ; pause = Math.min(2 * pause, CALL_RETRY_MAX_MILLISECONDS)) {
        try {
          this.#calls++;
          return await this.#stub(applicationId).call(applicationId, call);
        } catch (error) {
          // The platform refuses the call before the object gets it; to repeat it would add to the overload.
          if (isOverloaded(error) || hasTimedOut()) throw new Unavailable("allocator", error);
          await scheduler.wait(Math.random() * pause);
        }
      }
    });
  }

  #stub(applicationId: ApplicationId): DurableObjectStub<Allocator> {
    return objectOf(this.#namespace, this.#home, applicationId);
  }
}
