import type { D1Migration } from "cloudflare:test";

declare global {
  namespace Cloudflare {
    interface Env {
      SEALING_KEY_1: string;
      SEALING_KEY_2: string;
      /** Public halves of the two sealing keys of this run. */
      TEST_SEALING_PUBLIC_KEYS: string[];
      TEST_MIGRATIONS: D1Migration[];
      /** See test/support/copy.ts. */
      TEST_COPY: D1Database;
      /** FUZZ_REQUESTS and FUZZ_SEED of the environment; empty where they are not set. */
      TEST_FUZZ: { requests: string; seed: string };
    }
  }
}
