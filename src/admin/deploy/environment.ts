import { UserError } from "../command-line/errors.ts";
import type { Deployment } from "./deployment.ts";
import { withEnvironment } from "./environment-tables.ts";
import type { Step } from "./steps.ts";

/** Names of environments become part of the names of Workers, databases and queues. */
const NAME = /^[a-z][a-z0-9-]{0,19}$/;

/** The tables of a further environment in wrangler.toml. */
export function environmentStep(deployment: Deployment): Step {
  const { environment } = deployment;
  return {
    name: `Environment ${environment} in wrangler.toml`,
    async inspect() {
      if (deployment.isDefined) return null;
      if (!NAME.test(environment)) {
        throw new UserError(`"${environment}" cannot be an environment: use up to 20 of a-z, 0-9 and hyphens.`);
      }
      return {
        action: "add its tables, which are production's with other names",
        make: async () => deployment.edit((text) => withEnvironment(text, environment)),
      };
    },
  };
}
