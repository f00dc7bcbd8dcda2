import type { Deployment } from "./deployment.ts";
import { withEnvironment } from "./environment-tables.ts";
import type { Step } from "./steps.ts";

/** Adds the tables of a new environment to wrangler.toml. */
export function environmentStep(deployment: Deployment): Step {
  const { environment } = deployment;
  return {
    name: `Environment ${environment} in wrangler.toml`,
    async inspect() {
      if (deployment.isDefined) return null;
      return {
        action: "add its tables, copied from production with new names",
        make: async () => deployment.edit((text) => withEnvironment(text, environment)),
      };
    },
  };
}
