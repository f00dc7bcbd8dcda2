import * as z from "zod";
import { UserError } from "../command-line/errors.ts";
import { askOnTerminal } from "../command-line/terminal.ts";
import { CloudflareApiError } from "../platform/cloudflare.ts";
import type { Deployment } from "./deployment.ts";
import type { Step } from "./steps.ts";

/** Checks before anything is written (contract section 25): the token's rights, and the account's workers.dev name. */

/** An ID that does not exist. */
const UNUSED_ID = "00000000-0000-0000-0000-000000000000";

/** Deleting what does not exist needs the right to edit, and changes nothing. */
const PROBES = [`/d1/database/${UNUSED_ID}`, `/queues/${UNUSED_ID.replaceAll("-", "")}`];

/**
 * Checks that the token may do what the steps need. Uploading the draft (plan.ts) shows whether it may upload Workers.
 *
 * The platform does not document that it checks rights before existence. If it does not, the first write refuses a token
 * that may only read, with the same message.
 */
export function rightsStep(deployment: Deployment): Step {
  return {
    name: "Rights of the token",
    async inspect() {
      for (const path of PROBES) {
        await deployment.account.call(z.unknown(), { method: "DELETE", path }).catch((error: unknown) => {
          // "Not found" means that the token may delete.
          if (!(error instanceof CloudflareApiError) || error.isKnown) throw error;
        });
      }
      return null;
    },
  };
}

const subdomain = z.object({ subdomain: z.string() });

/** The same check as wrangler's. */
const SUBDOMAIN = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** `NAME` of `https://WORKER.NAME.workers.dev`; null when the account has none yet. */
export const workersDevName = async (deployment: Deployment): Promise<string | null> =>
  (await deployment.find(subdomain, "/workers/subdomain"))?.subdomain ?? null;

/**
 * Registers the account's workers.dev name, which a new account lacks. wrangler would notice that only after the upload,
 * because the draft of the Worker exists already.
 *
 * @param given the name on the command line
 */
export function workersDevStep(deployment: Deployment, given: string | undefined): Step {
  return {
    name: "workers.dev name of the account",
    async inspect() {
      if ((await workersDevName(deployment)) !== null) return null;
      return {
        action: given === undefined ? "ask for one, and register it" : `register ${given}`,
        make: async () => register(deployment, given ?? (await askForName(deployment))),
      };
    },
  };
}

async function register(deployment: Deployment, name: string): Promise<void> {
  if (!SUBDOMAIN.test(name)) {
    throw new UserError(
      `"${name}" cannot be a workers.dev name: use up to 63 of a-z and 0-9, with hyphens only in between.`,
    );
  }
  try {
    await deployment.account.call(subdomain, { method: "PUT", path: "/workers/subdomain", body: { subdomain: name } });
  } catch (error) {
    if (!(error instanceof CloudflareApiError)) throw error;
    throw new UserError(
      `The workers.dev name ${name} cannot be registered: ${error.reason}. Give another one with --workers-dev NAME.`,
      { cause: error },
    );
  }
}

/** @throws UserError when there is no terminal to ask on */
async function askForName({ account, target }: Deployment): Promise<string> {
  const found = await askOnTerminal(
    `The account has no workers.dev name yet: its Workers are reached at https://${target.worker}.NAME.workers.dev. Which NAME? `,
    (answer) => (SUBDOMAIN.test(answer) ? answer : undefined),
  );
  if (found !== null) return found;
  throw new UserError(
    `The account has no workers.dev name yet, so the service would have no address. Add --workers-dev NAME to the command, which registers it, or choose one at https://dash.cloudflare.com/${account.id}/workers/onboarding, and run the command again. It names all Workers of the account, such as https://${target.worker}.NAME.workers.dev.`,
  );
}
