import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

/**
 * Two kinds of tests. `workers`: inside workerd, with a real D1, real Durable Objects and queues. `node`: outside, on
 * the programs a person runs (the administration script, `npm start`, the published verifier).
 */
export default defineConfig({
  test: {
    projects: [
      {
        plugins: [cloudflareTest({ wrangler: { configPath: "./wrangler.toml" }, remoteBindings: false })],
        test: { name: "workers", include: ["test/**/*.test.ts"], exclude: ["test/node/**"] },
      },
      { test: { name: "node", include: ["test/node/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 } },
    ],
  },
});
