import { setTimeout as wait } from "node:timers/promises";
import { UserError } from "../command-line/errors.ts";
import { ADMIN, DEPLOY } from "../command-line/shell.ts";
import type { Deployment } from "./deployment.ts";
import { workersDevName } from "./preflight.ts";

/**
 * Where the service is reached: all addresses at which it has to respond, the one to name first. A phone or a door may have any
 * of them, so the first one stays when a domain is added (contract section 25).
 *
 * @param given what the command line says: then it is the only one
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

/** A new address of workers.dev is not known everywhere at once. */
const HEALTH_LIMIT_MILLISECONDS = 120_000;
const HEALTH_POLL_MILLISECONDS = 2000;
const HEALTH_TIMEOUT_MILLISECONDS = 10_000;

/**
 * How `GET /health` ended: null when the service is well (contract section 11).
 *
 * @param build what the Worker that responds has to be; undefined: any. Right after an upload the one before may still respond
 */
export async function healthProblem(address: string, build?: string): Promise<string | null> {
  try {
    const response = await fetch(`${address}/health`, { signal: AbortSignal.timeout(HEALTH_TIMEOUT_MILLISECONDS) });
    const body = await response.text();
    if (response.status !== 200 || body !== JSON.stringify({ status: "ok" })) return `it responded ${response.status}`;
    const found = response.headers.get("release");
    if (build === undefined || found === build) return null;
    return `${found === null ? "a Worker without a release" : `release ${found}`} responds, and ${build} was uploaded`;
  } catch {
    return "there was no response";
  }
}

/** @throws UserError when the service is not well after two minutes, or still another build */
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
    if (!isNoted) note(`… ${address}/health: ${problem}; waiting for two minutes at most`);
    isNoted = true;
    if (Date.now() > end) {
      throw new UserError(
        `${address}/health is not well: ${problem}. If the service is reached elsewhere, set PUBLIC_URL in wrangler.toml or give --address. 503 means that D1 does not respond: see npx wrangler tail --env ${environment} and ${ADMIN} doctor --env ${environment}. Then ${DEPLOY} again.`,
      );
    }
    await wait(HEALTH_POLL_MILLISECONDS);
  }
}
