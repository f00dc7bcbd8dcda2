import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import * as z from "zod";
import { oneLine, UserError } from "../command-line/errors.ts";
import { assertHomesBound } from "../number-range/owners.ts";
import { deployedHomes } from "../platform/d1.ts";
import { PROJECT, WRANGLER_CONFIG } from "../platform/paths.ts";
import { runWrangler } from "../platform/wrangler.ts";
import type { Deployment } from "./deployment.ts";
import { RELEASE_NUMBER } from "./release-number.ts";
import type { Step } from "./steps.ts";

/**
 * The variable with the build of the deployed Worker (see `buildOf`). The same build is not uploaded again, and `/health`
 * returns it in its header `release`.
 */
const RELEASE = "RELEASE";

const settings = z.object({
  bindings: z.array(z.looseObject({ name: z.string(), type: z.string(), text: z.string().optional() })),
});
const consumer = z.looseObject({
  script: z.string().optional(),
  service: z.string().optional(),
  dead_letter_queue: z.unknown().optional(),
  settings: z.record(z.string(), z.unknown()).nullish(),
});
const queues = z.array(z.object({ queue_name: z.string(), consumers: z.array(consumer).default([]) }));
const schedules = z.object({ schedules: z.array(z.object({ cron: z.string() })) });
const subdomain = z.object({ enabled: z.boolean() });
/** Newest first (API: Workers, Deployments). */
const deployments = z.object({ deployments: z.array(z.object({ versions: z.array(z.unknown()) })) });
const domains = z.array(z.object({ hostname: z.string(), service: z.string() }));

/**
 * Uploads the Worker with its assets, and sets up what calls it: its address, the queues and cron. wrangler uploads the
 * Worker first. If something else is missing afterwards, a run was interrupted.
 */
export function uploadStep(deployment: Deployment): Step {
  const { environment } = deployment;
  return {
    name: `Worker ${deployment.target.worker}`,
    async inspect() {
      const build = buildOf();
      const reason = await reasonToUpload(deployment, build);
      if (reason === null) return null;
      if (reason !== NOT_DEPLOYED) await assertBound();
      return {
        action: `upload it (${reason})`,
        async make() {
          // Where the Worker was deleted, its homes may still have applications; by now each home has its tables.
          if (reason === NOT_DEPLOYED) await assertBound();
          await buildAssets();
          await runWrangler(["deploy", "--env", environment, "--var", `${RELEASE}:${build}`]);
        },
      };
    },
  };

  function assertBound(): Promise<void> {
    return assertHomesBound(deployedHomes(deployment.account, deployment.target), "The Worker was not uploaded");
  }
}

/** Builds the static assets from the sources that the build names. */
async function buildAssets(): Promise<void> {
  const built = promisify(execFile)(process.execPath, ["src/dev/docs-assets.ts"], { cwd: PROJECT });
  await built.catch((error: Error) => {
    throw new UserError(`The assets cannot be built (npm run docs:build): ${oneLine(error.message)}`);
  });
}

const NOT_DEPLOYED = "it does not exist yet";

