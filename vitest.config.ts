import { generateKeyPairSync } from "node:crypto";
import { availableParallelism } from "node:os";
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const der = { publicKey: { type: "spki", format: "der" }, privateKey: { type: "pkcs8", format: "der" } } as const;

function newSealingKey(): { publicKey: string; privateKey: string } {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 3072,
    publicKeyEncoding: der.publicKey,
    privateKeyEncoding: der.privateKey,
  });
  return { publicKey: publicKey.toString("base64"), privateKey: privateKey.toString("base64") };
}

const sealingKeys = [newSealingKey(), newSealingKey()] as const;

/** How much random tests try: see test/support/effort.ts. */
const effort = process.env.TEST_EFFORT ?? "short";
if (effort !== "short" && effort !== "full") throw new Error(`TEST_EFFORT is short or full, not ${effort}`);

/** Which home a file's applications live in (test/support/home.ts). */
const home = process.env.TEST_HOME ?? "by file";
if (home !== "1" && home !== "2" && home !== "by file") throw new Error(`TEST_HOME is 1 or 2, not ${home}`);

/** `npm run test:full` runs every file in both homes. */
const isInBoth = effort === "full" && home === "by file";

/** Milliseconds, for a test inside workerd. */
const testTimeout = effort === "full" ? 600_000 : 30_000;

/**
 * vitest leaves a core free, which on two cores is half the machine. Tests inside workerd seldom wait, those outside often
 * wait for a process of their own; so more run at once than there are cores, and those outside come first.
 */
const maxWorkers = 2 * availableParallelism() + 1;

/** Short files with slow tests. Without the times of an earlier run, vitest starts the largest files first. */
const LONGEST = ["simulation", "deploy", "start", "pass", "live", "leaks", "console"];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = LONGEST.findIndex((name) => moduleId.endsWith(`/test/node/${name}.test.ts`));
      return place === -1 ? LONGEST.length : place;
    };
    return (await super.sort(files)).toSorted((one, other) => placeOf(one) - placeOf(other));
  }
}

/** The files inside workerd, in one home or by file in both. */
const workers = (name: string, ofHome: typeof home) => ({
  name,
  provide: { home: ofHome },
  isolate: false,
  include: ["test/**/*.test.ts"],
  exclude: ["test/node/**"],
  setupFiles: ["./test/support/setup.ts"],
  testTimeout,
  restoreMocks: true,
});

/** Runs tests inside workerd, on the bindings of wrangler.toml. */
async function workerd() {
  return cloudflareTest({
    wrangler: { configPath: "./wrangler.toml" },
    remoteBindings: false,
    miniflare: {
      // A copy of D1 near the caller: test/support/copy.ts.
      d1Databases: ["TEST_COPY"],
      bindings: {
        SEALING_KEY_1: sealingKeys[0].privateKey,
        SEALING_KEY_2: sealingKeys[1].privateKey,
        TEST_SEALING_PUBLIC_KEYS: sealingKeys.map(({ publicKey }) => publicKey),
        TEST_MIGRATIONS: await readD1Migrations("./migrations"),
        // What test/fuzz is asked for on the command line: workerd has no environment variables.
        TEST_FUZZ: { requests: process.env.FUZZ_REQUESTS ?? "", seed: process.env.FUZZ_SEED ?? "" },
      },
    },
  });
}

/**
 * Two kinds of tests. `workers`: inside workerd, with a real D1, real Durable Objects and queues. `node`: outside, on the
 * programs a person runs (the administration script, `npm start`, the published verifier).
 *
 * On each core the files of one kind share a runtime, or a Node: to start one for each, and to load the service or wrangler
 * into it, takes longer than most of them. All the same test/support/setup.ts gives every file inside workerd storage of its
 * own, and test/node/support/setup.ts gives every file outside the environment as it was.
 */
export default defineConfig({
  test: {
    provide: { effort },
    maxWorkers,
    sequence: { sequencer: LongestFirst },
    globalSetup: ["./test/node/support/storage-in-memory.ts"],
    projects: [
      { plugins: [await workerd()], test: workers("workers", isInBoth ? "1" : home) },
      ...(isInBoth ? [{ plugins: [await workerd()], test: workers("workers in home 2", "2") }] : []),
      {
        test: {
          name: "node",
          include: ["test/node/**/*.test.ts"],
          isolate: false,
          globalSetup: ["./test/node/support/shared-service.ts"],
          setupFiles: ["./test/node/support/setup.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
