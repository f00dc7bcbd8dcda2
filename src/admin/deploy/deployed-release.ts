import { sql } from "drizzle-orm";
import { deployment as deploymentTable } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { UserError } from "../command-line/errors.ts";
import { DEPLOY } from "../command-line/shell.ts";
import { deployedHomes } from "../platform/d1.ts";
import type { Database } from "../platform/database.ts";
import { type Containment, checkoutCommit, containsCommit } from "../platform/git.ts";
import type { Deployment } from "./deployment.ts";
import { RELEASE_NUMBER } from "./release-number.ts";
import type { Step } from "./steps.ts";

/** What is deployed, as home 1's D1 records it. */
export type DeployedRelease = typeof deploymentTable.$inferSelect;

/** @returns undefined before the first deployment, and when home 1 has no tables yet */
export async function readDeployedRelease(database: Database): Promise<DeployedRelease | undefined> {
  try {
    const [row] = await database.run((orm) => orm.select().from(deploymentTable).limit(1));
    return row;
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    if (cause instanceof Error && cause.message.includes("no such table")) return undefined;
    throw error;
  }
}

const partsOf = (release: string): number[] => release.split(".").map(Number);

/** Negative when `one` is older. */
export function compareReleases(one: string, other: string): number {
  const [ours, theirs] = [partsOf(one), partsOf(other)];
  const index = ours.findIndex((part, at) => part !== theirs[at]);
  return index === -1 ? 0 : (ours[index] ?? 0) - (theirs[index] ?? 0);
}

/**
 * Why this checkout must not replace what is deployed, as the end of a sentence that begins "This checkout"; null when it may.
 *
 * @param own the release of this checkout
 * @param containment whether the history of this checkout contains the deployed commit
 */
export function reasonToRefuse(deployed: DeployedRelease, own: string, containment: Containment): string | null {
  if (compareReleases(own, deployed.release) < 0) return "is older than what is deployed";
  if (containment === "older") return "is older than what is deployed";
  if (containment === "foreign") return "does not contain the commit that is deployed";
  return null;
}

/** Why this checkout must not replace what is deployed, with both releases; null when it may. */
async function findRefusal(deployment: Deployment): Promise<{ reason: string; both: string } | null> {
  const deployed = await deployedOf(deployment);
  const reason = deployed ? reasonToRefuse(deployed, RELEASE_NUMBER, containsCommit(deployed.commit)) : null;
  if (!deployed || reason === null) return null;
  const own = formatRelease(RELEASE_NUMBER, checkoutCommit());
  const other = formatRelease(deployed.release, deployed.commit);
  return { reason, both: `it is ${own}, and ${other} was deployed at ${isoTime(deployed.deployedAt)}` };
}

const olderCheckout = ({ reason, both }: { reason: string; both: string }): UserError =>
  new UserError(
    `This checkout ${reason}: ${both}. Get the newer one (git pull). To go back, see "A new release" in docs/operations.md; ${DEPLOY} -- --force insists.`,
  );

const formatRelease = (release: string, commit: string | null): string =>
  commit === null ? release : `${release} (commit ${commit.slice(0, 12)})`;

/**
 * Refuses a checkout that is older than what is deployed, or does not contain it: its tables, entries and wrangler.toml may
 * be older than what the deployed Worker has written.
 *
 * @param isForced whether to go on anyway
 */
export function releaseStep(deployment: Deployment, isForced: boolean): Step {
  return {
    name: `Release ${RELEASE_NUMBER} is not older than what is deployed`,
    async inspect() {
      const refusal = await findRefusal(deployment);
      if (refusal === null) return null;
      if (!isForced) throw olderCheckout(refusal);
      const { reason, both } = refusal;
      return { action: `go on because of --force, although this checkout ${reason} (${both})`, make: async () => {} };
    },
  };
}

/**
 * Records the release in D1, before the upload: from then on an older checkout is refused. It is also refused here, because
 * wrangler.toml may not have named home 1's database before, or another computer may have deployed meanwhile.
 */
export function recordReleaseStep(deployment: Deployment, isForced: boolean): Step {
  return {
    name: "Release in D1",
    async inspect() {
      const refusal = isForced ? null : await findRefusal(deployment);
      if (refusal !== null) throw olderCheckout(refusal);
      const commit = checkoutCommit();
      const deployed = await deployedOf(deployment);
      if (deployed?.release === RELEASE_NUMBER && deployed.commit === commit) return null;
      return {
        action: `record ${formatRelease(RELEASE_NUMBER, commit)}`,
        async make() {
          const { database: first } = deployedHomes(deployment.account, deployment.target).first;
          const row = { release: RELEASE_NUMBER, commit, deployedAt: D1_NOW };
          await first.run((orm) =>
            orm
              .insert(deploymentTable)
              .values({ id: 1, ...row })
              .onConflictDoUpdate({ target: deploymentTable.id, set: row }),
          );
        },
      };
    },
  };
}

/** The time in D1: this computer's clock may be wrong by hours. */
const D1_NOW = sql`cast(unixepoch('subsec') * 1000 AS INTEGER)`;

/** What home 1's D1 records; undefined before it is created, and without an account. */
async function deployedOf(deployment: Deployment): Promise<DeployedRelease | undefined> {
  const exists = !deployment.isOffline && deployment.home(1)?.database.database_id !== undefined;
  return exists ? readDeployedRelease(deployedHomes(deployment.account, deployment.target).first.database) : undefined;
}
