import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type Unstable_Config, unstable_readConfig } from "wrangler";
import {
  CLIENT_IP_CALLS_PER_MINUTE,
  DEVICE_CALLS_PER_MINUTE,
  REFUSED_CALLS_PER_MINUTE,
} from "../../src/shared/limits/request-limits.ts";

const PATH = fileURLToPath(new URL("../../wrangler.toml", import.meta.url));
const TEXT = readFileSync(PATH, "utf8");
const TYPES = readFileSync(new URL("../../src/worker/environment.d.ts", import.meta.url), "utf8");

/** As wrangler reads it for one environment, with what it inherits. */
const read = (env?: string): Unstable_Config =>
  unstable_readConfig({ config: PATH, ...(env !== undefined && { env }) }, { hideWarnings: true });

const ENVIRONMENTS = ["local", ...new Set([...TEXT.matchAll(/^\[env\.(\w+)\]/gm)].map(([, name]) => name ?? ""))];
const configurations = ENVIRONMENTS.map((name) => [name, name === "local" ? read() : read(name)] as const);
const local = read();

/** Names of everything that the Worker is bound to, apart from its homes, whose places the deployment writes. */
const bindings = ({ durable_objects, queues, ratelimits, vars, assets }: Unstable_Config): (string | undefined)[] =>
  [
    ...durable_objects.bindings.map(({ name, class_name }) => `${name} ${class_name}`),
    ...(queues.producers ?? []).map(({ binding }) => binding),
    ...ratelimits.map(({ name }) => name),
    ...[...Object.keys(vars), assets?.binding],
  ]
    .filter((name) => !/^(HOME|WEBHOOKS)_\d+$/.test(name ?? ""))
    .toSorted();

describe("wrangler.toml", () => {
  describe.each(configurations)("%s", (name, config) => {
    it("this environment sweeps every minute (contract sections 5 and 8: expiry needs no request, a lost message costs a minute)", () => {
      expect(config.triggers.crons).toEqual(["* * * * *"]);
    });

    it("this environment consumes the queue that it sends to, and that queue's dead letters (contract section 8)", () => {
      const [sent] = (config.queues.producers ?? []).map(({ queue }) => queue);
      const consumers = new Map(config.queues.consumers?.map((consumer) => [consumer.queue, consumer]));
      const dead = consumers.get(sent ?? "")?.dead_letter_queue ?? "";
      expect([...consumers.keys()]).toEqual(expect.arrayContaining([sent, dead]));
      // The Worker tells the two apart by this part of the name.
      expect(dead).toContain("-dead");
      expect(sent).not.toContain("-dead");
      for (const consumer of consumers.values()) {
        const { max_batch_size, max_batch_timeout, max_retries, retry_delay } = consumer;
        expect([max_batch_size, max_batch_timeout, max_retries, retry_delay]).not.toContain(undefined);
      }
      // One connection for each, and one for the queue (Workers: Limits), and no wait for more.
      expect(consumers.get(sent ?? "")).toMatchObject({ max_batch_size: 5, max_batch_timeout: 0 });
    });

    it("this environment turns off the platform's logs of URLs, because a revocation's has a token (contract section 9)", () => {
      expect(config.observability).toMatchObject({ enabled: true, logs: { invocation_logs: false } });
      expect(config.logpush ?? false).toBe(false);
    });

    // What is deployed may have limits of its own.
    const isDeployed = name !== "local" && config.d1_databases[0]?.database_id !== undefined;
    it.skipIf(isDeployed)("limits calls in a minute as the reference says (contract section 7)", () => {
      expect([DEVICE_CALLS_PER_MINUTE, CLIENT_IP_CALLS_PER_MINUTE, REFUSED_CALLS_PER_MINUTE]).toEqual([60, 1200, 120]);
      const limits = config.ratelimits.map(({ name: limit, simple }) => [limit, simple] as const);
      expect(Object.fromEntries(limits)).toEqual({
        DEVICE_LIMIT: { limit: DEVICE_CALLS_PER_MINUTE, period: 60 },
        CLIENT_IP_LIMIT: { limit: CLIENT_IP_CALLS_PER_MINUTE, period: 60 },
        REFUSED_CALL_LIMIT: { limit: REFUSED_CALLS_PER_MINUTE, period: 60 },
      });
    });

    it("this environment has every binding, variable and object class that local development has", () => {
      expect(bindings(config)).toEqual(bindings(local));
      const classes = config.durable_objects.bindings.map(({ class_name }) => [
        class_name,
        { type: "durable-object", storage: "sqlite" },
      ]);
      expect(config.exports).toEqual(Object.fromEntries(classes));
      expect(config.migrations).toEqual([]);
    });

    it("this environment has one D1 for each home, home 1 first, all with the same tables (contract section 17)", () => {
      const bindings = config.d1_databases.map(({ binding }) => binding);
      expect(bindings[0]).toBe("DB");
      if (name === "local") expect(bindings).toEqual(["DB", "DB_2"]);
      expect(new Set(config.d1_databases.map(({ migrations_dir }) => migrations_dir))).toEqual(new Set(["migrations"]));
    });

    it("this environment has the flags that the code relies on (contract section 8: only the public internet), and runs the Worker before assets, for its headers and errors", () => {
      const flags = ["global_fetch_strictly_public", "queue_consumer_no_wait_for_wait_until"];
      const { compatibility_date } = local;
      const assets = { run_worker_first: true };
      expect(config).toMatchObject({ compatibility_flags: flags, compatibility_date, assets });
    });

    it("this environment allows webhooks to localhost only when it is local; others have an address and a bound of CPU (contract sections 8 and 25)", () => {
      const isLocal = name === "local";
      expect(config.vars.ENVIRONMENT === "local").toBe(isLocal);
      expect(config.limits?.cpu_ms).toBe(isLocal ? undefined : 30_000);
      if (!isLocal) expect(config.preview_urls).toBe(false);
      // With a domain, workers.dev may be off (docs/operations.md).
      if (!isLocal && (config.routes ?? []).length === 0) expect(config.workers_dev).toBe(true);
    });
  });

  it("environments share no name, database, queue or counter", () => {
    const resources = configurations.flatMap(([, config]) => [
      `Worker ${config.name}`,
      ...config.d1_databases.map(({ database_name }) => `D1 ${database_name}`),
      // A database has no ID before the first deployment.
      ...config.d1_databases.flatMap(({ database_id }) => (database_id === undefined ? [] : `D1 ${database_id}`)),
      ...(config.queues.consumers ?? []).map(({ queue }) => `queue ${queue}`),
      ...config.ratelimits.map(({ namespace_id }) => `counter ${namespace_id}`),
    ]);
    expect(new Set(resources).size).toBe(resources.length);
  });

  it("variables are typed so that a deployment's own values change no type, and its tests pass (contract section 25)", () => {
    expect(TYPES).toContain("PUBLIC_URL: string;");
    expect(TYPES).not.toMatch(/[A-Z\d]\??: "/);
  });
});
