import { setTimeout as wait } from "node:timers/promises";
import * as z from "zod";
import { UserError } from "../command-line/errors.ts";
import { ADMIN, DEPLOY } from "../command-line/shell.ts";
import type { Deployment } from "./deployment.ts";

const subdomain = z.object({ subdomain: z.string() });

/**
 * Where the service is reached.
 *
 * @param given what the command line says
 * @throws UserError when the account has no workers.dev subdomain yet, and wrangler.toml no domain
 */
export async function addressOf(deployment: Deployment, given: string | undefined): Promise<string> {
  const { publicUrl, customDomains, worker } = deployment.target;
  const [domain] = customDomains;
  if (given !== undefined) return given;
  if (publicUrl !== "") return publicUrl.replace(/\/$/, "");
  if (domain !== undefined) return `https://${domain}`;
  const found = await deployment.find(subdomain, "/workers/subdomain");
  if (found !== null) return `https://${worker}.${found.subdomain}.workers.dev`;
  throw new UserError(
    "The account has no workers.dev address yet: open Workers in the dashboard once and choose one, or give the service a domain (routes in wrangler.toml), and run the command again.",
  );
}

/** A new address of workers.dev is not known everywhere at once. */
const HEALTH_LIMIT_MILLISECONDS = 120_000;
const HEALTH_POLL_MILLISECONDS = 2000;
const HEALTH_TIMEOUT_MILLISECONDS = 10_000;

/** How `GET /health` ended: null when the service is well (contract section 11). */
export async function healthProblem(address: string): Promise<string | null> {
  try {
    const response = await fetch(`${address}/health`, { signal: AbortSignal.timeout(HEALTH_TIMEOUT_MILLISECONDS) });
    const body = await response.text();
    if (response.status === 200 && body === JSON.stringify({ status: "ok" })) return null;
    return `it responded ${response.status}`;
  } catch {
    return "there was no response";
  }
}

/** @throws UserError when the service is not well after two minutes */
export async function untilHealthy(address: string, environment: string, note: (line: string) => void): Promise<void> {
  const end = Date.now() + HEALTH_LIMIT_MILLISECONDS;
  let isNoted = false;
  for (;;) {
    const problem = await healthProblem(address);
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
