import { UserError } from "../command-line/errors.ts";
import type { Output } from "../command-line/output.ts";
import { ADMIN, DEPLOY } from "../command-line/shell.ts";
import { deployedHomes } from "../platform/d1.ts";
import { Homes } from "../platform/homes.ts";
import { migrate, migrationFiles, missingMigrations } from "../platform/migrations.ts";
import { restD1 } from "../platform/rest-d1.ts";
import { workerSecrets } from "../platform/worker-secrets.ts";
import { makeDeployedSealingKey, missingSecrets } from "../sealing-key/deployed.ts";
import { findNewest, newestVersion, publishNewestEverywhere } from "../sealing-key/newest.ts";
import type { Deployment } from "./deployment.ts";
import type { Step } from "./steps.ts";

/** Migrates a home's database. Migrations keep what the deployed Worker needs, so they come before the upload. */
export function migrationsStep(deployment: Deployment, number: number): Step {
  return {
    name: `Tables of home ${number}`,
    async inspect() {
      const d1 = openDatabase();
      const missing = d1 === null ? migrationFiles() : await missingMigrations(d1);
      if (missing.length === 0) return null;
      return {
        action: `apply ${missing.length === 1 ? "1 migration" : `${missing.length} migrations`}`,
        async make() {
          const database = openDatabase();
          if (database === null) throw new Error(`home ${number} has no database`);
          await migrate(
            database,
            deployment.wrangler,
            `The database of home ${number} was made by another version of the service, which this one cannot read: deploy that version, or a later one.`,
          );
        },
      };
    },
  };

  function openDatabase() {
    const id = deployment.home(number)?.database.database_id;
    return id === undefined || deployment.isOffline ? null : restD1(deployment.account, id);
  }
}

/** The homes that have tables; null when home 1 has none. Some lack them only in a check: a deployment creates them first. */
async function homesWithTables(homes: Homes): Promise<Homes | null> {
  const lacking = await homes.map(({ database }) => database.run((_, d1) => missingMigrations(d1)));
  const [first, ...others] = homes.all.filter((_, index) => lacking[index]?.length !== migrationFiles().length);
  return first === homes.first ? new Homes([first, ...others]) : null;
}

/** Creates the first sealing key: the public half goes into every home, the private half into the Worker. */
export function sealingKeyStep(deployment: Deployment, output: Output): Step {
  const { environment } = deployment;
  const makeFirst = {
    action: "create the first, whose private half becomes a Worker secret",
    async make() {
      const homes = deployedHomes(deployment.account, deployment.target);
      const { version, isOurs } = await makeDeployedSealingKey(homes, workerSecrets(environment, output.note));
      if (!isOurs) output.note(`Another administrator made sealing key ${version} at the same moment.`);
    },
  };
  return {
    name: "Sealing key",
    async inspect() {
      const { target } = deployment;
      if (deployment.isOffline || target.homes[0].database.database_id === undefined) return makeFirst;
      const homes = await homesWithTables(deployedHomes(deployment.account, target));
      if (homes === null || (await newestVersion(homes)) === 0) return makeFirst;
      const { newest, older } = await missingSecrets(homes, workerSecrets(environment, output.note));
      if (newest !== null) {
        throw new UserError(
          `The Worker has no secret ${newest}, which D1's newest sealing key needs: restore it if you have a copy (npx wrangler secret put ${newest} --env ${environment}), or without a copy, when its applications are to be given up, run ${ADMIN} sealing-key rotate --env ${environment}. Then ${DEPLOY}.`,
        );
      }
      // The applications that do not need it are served.
      for (const name of older) {
        output.note(
          `The Worker has no secret ${name}, which opens some sealed values of D1: restore it if you have a copy (npx wrangler secret put ${name} --env ${environment}).`,
        );
      }
      if ((await findNewest(homes)).lacking.length === 0) return null;
      return { action: "publish the newest in every home", make: () => publishNewestEverywhere(homes) };
    },
  };
}
