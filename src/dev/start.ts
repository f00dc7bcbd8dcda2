import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { describeError, UserError } from "../admin/command-line/errors.ts";
import { takeLock } from "../admin/platform/file-lock.ts";
import { localState, PROJECT } from "../admin/platform/paths.ts";
import { assertStateWritable, assertWritable } from "../admin/platform/writable.ts";
import { assertPortFree, originsOf } from "./address.ts";
import { HELP, readCommandLine } from "./command-line.ts";
import { ensureDemoApplication, prepareLocalData } from "./demo-application.ts";
import { driveCron, type Service, type ServiceOptions, startService, untilHealthy } from "./service.ts";
import { welcome } from "./welcome.ts";

/** `npm start` creates what a fresh clone lacks, then runs the service until Ctrl-C. */

const READY_LIMIT_MILLISECONDS = 120_000;
const FILE_POLL_MILLISECONDS = 500;
const PARENT_POLL_MILLISECONDS = 1000;
/** When npm installs packages, it deletes this file first and writes it last. */
const INSTALLED = join(PROJECT, "node_modules/.package-lock.json");

const state = localState();
const packagesChanged = watchPackages();
const show = (line: string): void => {
  // wrangler's errors about missing packages are not helpful; `supervise` reports what happened.
  if (!packagesChanged()) process.stdout.write(`${line}\n`);
};
let service: Service | undefined;
/** Prevents two services on one state. In a variable, because garbage collection would release the lock. */
let lock: (() => void) | null = null;
/** The key file as the service read it. */
let keysInUse = "";
let stopping = false;

async function start(): Promise<void> {
  const { help, port, host } = readCommandLine(process.argv.slice(2));
  if (help) return void process.stdout.write(HELP);
  assertStateWritable(state);
  // wrangler builds the Worker here.
  assertWritable(join(PROJECT, ".wrangler/tmp"));
  // The script takes the lock for a moment, to see whether the service runs.
  lock = takeLock(state.serviceLock, 200);
  if (lock === null) {
    throw new UserError("The service already runs on this data: stop it first (Ctrl-C where it was started).");
  }
  await assertPortFree(port, host);
  process.stderr.write("Starting…\n");
  const origins = originsOf(host, port);
  const { demoApplicationId, demo } = await prepareLocalData(state);
  const options = { port, host, publicUrl: origins.printed, demoApplicationId, show };
  const launchHere = () => launch(options, origins.own);
  // The script finds the service there.
  writeFileSync(state.serviceOrigin, `${origins.own}\n`);
  const first = await launchHere();
  void driveCron(origins.own);
  const supervised = supervise(first, launchHere);
  // The application waits for the service, which may end meanwhile.
  const shown = demo ?? (await Promise.race([ensureDemoApplication(state), supervised]));
  if (shown !== undefined) show(welcome(origins, shown, state));
  await supervised;
}

async function launch(options: ServiceOptions, origin: string): Promise<Service> {
  keysInUse = readKeyFile();
  const started = startService(state, options);
  // Set before it is ready, so that `stop` can end it.
  service = started;
  if (await untilHealthy(started, origin, READY_LIMIT_MILLISECONDS)) return started;
  await started.stop();
  if (packagesChanged()) throw packagesError();
  process.stderr.write(`${started.lastLines()}\n`);
  throw new UserError("The service did not become ready: the lines above are the last of wrangler's output.");
}

/**
 * Runs until the service ends. wrangler reads the key file only when it starts, so the service is restarted after a sealing
 * key was rotated.
 *
 * @throws UserError when the service ends by itself, or must be ended
 */
async function supervise(first: Service, launchAgain: () => Promise<Service>): Promise<void> {
  let running = first;
  for (;;) {
    const end = await nextEvent(running);
    if (stopping) return;
    if (end !== "keys changed") {
      await running.stop();
      throw end;
    }
    show("The sealing keys changed: restarting the service.");
    await running.stop();
    running = await launchAgain();
    show("The service is ready again.");
  }
}

/** Waits until a running service must be restarted, or has ended; then returns why. */
async function nextEvent(running: Service): Promise<"keys changed" | UserError> {
  let isWaiting = true;
  const fileChange = async () => {
    while (isWaiting && !packagesChanged() && readKeyFile() === keysInUse) await wait(FILE_POLL_MILLISECONDS);
    return "files" as const;
  };
  const ended = running.ended.then(() => "ended" as const);
  const event = await Promise.race([ended, running.runtimeEnded.then((by) => ({ by })), fileChange()]);
  isWaiting = false;
  if (packagesChanged()) return packagesError();
  if (event === "files") return "keys changed";
  if (event !== "ended") {
    return new UserError(
      `The runtime (workerd) was ended by ${event.by}: start again with npm start. The data is kept.`,
    );
  }
  if (!stopping) process.stderr.write(`${running.lastLines()}\n`);
  return new UserError("The service ended by itself: the lines above are the last of wrangler's output.");
}

const packagesError = (): UserError =>
  new UserError(
    "The packages in node_modules are being replaced: start again with npm start after that. The data is kept.",
  );

/**
 * Watches for an installation of packages. `npm ci` during a running service deletes files of wrangler and the Worker;
 * wrangler would try to build the Worker from the rest, with thousands of lines of errors.
 *
 * @returns a function that checks whether an installation has begun since; a call takes microseconds
 */
function watchPackages(): () => boolean {
  const before = identify();
  return () => identify() !== before;
}

/** Identifies the state of npm's record. Empty while there is none, and always with another package manager. */
function identify(): string {
  const record = statSync(INSTALLED, { throwIfNoEntry: false });
  return record === undefined ? "" : `${record.ino} ${record.mtimeMs}`;
}

/** Empty when there is no file. */
const readKeyFile = (): string => (existsSync(state.sealingKeys) ? readFileSync(state.sealingKeys, "utf8") : "");

/** Ends everything that was started, then this process with exit code 0. A second signal ends it at once. */
async function stop(): Promise<void> {
  if (stopping || service === undefined) process.exit(0);
  stopping = true;
  await service.stop();
  process.stderr.write("Stopped. npm start continues with the same data.\n");
  process.exit(0);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void stop());
// npm may be killed before it can pass the signal on.
const parent = process.ppid;
if (process.env.npm_lifecycle_event !== undefined) {
  setInterval(() => process.ppid !== parent && void stop(), PARENT_POLL_MILLISECONDS).unref();
}

try {
  await start();
} catch (error) {
  if (!stopping) {
    process.stderr.write(`${describeError(error)}\n`);
    process.exit(1);
  }
}
