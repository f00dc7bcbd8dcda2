import { expectKind } from "../../shared/expect-kind.ts";
import { MAX_SKIPPED_NUMBERS } from "../../shared/limits/allocator-limits.ts";
import { isoTime } from "../../shared/time.ts";
import { wholeNumber } from "../command-line/arguments.ts";
import { command, option } from "../command-line/command.ts";
import { counted, formatNumber, formatTime } from "../command-line/output.ts";
import { formatCommand, type Session } from "../command-line/session.ts";
import { type CommandOutcome, submitAndWait } from "../script-command/submit.ts";
import { APPLICATION, findApplication } from "./record.ts";

type Reconciliation = Extract<CommandOutcome, { kind: "reconciled" }>;

export const reconcileCommand = command("reconcile", {
  arguments: [APPLICATION],
  summary: "compare D1 with an application's allocator, and send what D1 lacks",
  description:
    "After a restore of D1, the service sends the entries that D1 lacks by itself. This command makes it do so now, and " +
    "prints the last entry that each side has.\n\n" +
    "--verify also compares every row on both sides, lists the differences, and fails if there are any. --republish " +
    "replaces the application's rows in D1 with the allocator's. Use it when D1 is older than the allocator's log (the " +
    "service logs database-unknown), or to remove differences. History and webhook events between an old backup and " +
    "the log's beginning are then lost, and the feed's cursors expire.\n\n" +
    "--skip leaves out fresh numbers. Use it only if D1 was restored and the allocator also lost its storage, so that " +
    "numbers of that time are not issued again.",
  options: {
    verify: option("--verify", "compare every row"),
    republish: option("--republish", "replace D1's rows with the allocator's"),
    skip: option("--skip <n>", "how many fresh numbers to leave out", wholeNumber(0, MAX_SKIPPED_NUMBERS)),
  },
  examples: ["", "--verify", "--republish --env production"],
  async work(session, applicationId, { verify = false, republish = false, skip = 0 }) {
    await findApplication(session.homes.databaseFor(applicationId), applicationId);
    const asked = { kind: "reconcile", verify, republish, skip } as const;
    return expectKind(await submitAndWait(session, applicationId, asked), "reconciled");
  },
  json(reconciled, applicationId) {
    const { kind: _, ...found } = reconciled;
    return { applicationId, ...found, logSince: isoTime(found.logSince) };
  },
  text: reconciledText,
  failure: (reconciled, session, id) => failureLine(reconciled, session, id),
});

function failureLine(reconciled: Reconciliation, session: Session, id: string): string | undefined {
  if (reconciled.state === "database-unknown") {
    return `D1 is older than the allocator's log: restore D1 to a later state, or replace its rows with ${formatCommand(session, `reconcile ${id} --republish`)}`;
  }
  if (reconciled.state === "entry-refused") {
    return `D1 refuses the next entry, and the service's log says why (entry-refused): apply the migrations if a table is missing, or replace D1's rows with ${formatCommand(session, `reconcile ${id} --republish`)}`;
  }
  const differences = reconciled.differences?.count ?? 0;
  if (differences === 0) return undefined;
  return `D1 and the allocator differ in ${counted(differences, "row")}: ${formatCommand(session, `reconcile ${id} --republish`)} replaces D1's rows.`;
}

function reconciledText({ state, allocator, d1, logSince, bytes, ...more }: Reconciliation): string {
  const since = logSince === null ? "only the last entry" : `entries since ${formatTime(logSince)}`;
  return [
    state !== "in-sync"
      ? `D1 is at entry ${d1 ?? "none"}${state === "database-unknown" ? ", which the allocator's log does not have" : ""}; the log ends at entry ${allocator}.`
      : `D1 has everything that the allocator has, up to entry ${allocator}.`,
    `The log has ${since}; the allocator stores ${formatNumber(bytes)} bytes.`,
    ...(more.republished
      ? ["D1's rows were replaced with the allocator's; readers of the changes feed start again (410)."]
      : []),
    ...(more.skipped > 0
      ? [`Skipped ${more.skipped === 1 ? "1 fresh number" : `${formatNumber(more.skipped)} fresh numbers`}.`]
      : []),
    ...(more.differences ? differenceLines(more.differences) : []),
  ].join("\n");
}

function differenceLines({ count, first }: NonNullable<Reconciliation["differences"]>): string[] {
  if (count === 0) return ["Every row is the same on both sides."];
  return first.map(
    ({ table, key, problem, columns }) => `${table} ${key}: ${problem}${columns ? ` (${columns.join(", ")})` : ""}`,
  );
}
