import { setTimeout as wait } from "node:timers/promises";
import { type Command, Option } from "commander";
import { eq } from "drizzle-orm";
import { application, reconciliation } from "../shared/schema.ts";
import { findApplication } from "./application-record.ts";
import { seconds } from "./arguments.ts";
import { UserError } from "./errors.ts";
import { shownNumber, tableLines } from "./output.ts";
import type { Database } from "./platform/database.ts";
import { inSession, type Session } from "./session.ts";
import { examples } from "./shell.ts";

const POLL_MILLISECONDS = 500;

/** Rows of one statement: D1 binds at most 100 values. */
const CHUNK_APPLICATIONS = 10;

/** Adds `reconcile`. */
export function addReconcileCommand(program: Command): void {
  program
    .command("reconcile")
    .argument("[id]", "the application; all of them when left out")
    .summary("bring D1 and the allocators in line after one was restored")
    .description(
      "After D1 or an application's allocator object was restored to an older state: asks the running service to bring " +
        "the two in line, and watches it. No number is handed out twice either way; what this mends is invitations " +
        "whose numbers one of the two forgot. It can be repeated, and stopping this command stops nothing.\n\n" +
        "With --restored d1, invitations that D1 calls pending but whose numbers went back since are revoked, and " +
        "their numbers are free for whom they were given to. With --restored object, the allocator takes over every " +
        "number that D1 knows, and gets back those of invitations that have ended.",
    )
    .addOption(
      new Option("--restored <which>", "which of the two is older than it was")
        .choices(["d1", "object"])
        .makeOptionMandatory(),
    )
    .option("--wait <seconds>", "give up when nothing changes for so long", seconds, 150)
    .addHelpText("after", examples("reconcile --restored d1", "reconcile app_… --restored object --env production"))
    .action(inSession(reconcile));
}

interface ReconcileOptions {
  restored: "d1" | "object";
  wait: number;
}

async function reconcile(
  { database, output }: Session,
  id: string | undefined,
  options: ReconcileOptions,
): Promise<void> {
  const request = await requestReconciliation(database, id ?? null, options.restored);
  const done = await watchReconciliation(
    database,
    request,
    ({ open, checked }) => output.note(`Applications to go: ${open}; ${shownNumber(checked)} looked at.`),
    options.wait * 1000,
  );
  output.result(done, () => reconciledTable(done));
}

function reconciledTable(done: readonly Reconciled[]): string {
  const rows = done.map(({ applicationId, checked, changed }) => [
    applicationId,
    shownNumber(checked),
    shownNumber(changed),
  ]);
  return tableLines(["APPLICATION", "LOOKED AT", "CHANGED"], rows, "There are no applications.");
}

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
