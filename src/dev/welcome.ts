import { randomBytes } from "node:crypto";
import { bold, fieldLines } from "../admin/output.ts";
import { type LocalState, shownPath } from "../admin/platform/paths.ts";
import type { DemoApplication } from "./demo-application.ts";

/**
 * What a person sees once the service is up. The commands work as they are printed; the user device in them is new at
 * every start, so that the first call makes a badge.
 */
export function welcome(origin: string, demo: DemoApplication, state: LocalState): string {
  const suffix = randomBytes(3).toString("hex");
  const body = JSON.stringify({ userId: `user-${suffix}`, metadata: { deviceModel: "Pixel 9", os: "Android" } });
  const json = "-H 'content-type: application/json'";
  const issue = `curl -i ${origin}/v1/badge -H 'applicationid: ${demo.applicationId}' -H 'udid: device-${suffix}' ${json} -d '${body}'`;
  const list = `curl -i ${origin}/v1/badges -H 'applicationid: ${demo.applicationId}' -H 'applicationsecret: ${demo.applicationSecret}'`;
  return `
${bold(`The badge distribution service is ready: ${origin}`)}

${fieldLines({
  Reference: `${origin}/docs`,
  "Application ID": demo.applicationId,
  "Application secret": demo.applicationSecret,
  "Kept in": shownPath(state.demoApplication),
})}

${bold("Get a badge number for a user device (201):")}
${issue}

${bold("Ask again: the same number (200):")}
${issue}

${bold("List the application's badges with its secret (200):")}
${list}

Make applications of your own with: npm run -s admin -- application create --help
Ctrl-C stops the service and keeps its data; npm run reset deletes the data.
`;
}
