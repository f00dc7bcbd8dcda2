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
  /** By the segment's start and size, because a segment may still grow while D1 lacks the entry that began it. */
  readonly #permutations = new Map<string, (index: number) => number>();

  constructor(applicationId: ApplicationId, unsealedKeys: Pick<UnsealedKeys, "rootKey">) {
    this.#applicationId = applicationId;
    this.#unsealedKeys = unsealedKeys;
  }

  /** Finds the number at an index of a segment, for these commands. @throws Unavailable when the root key cannot be opened */
  async forCommands(commands: readonly Command[]): Promise<NonNullable<Sources["numberAt"]>> {
    const key = await this.#keyFor(commands);
    return (segment, index) => segment.first + this.#permutation(key, segment)(index);
  }

  /** The key of the permutations. It is derived from the root key, so a lost object loses nothing. Null: no command takes a number. */
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
