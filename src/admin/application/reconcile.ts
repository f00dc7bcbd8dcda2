import { setTimeout as wait } from "node:timers/promises";
import { type Command, Option } from "commander";
import { eq } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application, reconciliation } from "../../shared/schema.ts";
import { seconds } from "../command-line/arguments.ts";
import { UserError } from "../command-line/errors.ts";
import { counted, shownNumber, tableLines } from "../command-line/output.ts";
import { inSession, type Session } from "../command-line/session.ts";
import { examples } from "../command-line/shell.ts";
import type { Database } from "../platform/database.ts";
import { applicationIdArgument, findApplication } from "./record.ts";

const POLL_MILLISECONDS = 500;

/** Rows in one statement: D1 binds at most 100 values. */
const CHUNK_APPLICATIONS = 10;

/** Adds `reconcile`. */
export function addReconcileCommand(program: Command): void {
  program
    .command("reconcile")
    .argument("[id]", "the application's ID; all applications of all homes when left out", applicationIdArgument)
    .summary("reconcile D1 and the allocators after one was restored")
    .description(
      "Run it after D1 or an application's allocator object was restored to an older state. It asks the running service " +
        "to reconcile the two, and shows its progress. No number is handed out twice even without it; what it fixes is " +
        "invitations whose numbers one of the two forgot, and revocations that D1 forgot. It can be repeated, and interrupting it stops nothing.\n\n" +
        "With --restored d1, invitations that are pending in D1 although their numbers were released since are " +
        "revoked: the numbers belong to those who got them later. Badges that were revoked since are revoked again. With --restored object, the allocator takes over " +
        "every number that D1 knows, and releases those of invitations that have ended.",
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
  { homes, output }: Session,
  id: ApplicationId | undefined,
  { restored, wait: patienceSeconds }: ReconcileOptions,
): Promise<void> {
  const databases = id === undefined ? homes.all.map(({ database }) => database) : [homes.of(id)];
  const requests = await Promise.all(
    databases.map(async (database) => ({
      database,
      request: await requestReconciliation(database, id ?? null, restored),
    })),
  );
  const states = new Map<Database, { open: number; checked: number }>();
  const watching = requests.map(({ database, request }) =>
    watchReconciliation(
      database,
      request,
      (state) => {
        const all = [...states.set(database, state).values()];
        const [open, checked] = [sum(all.map((each) => each.open)), sum(all.map((each) => each.checked))];
        output.note(`Applications to go: ${open}; ${shownNumber(checked)} checked.`);
      },
      patienceSeconds * 1000,
    ),
  );
  // One home whose service is stuck keeps nobody from seeing the others finish.
  await Promise.allSettled(watching);
  const done = (await Promise.all(watching)).flat();
  output.result(done, () => reconciledTable(done));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

function reconciledTable(done: readonly Reconciled[]): string {
  const rows = done.map(({ applicationId, checked, changed }) => [
    applicationId,
    shownNumber(checked),
    shownNumber(changed),
  ]);
  return tableLines(["APPLICATION", "LOOKED AT", "CHANGED"], rows, "There are no applications.");
}

export interface Reconciled {
  applicationId: ApplicationId;
  restored: "d1" | "object";
  /** Leases and badges that were checked, and how many of them had to be changed. */
  checked: number;
  changed: number;
}

/** A request for the service. */
export interface ReconciliationRequest {
  /** Milliseconds; its rows are found by it. */
  requestedAt: number;
  applications: number;
}

/**
 * Asks the service to reconcile an application, or all of them (null). A new request replaces an unfinished one.
 *
 * @throws UserError when there is no such application
 */
export async function requestReconciliation(
  database: Database,
  id: ApplicationId | null,
  restored: "d1" | "object",
): Promise<ReconciliationRequest> {
  const ids = id === null ? await listIds(database) : [(await findApplication(database, id)).id];
  const requestedAt = Date.now();
  // Leases of invitations that have ended exist only in an object that was restored.
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
 * Waits until the service's sweep has finished a request.
 *
 * @param progress is called with what is left and what was checked, whenever that changes
 * @param patienceMilliseconds how long nothing may change
 * @throws UserError when nothing changes for that long, or when another request replaces this one
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
      throw new UserError("Another reconciliation was requested meanwhile and replaces this one: see its result.");
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
      throw new UserError(
        `${counted(open, "application")} ${open === 1 ? "is" : "are"} not reconciled yet: start the service, then run this again.`,
      );
    }
    await wait(POLL_MILLISECONDS);
  }
}

async function listIds(database: Database): Promise<ApplicationId[]> {
  const rows = await database.run((orm) => orm.select({ id: application.id }).from(application));
  return rows.map(({ id }) => id);
}
