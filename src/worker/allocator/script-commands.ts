import type { AuditContext } from "../../shared/actor.ts";
import { newAlias, type UserDigest } from "../../shared/identifiers.ts";
import { CALL_DEADLINE_MILLISECONDS, SCRIPT_COMMANDS_PER_READ } from "../../shared/limits/allocator-limits.ts";
import {
  type AllocatorCommand,
  type AllocatorRequest,
  allocatorRequest,
  type Reconciliation,
  type ScriptResult,
} from "../../shared/script-commands.ts";
import { hashUserId } from "../applications/derived-ids.ts";
import { log as logLine } from "../log.ts";
import { findApplication } from "../storage/applications.ts";
import { SELECT_OPEN, storeResult } from "../storage/command-rows.ts";
import type { Call, Command } from "./commands.ts";
import type { Engine, EngineParts } from "./engine.ts";
import { reconcile } from "./reconcile.ts";
import { SELECT_HEAD } from "./replica/head.ts";

/**
 * Carries out the script's open commands, in their order (contract section 21). In a restored D1, commands look open that were
 * carried out. Once D1 has the whole log again, it has their results, too.
 */
export async function carryOutCommands(engine: Engine, parts: EngineParts): Promise<void> {
  const { applicationId } = parts;
  const rows = await readOpen(engine, parts);
  for (const { id, command } of rows) {
    const request = allocatorRequest.safeParse(JSON.parse(command)).data;
    if (request) {
      await carryOut(engine, parts, id, request);
    } else {
      logLine("error", { event: "command-unreadable", application: applicationId, command: id });
      await store(parts, id, { kind: "failed" });
    }
  }
}

/** Maximum of reads in one wake-up. A read is repeated if D1 may have been restored meanwhile. */
const MAX_READS = 3;

/**
 * D1's open commands. In a restored D1, commands that were carried out look open again. So D1's head is read together with them; if
 * it went back, D1 first gets the entries that it lacks.
 *
 * @throws Unavailable
 */
async function readOpen(engine: Engine, { applicationId, log, openDatabase }: EngineParts) {
  for (let tries = 0; tries < MAX_READS; tries++) {
    await engine.settle();
    const before = engine.replicator.position;
    const [heads, open] = await openDatabase().atPrimary((session) =>
      session.batch([
        SELECT_HEAD.bind(session, { applicationId }),
        SELECT_OPEN.bind(session, { recipient: applicationId, limit: SCRIPT_COMMANDS_PER_READ }),
      ]),
    );
    const rows = SELECT_OPEN.rows(open);
    // A D1 whose head is not in the log may show commands as open that were carried out, and one that refuses an entry
    // gets no result. Only a reconciliation helps.
    if (engine.replicator.position.kind === "not-in-log" || engine.replicator.isRefused) {
      return rows.filter(({ command }) => isReconciliation(command));
    }
    const [head] = SELECT_HEAD.rows(heads);
    if (rows.length === 0) return rows;
    if (before.kind === "following" && head && head.sequence >= before.at.sequence && log.has(head)) return rows;
    engine.doubt();
  }
  // They wait for the next wake-up.
  return [];
}

const isReconciliation = (command: string): boolean =>
  allocatorRequest.safeParse(JSON.parse(command)).data?.command.kind === "reconcile";

async function carryOut(engine: Engine, parts: EngineParts, id: string, request: AllocatorRequest): Promise<void> {
  const { command, actor } = request;
  const audit: AuditContext = { actor };
  if (command.kind === "reconcile") {
    const found = await reconcile(engine, parts, command);
    if (found.state !== "in-sync" || command.skip === 0) {
      await store(parts, id, found);
      return;
    }
    // The skip comes last, and its entry stores the result: a repeated command skips nothing more.
    await submit(engine, parts, { id, audit, command: await toSkip(parts, command.skip, found) });
    return;
  }
  if (command.kind === "show-user") {
    const { userId } = command;
    const blocked = parts.tables.isBlocked(userId, await digestOf(parts, userId));
    await store(parts, id, { kind: "user-shown", userId, blocked });
    return;
  }
  await submit(engine, parts, { id, audit, command: await toCommand(parts, command) });
}

async function submit(engine: Engine, parts: EngineParts, call: Omit<Call, "until">): Promise<void> {
  const { outcome } = await engine.submit({ ...call, until: parts.now() + CALL_DEADLINE_MILLISECONDS }, call.id);
  if (outcome.kind === "failed") await store(parts, call.id, { kind: "failed" });
}

/** Stores a result that no entry stores. A superseded instance, whose rows are old, fails at the local write. */
async function store({ tables, openDatabase }: EngineParts, id: string, result: ScriptResult): Promise<void> {
  tables.touch();
  await storeResult(openDatabase(), id, result);
}

async function toSkip(parts: EngineParts, numbers: number, found: Reconciliation): Promise<Command> {
  const { firstNumber: first, lastNumber: last } = await requireApplication(parts);
  return { kind: "skip", numbers, range: { first, last }, found };
}

async function toCommand(
  parts: EngineParts,
  command: Exclude<AllocatorCommand, { kind: "reconcile" | "show-user" }>,
): Promise<Command> {
  const anybody = { ifChange: null, ownedBy: null };
  switch (command.kind) {
    case "suspend":
    case "resume":
    case "revoke":
    case "rebind":
      return { kind: "transition", number: command.number, transition: { kind: command.kind }, ...anybody };
    case "reschedule": {
      const { number, expiresAt } = command;
      return { kind: "transition", number, transition: { kind: "reschedule", expiresAt }, ...anybody };
    }
    case "block":
    case "unblock":
    case "erase": {
      const { kind, userId } = command;
      const user = { userId, userDigest: await digestOf(parts, userId) };
      return kind === "erase" ? { kind, ...user, alias: newAlias() } : { kind, ...user };
    }
  }
}

async function digestOf(parts: EngineParts, userId: string): Promise<UserDigest> {
  const { sealedRootKey: sealed, sealingVersion } = await requireApplication(parts);
  return hashUserId(parts.unsealedKeys, { id: parts.applicationId, rootKey: { sealed, sealingVersion } }, userId);
}

async function requireApplication({ applicationId, openDatabase }: EngineParts) {
  const row = await findApplication(openDatabase(), applicationId);
  if (!row) throw new Error("the application is not in D1");
  return row;
}
