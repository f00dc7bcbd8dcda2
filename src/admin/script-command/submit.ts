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
import { catchInterrupt, type Interrupt } from "../command-line/interrupt.ts";
import type { OpenedHomes, Session } from "../command-line/session.ts";
import type { Database } from "../platform/database.ts";
import type { Homes } from "../platform/homes.ts";
import type { Wake } from "../platform/wake.ts";
import { createProgress } from "./progress.ts";

const POLL_MILLISECONDS = 300;
/** After a long wait, polling slows down: the platform allows each of its users 1,200 calls in five minutes. */
const SLOW_POLL_MILLISECONDS = 2000;
const SLOW_AFTER_MILLISECONDS = 30_000;
/** How long a running step may take to end after Ctrl-C. */
const GRACE_MILLISECONDS = 2000;
/** Repeats cover a lost wake-up and a restore of D1, which deletes the command. The service ignores one that is an hour old. */
const RENEWAL_MILLISECONDS = 5000;

const MAY_COME_BACK =
  "Interrupted, and the command is withdrawn. But D1 has not responded to an earlier step, so the command may still be carried out.";
const LEFT_BEHIND = "The command waits for the service, which may still carry it out.";

/** The result of a command that was carried out. */
export type CommandOutcome = Exclude<ScriptResult, { kind: "failed" }>;
export type HomeOutcome = Exclude<HomeResult, { kind: "failed" }>;

/** Makes home 1's scheduler carry out a command. @throws UserError */
export type HomeSubmitter = (command: HomeCommand) => Promise<HomeOutcome>;

/**
 * Makes an application's allocator carry out a command, and waits for the result, with progress on standard error. While the
 * service is not running, the command waits for it. Carrying out a command twice does no harm.
 *
 * @throws UserError when the service cannot carry it out, or when the wait is interrupted; the message says if the command may
 *   still be carried out
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

/** The same for commands of the register of number ranges. */
export const homeSubmitter =
  (session: Session): HomeSubmitter =>
  async (command) =>
    parseResult(homeResult, await untilDone(session, newRow(HOME_RECIPIENT, { command })));

/** The same for a process that Ctrl-C ends, with a running service. */
export const plainHomeSubmitter =
  ({ homes, wake }: Pick<OpenedHomes, "homes" | "wake">): HomeSubmitter =>
  async (command) => {
    const row = newRow(HOME_RECIPIENT, { command });
    for (;;) {
      const result = await untilCarriedOut(homes.first.database, row, wake, () => {}, NO_INTERRUPT);
      if (result !== null) return parseResult(homeResult, result);
    }
  };

const NO_INTERRUPT: Pick<Interrupt, "isCaught" | "raceWith"> = {
  isCaught: () => false,
  async raceWith(work) {
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

/** If waking fails, the service finds the command within a minute. */
function wakeOrNote({ wake, output }: Session): Wake {
  let isNoted = false;
  return (recipient) =>
    wake(recipient).catch((error: unknown) => {
      if (!isNoted)
        output.note(
          `The service could not be notified, but it looks for commands once a minute: ${describeError(error)}`,
        );
      isNoted = true;
    });
}

/** @returns the command's result as JSON */
async function untilDone(session: Session, row: Row): Promise<string> {
  const interrupt = catchInterrupt(LEFT_BEHIND);
  let failure: unknown = new UserError(
    "Interrupted, and the command is withdrawn. It still takes effect only if the service was carrying it out at this moment.",
  );
  try {
    const database = databaseOf(session.homes, row.recipient);
    const progress = createProgress(session);
    const waiting = untilCarriedOut(database, row, wakeOrNote(session), progress, interrupt);
    const done = waiting.catch(async (error: unknown) => {
      // Ctrl-C in a terminal also ends the database's process, which may fail before this process gets the signal.
      await interrupt.raceWith(wait(0));
      if (!interrupt.isCaught()) failure = error;
      return null;
    });
    await interrupt.raceWith(done);
    // Undefined: a step hangs.
    const found = await (interrupt.isCaught() ? Promise.race([done, wait(GRACE_MILLISECONDS, undefined)]) : done);
    if (found === undefined) failure = new UserError(MAY_COME_BACK);
    const result = found ?? (await withdraw(session, row, interrupt.isCaught() ? null : failure));
    if (result !== null) return result;
    throw failure;
  } finally {
    interrupt.release();
  }
}

/** @returns the command's result as JSON; null when the wait was interrupted */
async function untilCarriedOut(
  database: Database,
  row: Row,
  wake: Wake,
  progress: () => void,
  interrupt: Pick<Interrupt, "isCaught" | "raceWith">,
): Promise<string | null> {
  // D1's time: this computer's clock may be wrong by hours.
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
  const startedAt = performance.now();
  for (let putAt = Number.NEGATIVE_INFINITY; !interrupt.isCaught(); ) {
    if (performance.now() - putAt >= RENEWAL_MILLISECONDS) {
      putAt = performance.now();
      await put();
    }
    const stored = await readCommand(database, row.id);
    if (stored?.result != null) {
      // Deleted at once, because a command may name a user. If this fails, the service deletes it later.
      const deletion = database.run((orm) => orm.delete(scriptCommand).where(eq(scriptCommand.id, row.id)));
      await interrupt.raceWith(deletion.catch(() => undefined));
      return stored.result;
    }
    progress();
    const isSlow = performance.now() - startedAt >= SLOW_AFTER_MILLISECONDS;
    await interrupt.raceWith(wait(isSlow ? SLOW_POLL_MILLISECONDS : POLL_MILLISECONDS));
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
 * Withdraws a command that was not carried out yet.
 *
 * @param failure why; null when the wait was interrupted
 * @returns the command's result, if it has one already; null when it is withdrawn
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
    throw new UserError(`${reason} ${LEFT_BEHIND}`, { cause });
  }
}