/** @returns null when everything is as wrangler would make it */
async function reasonToUpload(deployment: Deployment, build: string): Promise<string | null> {
  const { worker, crons, isOnWorkersDev, customDomains } = deployment.target;
  const script = `/workers/scripts/${worker}`;
  const deployed = await deployment.find(settings, `${script}/settings`);
  // A draft has no database.
  if (!deployed?.bindings.some(({ type }) => type === "d1")) return NOT_DEPLOYED;
  const current = deployed.bindings.find(({ name }) => name === RELEASE)?.text ?? "an upload by hand";
  if (current !== build) return `${current} is deployed, and this checkout is ${build}`;
  const [latest] = (await deployment.find(deployments, `${script}/deployments`))?.deployments ?? [];
  if (latest !== undefined && latest.versions.length > 1) return "several versions share the traffic";
  for (const { wanted, found } of await findConsumers(deployment)) {
    if (found === undefined) return `nothing consumes ${wanted.queue}`;
    if (!isUpToDate(wanted, found)) return `the consumer of ${wanted.queue} has other settings`;
  }
  const scheduled = await deployment.find(schedules, `${script}/schedules`);
  if (crons.some((cron) => !scheduled?.schedules.some((each) => each.cron === cron)))
    return "its cron trigger is missing";
  // wrangler changes the address after the upload, and may have been cut off before it.
  const isEnabled = (await deployment.find(subdomain, `${script}/subdomain`))?.enabled ?? false;
  if (isEnabled !== isOnWorkersDev)
    return isOnWorkersDev ? "it has no workers.dev address" : "it still has its workers.dev address";
  for (const domain of customDomains) {
    const found = await deployment.find(domains, `/workers/domains?hostname=${encodeURIComponent(domain)}`);
    if (!found?.some(({ hostname, service }) => hostname === domain && service === worker))
      return `${domain} is not attached to it`;
  }
  return null;
}

/** Names of the queues that wrangler.toml lets the Worker consume, but that it does not consume. */
export const missingConsumers = async (deployment: Deployment): Promise<string[]> =>
  (await findConsumers(deployment)).flatMap(({ wanted, found }) => (found === undefined ? wanted.queue : []));

/** The consumers of wrangler.toml, each as the platform has it; undefined: the Worker does not consume that queue. */
async function findConsumers(deployment: Deployment) {
  const { worker, consumers } = deployment.target;
  const all: { wanted: WantedConsumer; found: z.infer<typeof consumer> | undefined }[] = [];
  for (const wanted of consumers) {
    const named = await deployment.find(queues, `/queues?name=${encodeURIComponent(wanted.queue)}`);
    const present = named?.find(({ queue_name: name }) => name === wanted.queue)?.consumers ?? [];
    all.push({ wanted, found: present.find(({ script, service }) => (script ?? service) === worker) });
  }
  return all;
}

type WantedConsumer = Deployment["target"]["consumers"][number];

/** Whether a consumer is as wrangler would set it up. What the platform does not return is not compared. */
function isUpToDate(wanted: WantedConsumer, { settings, dead_letter_queue }: z.infer<typeof consumer>): boolean {
  return [
    [settings?.batch_size, wanted.max_batch_size],
    [settings?.max_wait_time_ms, 1000 * wanted.max_batch_timeout],
    [settings?.max_retries, wanted.max_retries],
    [settings?.retry_delay, wanted.retry_delay],
    [dead_letter_queue || undefined, wanted.dead_letter_queue],
  ].every(([found, expected]) => found == null || found === expected);
}

/** Enough digits to tell two builds of one release apart. */
const BUILD_DIGITS = 12;

/** The release and a fingerprint, such as `0.9.0+1f0c93ab77de` (Semantic Versioning section 10: build metadata). */
export const buildOf = (): string => `${RELEASE_NUMBER}+${fingerprint().slice(0, BUILD_DIGITS)}`;

/** What the Worker and its assets are built from, which excludes the script, local development and types. */
const SOURCES = [
  ...["src/worker", "src/shared", "src/console", "src/pass", "src/docs-page", "src/client"],
  ...["src/dev/docs-assets.ts", "src/dev/page-assets.ts", "package-lock.json"],
];

/** SHA-256 in hexadecimal of all files that the Worker is built from, with their paths. */
function fingerprint(): string {
  const hash = createHash("sha256").update(readFileSync(WRANGLER_CONFIG));
  for (const path of SOURCES.flatMap(filesOf)) hash.update(`\n${path}\n`).update(readFileSync(join(PROJECT, path)));
  return hash.digest("hex");
}

const filesOf = (path: string): string[] =>
  statSync(join(PROJECT, path)).isFile()
    ? [path]
    : readdirSync(join(PROJECT, path), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && !entry.name.endsWith(".d.ts"))
        .map((entry) => join(entry.parentPath, entry.name).slice(PROJECT.length + 1))
        .sort();
