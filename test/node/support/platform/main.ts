import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { PlatformStandIn } from "./stand-in.ts";

/**
 * A rehearsal by hand: starts the stand-in with an empty account, and prints what a shell needs so that `npm run deploy` and the
 * script reach it instead of the platform.
 */
const {
  free = false,
  workersDev,
  cron,
} = new Command("node test/node/support/platform/main.ts")
  .description("An empty account of the stand-in, until Ctrl-C: give the lines that it prints to the shell of a clone.")
  .option("--free", "an account on the Workers Free plan")
  .option("--no-workers-dev", "an account without a workers.dev name")
  .option("--no-cron", "an account whose cron has not started yet")
  .parse()
  .opts<{ free?: true; workersDev: boolean; cron: boolean }>();

const folder = mkdtempSync(join(tmpdir(), "badge-rehearsal-"));
const platform = await PlatformStandIn.start(folder);
if (free) platform.account.state.plan = "free";
if (!workersDev) platform.account.state.workersDevName = null;

const { environment } = platform;
// Addresses of Workers lead here.
const redirect = `const f=fetch;globalThis.fetch=(u,i)=>f(String(u).replace(/^https:..[^/]*[.](workers[.]dev|example[.]com)/,"${platform.address}"),i)`;
const node = `NODE_OPTIONS=--import=data:text/javascript,${encodeURIComponent(redirect).replaceAll("'", "%27")}`;
const lines = [...Object.entries(environment).map(([name, value]) => `${name}=${value}`), node];
console.log(lines.map((line) => `export '${line}'`).join("\n"));

const MINUTE_MILLISECONDS = 60_000;
const minutes = setInterval(() => {
  if (cron && platform.account.running !== undefined) platform.sweep().catch((error: unknown) => console.error(error));
}, MINUTE_MILLISECONDS);

process.once("SIGINT", async () => {
  clearInterval(minutes);
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});
