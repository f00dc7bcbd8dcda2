import { randomBytes } from "node:crypto";
import { bold, fieldLines } from "../admin/command-line/output.ts";
import { ADMIN } from "../admin/command-line/shell.ts";
import { formatPath, type LocalState } from "../admin/platform/paths.ts";
import type { Origins } from "./address.ts";
import type { DemoApplication } from "./demo-application.ts";

/** What is printed once the service is up. */
export function welcome({ own, printed }: Origins, demo: DemoApplication, state: LocalState): string {
  return `
${bold(`The badge distribution service is ready: ${printed}`)}

${fieldLines({
  Reference: `${printed}/docs`,
  Console: `${printed}/console`,
  "On this computer": printed === own ? undefined : own,
  "Application ID": demo.applicationId,
  "Application secret": demo.applicationSecret ?? "changed since, see below",
  "Kept in": formatPath(state.demoApplication),
})}

${(demo.isDisabled ? disabledLines(demo) : commandLines(printed, demo, state)).join("\n")}

Create your own applications with: ${ADMIN} application create --help
Ctrl-C stops the service and keeps its data; npm run reset deletes the data.
`;
}

/**
 * Commands that can be pasted. Their user device is new at every start, so that the first call creates a badge.
 */
function commandLines(origin: string, demo: DemoApplication, state: LocalState): string[] {
  const suffix = randomBytes(3).toString("hex");
  const body = JSON.stringify({ userId: `user-${suffix}`, metadata: { deviceModel: "Pixel 9", os: "Android" } });
  const json = "-H 'content-type: application/json'";
  const issue = `curl -i ${origin}/v1/badge -H 'applicationid: ${demo.applicationId}' -H 'udid: device-${suffix}' ${json} -d '${body}'`;
  return [
    bold("Get a badge number for a user device (201):"),
    issue,
    "",
    bold("Ask again: the same number (200):"),
    issue,
    "",
    ...secretLines(origin, demo, state),
  ];
}

function secretLines(origin: string, demo: DemoApplication, state: LocalState): string[] {
  const { applicationId, applicationSecret } = demo;
  if (applicationSecret !== null) {
    return [
      bold("List the application's badges with its secret (200):"),
      `curl -i ${origin}/v1/badges -H 'applicationid: ${applicationId}' -H 'applicationsecret: ${applicationSecret}'`,
    ];
  }
  return [
    bold("The demo application's secret was changed, and the service cannot show the new one."),
    `Put it into ${formatPath(state.demoApplication)}, or add another:`,
    `${ADMIN} secret add ${applicationId}`,
  ];
}

const disabledLines = ({ applicationId }: DemoApplication): string[] => [
  bold("The demo application is disabled. To use it again:"),
  `${ADMIN} application enable ${applicationId}`,
];
