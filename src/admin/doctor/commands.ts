import { seconds, serviceAddress } from "../command-line/arguments.ts";
import { command, option } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { bold, plain } from "../command-line/output.ts";
import type { Session } from "../command-line/session.ts";
import { DEPLOY } from "../command-line/shell.ts";
import { addressesOf } from "../deploy/address.ts";
import { openDeployment } from "../deploy/deployment.ts";
import { readTarget } from "../platform/target.ts";
import { findLocalOrigin } from "../platform/wake.ts";
import { loadWrangler } from "../platform/wrangler.ts";
import { type Finding, runChecks } from "./checks.ts";
import { dataChecks } from "./data-checks.ts";
import { firstDayChecks, TICK_WAIT_SECONDS } from "./first-day.ts";
import { localKeyCheck, logSampleCheck, platformChecks, serviceChecks } from "./service-checks.ts";

/** The default address of `npm start`. */
const LOCAL_ADDRESS = "http://localhost:8787";

export const doctorCommand = command("doctor", {
  summary: "check the service and say what to do",
  description:
    "Checks the service and what it depends on: health, migrations, sealing keys, the sweep, clocks, overdue deliveries, " +
    "how full ranges, homes and logs are, the new badges of this hour, PUBLIC_URL, status lists and LOG_SAMPLE. With --env, " +
    "it also checks the platform's queues, secrets and read replication, and changes nothing. Without --env, it first " +
    "creates the local databases if they are missing. The exit code is 1 if a check finds an error.\n\n" +
    "--first-day checks six facts that the platform's documentation leaves open, or that may not hold yet in a new account.",
  options: {
    address: option("--address <url>", "check the service here, instead of at its own addresses", serviceAddress),
    firstDay: option("--first-day", "check what only a real account can show, in its first hour; needs --env"),
    wait: option("--wait <seconds>", "with --first-day: how long cron may take", seconds, TICK_WAIT_SECONDS),
  },
  examples: ["", "--env production", "--first-day --env production"],
  async work(session, { address, firstDay = false, wait }) {
    const findings = firstDay ? await runFirstDay(session, wait) : await runChecks(await checksOf(session, address));
    const hasError = findings.some(({ state }) => state === "error");
    if (hasError) process.exitCode = 1;
    return { healthy: !hasError, findings };
  },
  text: ({ findings }) => findings.map(findingLines).join("\n"),
});

async function checksOf(session: Session, given: string | undefined) {
  const wrangler = loadWrangler();
  if ("local" in session.backend) {
    const { local } = session.backend;
    const { publicUrl, logSample } = readTarget(wrangler, undefined);
    return [
      ...serviceChecks(session, async () => [given ?? findLocalOrigin(local) ?? LOCAL_ADDRESS], publicUrl),
      logSampleCheck(logSample),
      ...dataChecks(session, "npm start"),
      localKeyCheck(session, local),
    ];
  }
  const deployment = await openDeployment(wrangler, session.backend.environment);
  return [
    ...serviceChecks(session, () => addressesOf(deployment, given), deployment.target.publicUrl),
    logSampleCheck(deployment.target.logSample),
    ...dataChecks(session, DEPLOY),
    ...platformChecks(session, deployment),
  ];
}

/** Runs them one after the other: the tick that one check triggers would mislead another. */
async function runFirstDay(session: Session, waitSeconds: number): Promise<Finding[]> {
  if ("local" in session.backend)
    throw new UserError("--first-day is for a deployed environment: add --env production.");
  const deployment = await openDeployment(loadWrangler(), session.backend.environment);
  const findings: Finding[] = [];
  for (const check of firstDayChecks(session, deployment, waitSeconds)) findings.push(...(await runChecks([check])));
  return findings;
}

const MARKS: Readonly<Record<Finding["state"], string>> = { ok: "✓", warning: "!", error: "✗" };

function findingLines({ check, state, detail, advice }: Finding): string {
  const line = `${MARKS[state]} ${bold(check)}: ${plain(detail)}`;
  return advice === null ? line : `${line}\n    ${plain(advice)}`;
}
