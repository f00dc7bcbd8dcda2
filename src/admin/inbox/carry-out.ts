import { setTimeout as wait } from "node:timers/promises";
import { and, eq, isNull, sql } from "drizzle-orm";
import { type ApplicationId, newRandomId } from "../../shared/identifiers.ts";
import { type InboxCommand, type InboxResult, inboxResult } from "../../shared/inbox.ts";
import { inbox } from "../../shared/schema.ts";
import { UserError } from "../command-line/errors.ts";
import type { Session } from "../command-line/session.ts";
import type { Database } from "../platform/database.ts";
import { catchInterrupt } from "./interrupt.ts";
import { createProgress } from "./progress.ts";

const POLL_MILLISECONDS = 300;

/** What a command that was carried out leads to. */
export type Carried = Exclude<InboxResult, { kind: "failed" }>;

/**
 * Has the service carry out a command (contract section 21), and waits until it has. While the service is not running the
 * command waits, and so does this, with progress on standard error. Carrying one out again does no harm.
 *
 * @throws UserError when the service cannot store it, or when somebody interrupts the wait
 */
export async function carryOut(
  session: Session,
  applicationId: ApplicationId,
  command: InboxCommand,
): Promise<Carried> {
  const database = session.homes.of(applicationId);
  const id = newRandomId();
  const { kind, name = null } = session.actor;
  const row = {
    ...{ id, applicationId, command: JSON.stringify({ command, actor: { kind, name } }) },
    // By D1's clock: this computer's may be wrong by hours.
    createdAt: sql`cast(unixepoch('subsec') * 1000 AS INTEGER)`,
  };
  const put = () => database.run((orm) => orm.insert(inbox).values(row).onConflictDoNothing());
  const progress = createProgress(session);
  const interrupt = catchInterrupt();
  try {
    await put();
    for (;;) {
      const stored = await readCommand(database, id);
      if (stored?.result != null) {
        // A command may name a user; nobody needs it any more.
        await database.run((orm) => orm.delete(inbox).where(eq(inbox.id, id)));
        return expectCarried(stored.result);
      }
      // D1 was restored meanwhile.
      if (stored === undefined) await put();
      progress();
      await interrupt.orWait(wait(POLL_MILLISECONDS));
      if (interrupt.isCaught()) return await withdraw(session, applicationId, id);
    }
  } catch (error) {
    // Ctrl-C in a terminal also ends the process behind the database, before this one has heard of it.
    await interrupt.orWait(wait(0));
    if (!interrupt.isCaught() || error instanceof UserError) throw error;
    return await withdraw(session, applicationId, id);
  } finally {
    interrupt.release();
  }
}

function expectCarried(json: string): Carried {
  const result = inboxResult.parse(JSON.parse(json));
  if (result.kind !== "failed") return result;
  throw new UserError("The service could not store this, and nothing was changed: its log says why (entry-refused).");
}

async function readCommand(database: Database, id: string): Promise<{ result: string | null } | undefined> {
  const [row] = await database.run((orm) => orm.select({ result: inbox.result }).from(inbox).where(eq(inbox.id, id)));
  return row;
}

/**
 * Takes a command back that nobody has carried out.
 *
 * @returns the result, if it has one
 * @throws UserError that says whether it may still be carried out
 */
async function withdraw(session: Session, applicationId: ApplicationId, id: string): Promise<Carried> {
  try {
    const { homes, close } = await session.reopen();
    try {
      const database = homes.of(applicationId);
      const [withdrawn] = await database.run((orm) =>
        orm
          .delete(inbox)
          .where(and(eq(inbox.id, id), isNull(inbox.result)))
          .returning({ id: inbox.id }),
      );
      const row = withdrawn ? undefined : await readCommand(database, id);
      if (row?.result != null) return expectCarried(row.result);
    } finally {
      await close();
    }
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError("Interrupted. The command waits for the service, which may still carry it out.", {
      cause: error,
    });
  }
  throw new UserError(
    "Interrupted, and the command is withdrawn. Only if the service was at work on it this moment does it still happen.",
  );
}
