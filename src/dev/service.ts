import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import * as z from "zod";
import { healthProblem } from "../admin/deploy/address.ts";
import { tickLocally } from "../admin/platform/local-tick.ts";
import { type LocalState, PROJECT, WRANGLER_CONFIG } from "../admin/platform/paths.ts";
import { QUIET_WRANGLER, WRANGLER_PROGRAM } from "../admin/platform/wrangler.ts";

/** Loaded into wrangler's process before wrangler. A URL, because a path may contain `#` or `%`. */
const PRELOAD = new URL("./wrangler-preload.ts", import.meta.url).href;
const STOP_GRACE_MILLISECONDS = 3000;
const READY_POLL_MILLISECONDS = 100;
/** How many of wrangler's last lines are kept, to explain an early end. */
const KEPT_LINES = 30;

/** wrangler-preload.ts sends this. */
const workerdEnd = z.object({ workerdEndedBy: z.string() });

/** The Worker as wrangler runs it. */
export interface Service {
  /** Resolves when it has ended, by itself or by `stop`. */
  ended: Promise<void>;
  /**
   * Resolves with the signal or exit code when wrangler's runtime ends by itself, which ends the service.
   */
  runtimeEnded: Promise<string>;
  /** wrangler's last lines, unfiltered. */
  lastLines(): string;
  /** Ends it and everything that it started. */
  stop(): Promise<void>;
}

export interface ServiceOptions {
  port: number;
  /** The address to serve on; undefined for localhost. */
  host: string | undefined;
  /** Its address for others, with which the URLs of status lists begin. */
  publicUrl: string;
  /** The application with which /docs tries calls. */
  demoApplicationId: string;
  /** Gets the lines for the terminal. */
  show(line: string): void;
}

/**
 * Starts `wrangler dev` in a process group of its own, so that a signal to the group reaches what wrangler starts.
 */
export function startService(
  state: LocalState,
  { port, host, publicUrl, demoApplicationId, show }: ServiceOptions,
): Service {
  const address = ["--port", String(port), ...(host === undefined ? [] : ["--ip", host])];
  const options = [...address, "--persist-to", state.persistTo, "--env-file", state.sealingKeys];
  const variables = ["--var", `DEMO_APPLICATION_ID:${demoApplicationId}`, "--var", `PUBLIC_URL:${publicUrl}`];
  const quiet = ["--show-interactive-dev-session=false", "--inspector-port", "0"];
  const child = spawn(
    process.execPath,
    ["--import", PRELOAD, WRANGLER_PROGRAM, "dev", "--config", WRANGLER_CONFIG, ...options, ...variables, ...quiet],
    {
      cwd: PROJECT,
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: {
        ...process.env,
        ...QUIET_WRANGLER,
        WRANGLER_LOG: "log",
        // Separate from other Workers with this name on this computer.
        WRANGLER_REGISTRY_PATH: join(state.persistTo, "registry"),
        NO_COLOR: "1",
        FORCE_COLOR: "0",
      },
    },
  );
  const kept: string[] = [];
  let stopping = false;
  for (const input of [child.stdout, child.stderr].filter((stream) => stream !== null)) {
    const filter = createLogFilter();
    createInterface({ input }).on("line", (line) => {
      if (kept.push(line) > KEPT_LINES) kept.shift();
      const shown = stopping ? null : filter(line);
      if (shown !== null) show(shown);
    });
  }
  const ended = once(child, "exit").then(() => signalGroup(child, "SIGKILL"));
  const runtimeEnded = new Promise<string>((resolve) => {
    child.on("message", (message) => {
      const end = workerdEnd.safeParse(message).data;
      if (end !== undefined && !stopping) resolve(end.workerdEndedBy);
    });
  });
  return {
    ended,
    runtimeEnded,
    lastLines: () => kept.join("\n"),
    async stop() {
      stopping = true;
      signalGroup(child, "SIGTERM");
      await Promise.race([ended, wait(STOP_GRACE_MILLISECONDS, undefined, { ref: false })]);
      signalGroup(child, "SIGKILL");
    },
  };
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone already.
  }
}

/** Waits for /health to respond with 200. @returns false when it did not in time, or the service ended */
export async function untilHealthy(service: Service, origin: string, limitMilliseconds: number): Promise<boolean> {
  const deadline = Date.now() + limitMilliseconds;
  let running = true;
  void Promise.race([service.ended, service.runtimeEnded]).then(() => {
    running = false;
  });
  while (running && Date.now() < deadline) {
    if ((await healthProblem(origin)) === null) return true;
    await wait(READY_POLL_MILLISECONDS);
  }
  return false;
}

/** wrangler's prefixes for what the Worker writes with console.error and console.warn. */
const LEVEL = /^(?:✘ \[ERROR\]|▲ \[WARNING\]) (?=\{)/;
/** The start of a message of wrangler that must be shown: the Worker does not build, or it threw. */
const TROUBLE = /^(?:✘ |\[wrangler:error\])/;
/** The runtime's message about a caller that disconnected, which is harmless. */
const HANG_UP = /\bdisconnected: /;
/** The start of any message of wrangler. */
const MESSAGE = /^(?:✘ |▲ |⎔ |\[wrangler|[A-Za-z⛅])/;

/**
 * Picks the lines to show from wrangler's output: the Worker's log, which is JSON, and errors. The rest is wrangler's progress.
 *
 * @returns a function from one line to the line to show, or null
 */
export function createLogFilter(): (line: string) => string | null {
  let inTrouble = false;
  return (raw) => {
    const line = stripVTControlCharacters(raw).replace(LEVEL, "");
    if (line.startsWith("{")) {
      inTrouble = false;
      return line;
    }
    if (TROUBLE.test(line)) inTrouble = !HANG_UP.test(line);
    else if (MESSAGE.test(line)) inTrouble = false;
    return inTrouble && line.trim() !== "" ? line : null;
  };
}

/** As in production. Nothing needs the scheduler sooner, because script commands wake it. */
const PERIOD_MILLISECONDS = 60_000;

/**
 * Runs the Worker's cron trigger every minute, one run at a time, since `wrangler dev` never does. If a run fails (while the
 * Worker reloads, say), the next one does the work.
 */
export async function driveCron(origin: string): Promise<never> {
  for (;;) {
    const pause = wait(PERIOD_MILLISECONDS);
    await tickLocally(origin).catch(() => {});
    await pause;
  }
}
