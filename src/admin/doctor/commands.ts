import type { Command } from "commander";
import { bold, plain } from "../command-line/output.ts";
import { inSession, type Session } from "../command-line/session.ts";
import { DEPLOY, examples } from "../command-line/shell.ts";
import { addressOf } from "../deploy/address.ts";
import { openDeployment } from "../deploy/deployment.ts";
import { readTarget } from "../platform/target.ts";
import { loadWrangler } from "../platform/wrangler.ts";
import { type Finding, runChecks } from "./checks.ts";
import { dataChecks } from "./data-checks.ts";
import { localKeyCheck, logSampleCheck, platformChecks, serviceChecks } from "./service-checks.ts";

/** Where `npm start` serves when nothing else is asked for. */
const LOCAL_ADDRESS = "http://localhost:8787";

/** Adds `doctor`. */
export function addDoctorCommand(program: Command): void {
  program
    .command("doctor")
    .summary("check what can be checked, and say what to do")
    .description(
      "Checks the service and what it rests on: health, migrations, sealing keys, the sweep, journals, clocks, deliveries " +
        "that wait, ranges that fill up, PUBLIC_URL, status lists, LOG_SAMPLE; with --env also the queues and secrets of the platform. It " +
        "changes nothing. The exit code is 1 when something is broken.",
    )
    .option("--address <url>", "where the service is reached, if not at its own address")
    .addHelpText("after", examples("doctor", "doctor --env production"))
    .action(inSession(diagnose));
}

async function diagnose(session: Session, { address: given }: { address?: string }): Promise<void> {
  const findings = await runChecks(await checksOf(session, given));
  const isBroken = findings.some(({ state }) => state === "broken");
  session.output.result({ healthy: !isBroken, findings }, () => findings.map(findingLines).join("\n"));
  if (isBroken) process.exitCode = 1;
}

async function checksOf(session: Session, given: string | undefined) {
  const wrangler = loadWrangler();
  if ("local" in session.place) {
    const { publicUrl, logSample } = readTarget(wrangler, undefined);
    return [
      ...serviceChecks(session, async () => given ?? LOCAL_ADDRESS, publicUrl),
      logSampleCheck(logSample),
      ...dataChecks(session, "npm start"),
      localKeyCheck(session, session.place.local),
    ];
  }
  const deployment = await openDeployment(wrangler, session.place.environment);
  return [
    ...serviceChecks(session, () => addressOf(deployment, given), deployment.target.publicUrl),
    logSampleCheck(deployment.target.logSample),
    ...dataChecks(session, DEPLOY),
    ...platformChecks(session, deployment),
  ];
}

const MARKS: Readonly<Record<Finding["state"], string>> = { ok: "✓", look: "!", broken: "✗" };

function findingLines({ check, state, detail, advice }: Finding): string {
  const line = `${MARKS[state]} ${bold(check)}: ${plain(detail)}`;
  return advice === null ? line : `${line}\n    ${plain(advice)}`;
}
