import { setTimeout as wait } from "node:timers/promises";
import { and, eq, isNull, sql } from "drizzle-orm";
import { type ApplicationId, newRandomId } from "../../shared/identifiers.ts";
import { scriptCommand } from "../../shared/schema.ts";
import { type AllocatorCommand, type ScriptResult, scriptResult } from "../../shared/script-commands.ts";
import { describeError, UserError } from "../command-line/errors.ts";
import type { Session } from "../command-line/session.ts";
import type { Database } from "../platform/database.ts";
import { catchInterrupt } from "./interrupt.ts";
import { createProgress } from "./progress.ts";

const POLL_MILLISECONDS = 300;

/** What a command that was carried out leads to. */
export type Carried = Exclude<ScriptResult, { kind: "failed" }>;

/**
 * Has the service carry out a command (contract section 21), and waits until it has. While the service is not running the
 * command waits, and so does this, with progress on standard error. Carrying one out again does no harm.
 *
 * @throws UserError when the service cannot store it, or when somebody interrupts the wait; like any error, it says if the
 *   command may still be carried out
 */
export async function carryOut(
  session: Session,
  applicationId: ApplicationId,
  command: AllocatorCommand,
): Promise<Carried> {
  const database = session.homes.of(applicationId);
  const id = newRandomId();
  const { kind, name = null } = session.actor;
  const row = { id, recipient: applicationId, command: JSON.stringify({ command, actor: { kind, name } }) };
  const interrupt = catchInterrupt();
  let failure: unknown = new UserError(
    "Interrupted, and the command is withdrawn. Only if the service was at work on it this moment does it still happen.",
  );
  try {
    let result = await untilCarriedOut(database, row, createProgress(session), interrupt).catch(
      async (error: unknown) => {
        // Ctrl-C in a terminal also ends the process behind the database, before this one has heard of it.
        await interrupt.orWait(wait(0));
        if (!interrupt.isCaught()) failure = error;
        return null;
      },
    );
    result ??= await withdraw(session, row, interrupt.isCaught() ? null : failure);
    if (result !== null) return expectCarried(result);
    throw failure;
  } finally {
    interrupt.release();
  }
}

/** @returns the command's result as JSON; null when somebody has interrupted the wait */
async function untilCarriedOut(
  database: Database,
  row: Pick<typeof scriptCommand.$inferInsert, "id" | "recipient" | "command">,
  progress: () => void,
  interrupt: ReturnType<typeof catchInterrupt>,
): Promise<string | null> {
  // By D1's clock: this computer's may be wrong by hours.
  const values = { ...row, createdAt: sql`cast(unixepoch('subsec') * 1000 AS INTEGER)` };
  const put = () => database.run((orm) => orm.insert(scriptCommand).values(values).onConflictDoNothing());
  await put();
  while (!interrupt.isCaught()) {
    const stored = await readCommand(database, row.id);
    if (stored?.result != null) {
      // A command may name a user; nobody needs it any more. What is left here the service deletes later.
      await database.run((orm) => orm.delete(scriptCommand).where(eq(scriptCommand.id, row.id))).catch(() => undefined);
      return stored.result;
    }
    // D1 was restored meanwhile.
    if (stored === undefined) await put();
    progress();
    await interrupt.orWait(wait(POLL_MILLISECONDS));
  }
  return null;
}

function expectCarried(json: string): Carried {
  const result = scriptResult.parse(JSON.parse(json));
  if (result.kind !== "failed") return result;
  throw new UserError("The service could not store this, and nothing was changed: its log says why (group-failed).");
}

async function readCommand(database: Database, id: string): Promise<{ result: string | null } | undefined> {
  const [row] = await database.run((orm) =>
    orm.select({ result: scriptCommand.result }).from(scriptCommand).where(eq(scriptCommand.id, id)),
  );
  return row;
}

/**
 * Takes a command back that nobody has carried out.
 *
 * @param failure why, unless somebody has interrupted it
 * @returns its result, if it has one; null: it is withdrawn
 * @throws UserError when it may still be carried out
 */
async function withdraw(
  session: Session,
  { id, recipient: applicationId }: { id: string; recipient: ApplicationId },
  failure: unknown,
): Promise<string | null> {
  try {
    const { homes, close } = await session.reopen();
    try {
      const database = homes.of(applicationId);
      const isOpen = and(eq(scriptCommand.id, id), isNull(scriptCommand.result));
      const [withdrawn] = await database.run((orm) =>
        orm.delete(scriptCommand).where(isOpen).returning({ id: scriptCommand.id }),
      );
      const stored = withdrawn ? undefined : await readCommand(database, id);
      return stored?.result ?? null;
    } finally {
      await close();
    }
  } catch (cause) {
    const reason = failure === null ? "Interrupted." : describeError(failure);
    throw new UserError(`${reason} The command waits for the service, which may still carry it out.`, { cause });
  }
}
