import { setTimeout as wait } from "node:timers/promises";
import { eq } from "drizzle-orm";
import { application, reconciliation } from "../../shared/schema.ts";
import { UserError } from "../errors.ts";
import type { Database } from "../platform/database.ts";
import { findApplication } from "./applications.ts";

const POLL_MILLISECONDS = 500;
/** Rows of one statement: D1 binds at most 100 values. */
const CHUNK_APPLICATIONS = 10;

export interface Reconciled {
  applicationId: string;
  restored: "d1" | "object";
  /** Leases and badges that were looked at, and what had to be changed. */
  checked: number;
  changed: number;
}

/** What was asked of the service. */
export interface ReconciliationRequest {
  /** The mark by which its rows are known, milliseconds. */
  requestedAt: number;
  applications: number;
}

/**
 * Asks the service to reconcile an application, or all of them (null). Asked again, it begins anew.
 *
 * @throws UserError when there is no such application
 */
export async function requestReconciliation(
  database: Database,
  id: string | null,
  restored: "d1" | "object",
): Promise<ReconciliationRequest> {
  const ids = id === null ? await listIds(database) : [(await findApplication(database, id)).id];
  const requestedAt = Date.now();
  // Only an older object has leases of invitations that ended since.
  const step = restored === "object" ? "leases" : "badges";
  const fresh = { restored, requestedAt, step, through: 0, checked: 0, changed: 0, finishedAt: null } as const;
  for (let start = 0; start < ids.length; start += CHUNK_APPLICATIONS) {
    const rows = ids.slice(start, start + CHUNK_APPLICATIONS).map((applicationId) => ({ applicationId, ...fresh }));
    await database.run((orm) =>
      orm.insert(reconciliation).values(rows).onConflictDoUpdate({ target: reconciliation.applicationId, set: fresh }),
    );
  }
  return { requestedAt, applications: ids.length };
}

/**
 * Watches the service's sweep finish a request.
 *
 * @param progress is told what is left and what was looked at, whenever that changes
 * @param patienceMilliseconds how long nothing may change
 * @throws UserError when nothing changes for that long, or when it is asked for again meanwhile
 */
export async function watchReconciliation(
  database: Database,
  { requestedAt, applications }: ReconciliationRequest,
  progress: (state: { open: number; checked: number }) => void,
  patienceMilliseconds: number,
): Promise<Reconciled[]> {
  let last = "";
  let changedAt = Date.now();
  for (;;) {
    const rows = await database.run((orm) =>
      orm.select().from(reconciliation).where(eq(reconciliation.requestedAt, requestedAt)),
    );
    if (rows.length < applications) {
      throw new UserError(
        "Another reconciliation was asked for meanwhile and takes the place of this one: see its result.",
      );
    }
    const open = rows.filter(({ finishedAt }) => finishedAt === null).length;
    if (open === 0) {
      return rows.map(({ applicationId, restored, checked, changed }) => ({
        applicationId,
        restored,
        checked,
        changed,
      }));
    }
    const checked = rows.reduce((sum, row) => sum + row.checked, 0);
    if (`${open} ${checked}` !== last) {
      last = `${open} ${checked}`;
      changedAt = Date.now();
      progress({ open, checked });
    }
    if (Date.now() - changedAt >= patienceMilliseconds) {
      throw new UserError(`${open} applications are not reconciled yet: start the service, then run this again.`);
    }
    await wait(POLL_MILLISECONDS);
  }
}

async function listIds(database: Database): Promise<string[]> {
  const rows = await database.run((orm) => orm.select({ id: application.id }).from(application));
  return rows.map(({ id }) => id);
}
