import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { RangeSegment } from "../../shared/schema.ts";
import { deriveBytes } from "../keys/derivation.ts";
import type { UnsealedKeys } from "../keys/unsealed-keys.ts";
import type { Command } from "./commands.ts";
import { createPermutation } from "./permutation.ts";
import type { Sources } from "./transaction.ts";

/** The orders in which an application's fresh numbers are handed out: one for each segment of its range. */
export class FreshNumbers {
  readonly #applicationId: ApplicationId;
  readonly #unsealedKeys: Pick<UnsealedKeys, "rootKey">;
  /** By the segment's start and size: what one group took for a segment need not be in D1, and the range may grow on. */
  readonly #permutations = new Map<string, (index: number) => number>();

  constructor(applicationId: ApplicationId, unsealedKeys: Pick<UnsealedKeys, "rootKey">) {
    this.#applicationId = applicationId;
    this.#unsealedKeys = unsealedKeys;
  }

  /** What decides these commands needs. @throws Unavailable when the application's root key cannot be opened */
  async forCommands(commands: readonly Command[]): Promise<NonNullable<Sources["numberAt"]>> {
    const key = await this.#keyFor(commands);
    return (segment, index) => segment.first + this.#permutation(key, segment)(index);
  }

  /** Derived from the root key, so that a lost object loses nothing. Null: none of the commands takes a number. */
  async #keyFor(commands: readonly Command[]): Promise<Uint8Array | null> {
    const taking = commands.find((command) => command.kind === "badge" || command.kind === "invite");
    if (!taking) return null;
    return deriveBytes(await this.#unsealedKeys.rootKey(this.#applicationId, taking.rules.rootKey), "badge-numbers");
  }

  /** One key per segment: segments of equal size have different orders. */
  #permutation(key: Uint8Array | null, { first, size }: RangeSegment): (index: number) => number {
    const name = `${first} ${size}`;
    const known = this.#permutations.get(name);
    if (known) return known;
    if (!key) throw new Error("only a call with rules takes numbers");
    const permutation = createPermutation(hmac(sha256, key, new TextEncoder().encode(String(first))), size);
    this.#permutations.set(name, permutation);
    return permutation;
  }
}
