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
const PROBES = [
  `/d1/database/${UNUSED_ID}`,
  `/queues/${UNUSED_ID.replaceAll("-", "")}`,
  `/workers/scripts/${UNUSED_ID}`,
];

/**
 * Checks that the token may do what the steps need. Only the right to a domain's zone shows later, when the domain is attached.
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

/** The platform's code for a name that another account has. */
const TAKEN = "[code: 10031]";

/** `NAME` of `https://WORKER.NAME.workers.dev`; null when the account has none yet. */
export const workersDevName = async (deployment: Deployment): Promise<string | null> =>
  (await deployment.find(subdomain, "/workers/subdomain"))?.subdomain ?? null;

/**
 * Chooses a workers.dev name if the account has none, and makes sure that it can be had. wrangler would notice the lack only
 * after the upload, because the draft of the Worker exists already.
 *
 * @param given the name on the command line
 * @param choose gets the name, which is to be registered when the plan is known to suffice
 */
export function workersDevStep(
  deployment: Deployment,
  given: string | undefined,
  choose: (name: string) => void,
): Step {
  return {
    name: "workers.dev name of the account",
    async inspect() {
      if ((await workersDevName(deployment)) !== null) return null;
      return {
        action: given === undefined ? "ask for one, and register it" : `register ${given} once the plan is known`,
        make: async () => {
          const name = given ?? (await askForName(deployment));
          await assertAvailable(deployment, name);
          choose(name);
        },
      };
    },
  };
}

/** Registers the name that was chosen. */
export function registrationStep(deployment: Deployment, name: string): Step {
  return {
    name: "Registration of the workers.dev name",
    async inspect() {
      if ((await workersDevName(deployment)) !== null) return null;
      const call = { method: "PUT", path: "/workers/subdomain", body: { subdomain: name } } as const;
      return { action: `register ${name}`, make: () => registering(name, deployment.account.call(subdomain, call)) };
    },
  };
}

async function assertAvailable({ account }: Deployment, name: string): Promise<void> {
  if (!SUBDOMAIN.test(name)) {
    throw new UserError(
      `"${name}" cannot be a workers.dev name: use up to 63 of a-z and 0-9, with hyphens only in between.`,
    );
  }
  // The same call as wrangler's. A free name is refused, too, with another code.
  const look = account.call(z.unknown(), { path: `/workers/subdomains/${name}` }).catch((error: unknown) => {
    if (!(error instanceof CloudflareApiError) || error.reason.includes(TAKEN)) throw error;
  });
  await registering(name, look);
}

/** @throws UserError that names the way out when the platform refuses the name */
async function registering(name: string, call: Promise<unknown>): Promise<void> {
  try {
    await call;
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
