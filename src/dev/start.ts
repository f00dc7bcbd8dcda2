import "../admin/platform/quick-loading.ts";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { describeError, Mistake } from "../admin/mistake.ts";
import { takeLock } from "../admin/platform/file-lock.ts";
import { localState } from "../admin/platform/paths.ts";
import { driveCron } from "./cron.ts";
import { assertPortFree, parsePort } from "./port.ts";
import { type Service, startService, untilHealthy } from "./service.ts";
import { welcome } from "./welcome.ts";

/** `npm start`: makes what a fresh clone lacks, then runs the service until Ctrl-C. */

const READY_LIMIT_MILLISECONDS = 120_000;
const KEY_FILE_POLL_MILLISECONDS = 1000;
const PARENT_POLL_MILLISECONDS = 1000;

const state = localState();
const show = (line: string): void => {
  process.stdout.write(`${line}\n`);
};
let service: Service | undefined;
/** Two services on one state would lease the same numbers. Kept here, or it would be given back as garbage. */
let lock: (() => void) | null = null;
/** The key file as the service read it. */
let keysInUse = "";
let stopping = false;

async function start(): Promise<void> {
  const port = parsePort(process.argv.slice(2));
  lock = takeLock(state.serviceLock, 0);
  if (lock === null) {
    throw new Mistake("The service already runs on this data: stop it first (Ctrl-C where it was started).");
  }
  await assertPortFree(port);
  process.stderr.write("Starting…\n");
  const demo = await prepare();
  const origin = `http://localhost:${port}`;
  const first = await launch(port, origin);
  show(welcome(origin, demo, state));
  void driveCron(origin);
  await supervise(port, origin, first);
}

/** Tables, sealing key and demo application. */
async function prepare() {
  const { openDatabase } = await import("../admin/session.ts");
  const { database, close } = await openDatabase(undefined);
  try {
    const { ensureLocalSealing } = await import("../admin/operations/local-sealing.ts");
    const { ensureDemoApplication } = await import("./demo-application.ts");
    await ensureLocalSealing(database, state);
    return await ensureDemoApplication(database, state);
  } finally {
    await close();
  }
}

async function launch(port: number, origin: string): Promise<Service> {
  keysInUse = readKeyFile();
  const started = startService(state, port, show);
  // Known to `stop` before it is ready.
  service = started;
  if (await untilHealthy(started, origin, READY_LIMIT_MILLISECONDS)) return started;
  await started.stop();
  process.stderr.write(`${started.lastLines()}\n`);
  throw new Mistake("The service did not become ready: the lines above are the last of wrangler's.");
}

/**
 * Waits for the end of the service. wrangler reads the key file only when it starts, so a rotated sealing key starts the
 * service again.
 *
 * @throws Mistake when it ends by itself
 */
async function supervise(port: number, origin: string, first: Service): Promise<void> {
  let running = first;
  for (;;) {
    const event = await Promise.race([running.ended.then(() => "ended"), untilKeysChange().then(() => "keys")]);
    if (event === "ended") {
      if (stopping) return;
      process.stderr.write(`${running.lastLines()}\n`);
      throw new Mistake("The service ended by itself: the lines above are the last of wrangler's.");
    }
    show("The sealing keys changed: starting the service again.");
    await running.stop();
    running = await launch(port, origin);
    show("The service is ready again.");
  }
}

async function untilKeysChange(): Promise<void> {
  while (readKeyFile() === keysInUse) await wait(KEY_FILE_POLL_MILLISECONDS);
}

/** Empty when the file is not there, say because it is being replaced by hand. */
const readKeyFile = (): string => (existsSync(state.sealingKeys) ? readFileSync(state.sealingKeys, "utf8") : "");

/** Ends everything that was started, and this process with success. A second signal does not wait. */
async function stop(): Promise<void> {
  if (stopping || service === undefined) process.exit(0);
  stopping = true;
  await service.stop();
  process.stderr.write("Stopped. npm start goes on with the same data.\n");
  process.exit(0);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void stop());
// npm may be killed without a chance to pass the signal on.
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
