import { afterAll, beforeEach, vi } from "vitest";
import type { WorkerSecrets } from "../../../src/admin/platform/worker-secrets.ts";

/** All that were made so far, in the order in which a test needs them. */
const pairs: Promise<CryptoKeyPair | CryptoKey>[] = [];

/**
 * Lets the tests of a file share sealing keys, since to make one takes up to a second: the first that any test makes is
 * the same, so is the second, and so on. Within a test no two are the same.
 */
export function shareSealingKeys(): void {
  const make = crypto.subtle.generateKey.bind(crypto.subtle);
  const spy = vi.spyOn(crypto.subtle, "generateKey");
  beforeEach(() => {
    let made = 0;
    spy.mockImplementation((algorithm, extractable, usages) => {
      if (typeof algorithm === "string" || algorithm.name !== "RSA-OAEP") return make(algorithm, extractable, usages);
      const pair = pairs[made] ?? make(algorithm, extractable, usages);
      pairs[made++] = pair;
      return pair;
    });
  });
  afterAll(() => spy.mockRestore());
}

/** The secrets of a deployed Worker, which nobody may overwrite. */
export function deployedWorker(): WorkerSecrets & { values: Map<string, string> } {
  const values = new Map<string, string>();
  return {
    values,
    async put(name, value) {
      if (values.has(name)) throw new Error(`${name} is overwritten`);
      values.set(name, value);
    },
    async delete(name) {
      if (!values.delete(name)) throw new Error(`there is no secret ${name}`);
    },
    list: async () => [...values.keys()],
  };
}
