import * as z from "zod";
import type { Deployment } from "./deployment.ts";
import type { Step } from "./steps.ts";

const replicated = z.object({ read_replication: z.object({ mode: z.string() }).nullish() });

export type ReplicationMode = "auto" | "disabled";

/** How a home's database is replicated; null when there is no database, or the platform does not say. */
export async function readReplication(deployment: Deployment, number: number): Promise<string | null> {
  const id = deployment.home(number)?.database.database_id;
  if (id === undefined) return null;
  return (await deployment.find(replicated, `/d1/database/${id}`))?.read_replication?.mode ?? null;
}

/**
 * D1's read replication, which is free. Without it every read goes to the primary, however far the phone is (contract
 * section 16).
 */
export function replicationStep(deployment: Deployment, number: number, wanted: ReplicationMode): Step {
  return {
    name: `Read replication of home ${number} (${wanted})`,
    async inspect() {
      const mode = (await readReplication(deployment, number)) ?? "disabled";
      if (mode === wanted) return null;
      return {
        action: wanted === "auto" ? "switch it on" : "switch it off",
        async make() {
          const path = `/d1/database/${deployment.home(number)?.database.database_id}`;
          const body = { read_replication: { mode: wanted } };
          await deployment.account.call(z.unknown(), { method: "PUT", path, body });
        },
      };
    },
  };
}
