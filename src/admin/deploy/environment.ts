import type { Deployment } from "./deployment.ts";
import { withEnvironment } from "./environment-tables.ts";
import type { Step } from "./steps.ts";

/** The tables of a further environment in wrangler.toml. */
export function environmentStep(deployment: Deployment): Step {
  const { environment } = deployment;
  return {
    name: `Environment ${environment} in wrangler.toml`,
    async inspect() {
      if (deployment.isDefined) return null;
      return {
        action: "add its tables, which are production's with other names",
        make: async () => deployment.edit((text) => withEnvironment(text, environment)),
      };
    },
  };
}
