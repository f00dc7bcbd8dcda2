import { setTimeout as wait } from "node:timers/promises";
import { UserError } from "../command-line/errors.ts";
import { ADMIN, DEPLOY } from "../command-line/shell.ts";
import type { Deployment } from "./deployment.ts";
import { workersDevName } from "./preflight.ts";

/**
 * All addresses of the service, the preferred one first. A phone or a door may use any of them, so the first one stays
 * reachable when a domain is added (contract section 25).
 *
 * @param given the address on the command line, which replaces all others
 * @throws UserError when there is none
 */
export async function addressesOf(
  deployment: Deployment,
  given: string | undefined,
): Promise<readonly [string, ...string[]]> {
  if (given !== undefined) return [given];
  const { publicUrl, customDomains, worker, isOnWorkersDev } = deployment.target;
  const name = isOnWorkersDev ? await workersDevName(deployment) : null;
  const [first, ...others] = new Set([
    ...(publicUrl === "" ? [] : [publicUrl.replace(/\/$/, "")]),
    ...customDomains.map((domain) => `https://${domain}`),
    ...(name === null ? [] : [`https://${worker}.${name}.workers.dev`]),
  ]);
  if (first !== undefined) return [first, ...others];
  throw new UserError(
    "The service has no address: set workers_dev = true in wrangler.toml, or give it a domain (routes), and run the command again.",
  );
}

/** A new workers.dev address takes a while to work everywhere. */
const HEALTH_LIMIT_MILLISECONDS = 120_000;
const HEALTH_POLL_MILLISECONDS = 2000;
const HEALTH_TIMEOUT_MILLISECONDS = 10_000;

/**
 * What is wrong with `GET /health`; null when the service is healthy.
 *
 * @param build the expected build, since the one before an upload may still respond; undefined for any
 */
export async function healthProblem(address: string, build?: string): Promise<string | null> {
  try {
    const response = await fetch(`${address}/health`, { signal: AbortSignal.timeout(HEALTH_TIMEOUT_MILLISECONDS) });
    const body = await response.text();
    if (response.status !== 200 || body !== JSON.stringify({ status: "ok" })) return `it responded ${response.status}`;
    const found = response.headers.get("release");
    if (build === undefined || found === build) return null;
    return `${found === null ? "a Worker without a release" : `release ${found}`} responded, but ${build} was uploaded`;
  } catch {
    return "there was no response";
  }
}

/** @throws UserError when the service is not healthy after two minutes, or another build still responds */
export async function untilHealthy(
  address: string,
  environment: string,
  note: (line: string) => void,
  build?: string,
): Promise<void> {
  const end = Date.now() + HEALTH_LIMIT_MILLISECONDS;
  let isNoted = false;
  for (;;) {
    const problem = await healthProblem(address, build);
    if (problem === null) return;
    if (!isNoted) note(`… ${address}/health: ${problem}; waiting for up to two minutes`);
    isNoted = true;
    if (Date.now() > end) {
      throw new UserError(
        `${address}/health fails: ${problem}. If the service has another address, set PUBLIC_URL in wrangler.toml or give --address. 503 means that D1 does not respond: see npx wrangler tail --env ${environment} and ${ADMIN} doctor --env ${environment}. Then ${DEPLOY} again.`,
      );
    }
    await wait(HEALTH_POLL_MILLISECONDS);
  }
}
