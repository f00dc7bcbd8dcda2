import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { type LocalState, PROJECT, WRANGLER_CONFIG } from "../admin/platform/paths.ts";
import { QUIET_WRANGLER, WRANGLER_PROGRAM } from "../admin/platform/wrangler.ts";
import { createLogFilter } from "./service-log.ts";

/** Loaded into wrangler's process ahead of wrangler. */
const PRELOADED = ["./leave-with-parent.ts", "./tell-runtime-end.ts"].flatMap((path) => [
  "--import",
  fileURLToPath(new URL(path, import.meta.url)),
]);
const STOP_GRACE_MILLISECONDS = 3000;
const READY_POLL_MILLISECONDS = 100;
/** Lines of wrangler's that are kept to explain an early end. */
const KEPT_LINES = 30;

/** tell-runtime-end.ts sends this. */
const workerdEnd = z.object({ workerdEndedBy: z.string() });

/** The Worker as wrangler runs it. */
export interface Service {
  /** Resolves when it has ended, by itself or by `stop`. */
  ended: Promise<void>;
  /** Resolves with the signal or exit code when the runtime below wrangler ends by itself: nothing is answered any more. */
  runtimeEnded: Promise<string>;
  /** wrangler's last lines, whatever they are. */
  lastLines(): string;
  /** Ends it and everything it started. */
  stop(): Promise<void>;
}

export interface ServiceOptions {
  port: number;
  /** The address to serve on; undefined for localhost. */
  host: string | undefined;
  /** The application that /docs tries its calls with. */
  demoApplicationId: string;
  /** Gets the lines for the terminal. */
  show(line: string): void;
}

/**
 * Starts `wrangler dev` in a process group of its own: a signal to the group reaches the processes that wrangler starts.
 */
export function startService(state: LocalState, { port, host, demoApplicationId, show }: ServiceOptions): Service {
  const address = ["--port", String(port), ...(host === undefined ? [] : ["--ip", host])];
  const options = [...address, "--persist-to", state.persistTo, "--env-file", state.sealingKeys];
  const variables = ["--var", `DEMO_APPLICATION_ID:${demoApplicationId}`];
  const quiet = ["--show-interactive-dev-session=false", "--inspector-port", "0"];
  const child = spawn(
    process.execPath,
    [...PRELOADED, WRANGLER_PROGRAM, "dev", "--config", WRANGLER_CONFIG, ...options, ...variables, ...quiet],
    {
      cwd: PROJECT,
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      env: {
        ...process.env,
        ...QUIET_WRANGLER,
        WRANGLER_LOG: "log",
        // Other services of this name on this computer are none of its business.
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
      const told = workerdEnd.safeParse(message).data;
      if (told !== undefined && !stopping) resolve(told.workerdEndedBy);
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

/** Waits for /health to answer 200. False: it did not within the time, or the service ended. */
export async function untilHealthy(service: Service, origin: string, limitMilliseconds: number): Promise<boolean> {
  const deadline = Date.now() + limitMilliseconds;
  let running = true;
  void Promise.race([service.ended, service.runtimeEnded]).then(() => {
    running = false;
  });
  while (running && Date.now() < deadline) {
    if (await isHealthy(origin)) return true;
    await wait(READY_POLL_MILLISECONDS);
  }
  return false;
}

async function isHealthy(origin: string): Promise<boolean> {
  try {
    const response = await fetch(`${origin}/health`, { signal: AbortSignal.timeout(5000) });
    await response.body?.cancel();
    return response.status === 200;
  } catch {
    return false;
  }
}
