import { setTimeout as wait } from "node:timers/promises";
import { and, eq, isNull, sql } from "drizzle-orm";
import type * as z from "zod";
import { type ApplicationId, newRandomId } from "../../shared/identifiers.ts";
import { scriptCommand } from "../../shared/schema.ts";
import {
  type AllocatorCommand,
  HOME_RECIPIENT,
  type HomeCommand,
  type HomeResult,
  homeResult,
  type Recipient,
  type ScriptResult,
  scriptResult,
} from "../../shared/script-commands.ts";
import { describeError, UserError } from "../command-line/errors.ts";
import type { OpenedHomes, Session } from "../command-line/session.ts";
import type { Database } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";
import type { Wake } from "../platform/wake.ts";
import { catchInterrupt, type Interrupt } from "./interrupt.ts";
import { createProgress } from "./progress.ts";

const POLL_MILLISECONDS = 300;
/** A wake-up may be lost, and a restore of D1 takes the command away; one that is an hour old the service ignores. */
const RENEWAL_MILLISECONDS = 5000;

/** What a command led to that was carried out. */
export type CommandOutcome = Exclude<ScriptResult, { kind: "failed" }>;
export type HomeOutcome = Exclude<HomeResult, { kind: "failed" }>;

/** Has home 1's scheduler carry out a command. @throws UserError */
export type HomeSubmitter = (command: HomeCommand) => Promise<HomeOutcome>;

/**
 * Has an application's allocator carry out a command (contract section 21), and waits until it has. While the service is not
 * running the command waits, and so does this, with progress on standard error. Carrying one out again does no harm.
 *
 * @throws UserError when the service cannot store it, or when somebody interrupts the wait; like any error, it says if the
 *   command may still be carried out
 */
export async function submitAndWait(
  session: Session,
  applicationId: ApplicationId,
  command: AllocatorCommand,
): Promise<CommandOutcome> {
  const { kind, name = null } = session.actor;
  const row = newRow(applicationId, { command, actor: { kind, name } });
  return parseResult(scriptResult, await untilDone(session, row));
}

/** The same for commands of the register of number ranges (contract section 17). */
export const homeSubmitter =
  (session: Session): HomeSubmitter =>
  async (command) =>
    parseResult(homeResult, await untilDone(session, newRow(HOME_RECIPIENT, { command })));

/** The same where Ctrl-C ends this process, and the service runs. */
export const plainHomeSubmitter =
  ({ homes, wake }: Pick<OpenedHomes, "homes" | "wake">): HomeSubmitter =>
  async (command) => {
    const row = newRow(HOME_RECIPIENT, { command });
    for (;;) {
      const result = await untilCarriedOut(homes.first.database, row, wake, () => {}, NO_INTERRUPT);
      if (result !== null) return parseResult(homeResult, result);
    }
  };

const NO_INTERRUPT: Pick<Interrupt, "isCaught" | "orWait"> = {
  isCaught: () => false,
  async orWait(work) {
    await work;
  },
};

type Row = Pick<typeof scriptCommand.$inferInsert, "id" | "command"> & { recipient: Recipient };

const newRow = (recipient: Recipient, request: object): Row => ({
  id: newRandomId(),
  recipient,
  command: JSON.stringify(request),
});

const databaseOf = (homes: Homes, recipient: Recipient): Database =>
  recipient === HOME_RECIPIENT ? homes.first.database : homes.databaseFor(recipient);

/** If it fails, the service finds the command within a minute. */
function wakeOrNote({ wake, output }: Session): Wake {
  let isNoted = false;
  return (recipient) =>
    wake(recipient).catch((error: unknown) => {
      if (!isNoted) output.note(`The service could not be told, and looks once a minute: ${describeError(error)}`);
      isNoted = true;
    });
}

/** @returns the command's result as JSON */
async function untilDone(session: Session, row: Row): Promise<string> {
  const interrupt = catchInterrupt();
  let failure: unknown = new UserError(
    "Interrupted, and the command is withdrawn. Only if the service was at work on it this moment does it still happen.",
  );
  try {
    const database = databaseOf(session.homes, row.recipient);
    const progress = createProgress(session);
    const waiting = untilCarriedOut(database, row, wakeOrNote(session), progress, interrupt);
    let result = await waiting.catch(async (error: unknown) => {
      // Ctrl-C in a terminal also ends the process behind the database, before this one has heard of it.
      await interrupt.orWait(wait(0));
      if (!interrupt.isCaught()) failure = error;
      return null;
    });
    result ??= await withdraw(session, row, interrupt.isCaught() ? null : failure);
    if (result !== null) return result;
    throw failure;
  } finally {
    interrupt.release();
  }
}

/** @returns the command's result as JSON; null when somebody has interrupted the wait */
async function untilCarriedOut(
  database: Database,
  row: Row,
  wake: Wake,
  progress: () => void,
  interrupt: Pick<Interrupt, "isCaught" | "orWait">,
): Promise<string | null> {
  // By D1's clock: this computer's may be wrong by hours.
  const createdAt = sql`cast(unixepoch('subsec') * 1000 AS INTEGER)`;
  const put = async () => {
    const isOpen = isNull(scriptCommand.result);
    const insertion = { target: scriptCommand.id, set: { createdAt }, setWhere: isOpen };
    await database.run((orm) =>
      orm
        .insert(scriptCommand)
        .values({ ...row, createdAt })
        .onConflictDoUpdate(insertion),
    );
    await wake(row.recipient);
  };
  for (let putAt = Number.NEGATIVE_INFINITY; !interrupt.isCaught(); ) {
    if (performance.now() - putAt >= RENEWAL_MILLISECONDS) {
      putAt = performance.now();
      await put();
    }
    const stored = await readCommand(database, row.id);
    if (stored?.result != null) {
      // A command may name a user; nobody needs it any more. What is left here the service deletes later.
      await database.run((orm) => orm.delete(scriptCommand).where(eq(scriptCommand.id, row.id))).catch(() => undefined);
      return stored.result;
    }
    progress();
    await interrupt.orWait(wait(POLL_MILLISECONDS));
  }
  return null;
}

function parseResult<Result extends { kind: string }>(
  schema: z.ZodType<Result>,
  json: string,
): Exclude<Result, { kind: "failed" }> {
  const result = schema.parse(JSON.parse(json));
  if (hasNotFailed(result)) return result;
  throw new UserError(
    "The service could not carry this out, and nothing was changed: its log says why (group-failed or command-unreadable).",
  );
}

const hasNotFailed = <Result extends { kind: string }>(result: Result): result is Exclude<Result, { kind: "failed" }> =>
  result.kind !== "failed";

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
async function withdraw(session: Session, { id, recipient }: Row, failure: unknown): Promise<string | null> {
  try {
    const { homes, close } = await session.reopen();
    try {
      const database = databaseOf(homes, recipient);
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
