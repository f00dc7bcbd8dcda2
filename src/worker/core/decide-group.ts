import type { ApplicationId } from "../../shared/identifiers.ts";
import { MAX_GROUP_CHARACTERS } from "../../shared/limits.ts";
import type { Database } from "../storage/database.ts";
import { type GroupRows, readRevokedBy } from "../storage/group-reads.ts";
import type { Answers } from "./answers.ts";
import type { Outcome } from "./commands.ts";
import type { Again, Revoked } from "./decide/block.ts";
import { decide } from "./decide/decide.ts";
import type { Draft } from "./decide/draft.ts";
import { expireInvitations } from "./decide/due.ts";
import { countFree, countWanted } from "./decide/numbers.ts";
import type { Entry } from "./entry.ts";
import { inboxResultOf } from "./inbox-result.ts";
import { userOf, type Waiting } from "./queue.ts";

/** What a group has decided for a call. */
export interface Decided {
  waiting: Waiting;
  outcome: Outcome | Again;
  /** Badges that it erased. */
  erased: number;
}

interface Sources {
  db: Database;
  applicationId: ApplicationId;
  answers: Answers;
}

/** @returns as many calls as fit into one entry, and as there are numbers for; none when freed numbers must be read first */
export async function decideGroup(
  draft: Draft,
  calls: readonly Waiting[],
  rows: GroupRows,
  { db, applicationId, answers }: Sources,
): Promise<Decided[]> {
  const decided: Decided[] = [];
  if (rows.isDueRead) expireInvitations(draft);
  for (const waiting of calls) {
    if (decided.length > 0 && draft.size > MAX_GROUP_CHARACTERS) break;
    const known = waiting.call.until === null ? undefined : answers.outcomeOf(waiting.call.id);
    if (known) {
      decided.push({ waiting, outcome: known, erased: 0 });
      continue;
    }
    // A restoration, or a lost result, may have shown it as open.
    if (waiting.inboxId !== null && !rows.openCommands.includes(waiting.inboxId)) {
      decided.push({ waiting, outcome: { kind: "recorded" }, erased: 0 });
      continue;
    }
    // Another group reads further numbers; but one that has read some decides at least one call.
    const isPutOff = decided.length > 0 || !rows.isFreedRead;
    if (isPutOff && lacksNumbers(draft, waiting, rows)) break;
    const wasAnswered = answers.hasBlockOf(userOf(waiting.call) ?? "");
    const { outcome, erased = 0 } = decide(draft, waiting, rows, wasAnswered);
    decided.push({ waiting, outcome: await complete(db, applicationId, outcome), erased });
  }
  return decided;
}

/** Whether the call may take more numbers than are left of those that were read, while there may be others. */
function lacksNumbers(draft: Draft, { call: { command } }: Waiting, { isMoreFreed }: GroupRows): boolean {
  if (!isMoreFreed || (command.kind !== "badge" && command.kind !== "invite")) return false;
  if (command.kind === "badge" && draft.badgeOf(command.device, command.userId)) return false;
  return countWanted(command) > countFree(draft, command.rules);
}

/** The numbers that earlier groups of a block revoked are in D1. */
async function complete(
  db: Database,
  applicationId: ApplicationId,
  outcome: Outcome | Again | Revoked,
): Promise<Outcome | Again> {
  if (outcome.kind !== "revoked-by") return outcome;
  const { block, numbers } = outcome;
  const earlier = await readRevokedBy(db, applicationId, block);
  return { kind: "user", userId: block.userId, numbers: [...earlier, ...numbers] };
}

/** What an entry has for those who asked. @param now milliseconds */
export function toldBy(
  decided: readonly Decided[],
  { historyThrough, eventsThrough }: GroupRows,
  now: number,
): Pick<Entry, "calls" | "results" | "erasures"> {
  const finished = decided.flatMap(({ waiting, outcome }) => (outcome.kind === "again" ? [] : [{ waiting, outcome }]));
  return {
    calls: finished.flatMap(({ waiting: { call }, outcome }) =>
      call.until === null ? [] : [{ id: call.id, outcome }],
    ),
    results: finished.flatMap(({ waiting: { inboxId }, outcome }) =>
      inboxId === null || outcome.kind === "recorded"
        ? []
        : [{ id: inboxId, result: JSON.stringify(inboxResultOf(outcome, now)) }],
    ),
    erasures: decided.flatMap(({ waiting: { call, eventsAfter }, outcome }) => {
      if (call.command.kind !== "erase" || outcome.kind === "recorded") return [];
      const { userId, alias } = call.command;
      return [{ userId, alias, historyThrough, eventsAfter, eventsThrough }];
    }),
  };
}
