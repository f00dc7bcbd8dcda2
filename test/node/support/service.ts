import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import * as z from "zod";
import { type ApplicationId, applicationId } from "../../../src/shared/identifiers.ts";
import { listen } from "./listen.ts";
import { killTree } from "./process-tree.ts";

/** The service as `npm start` runs it, with its own state. */
export interface RunningService {
  origin: string;
  /** The folder with everything it stores. */
  folder: string;
  demo: { applicationId: ApplicationId; applicationSecret: string };
  /** All that it printed so far. */
  output(): string;
  /** Runs the administration script on the same state. */
  admin(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }>;
  /** SIGKILL to it and to everything it started. */
  kill(): Promise<void>;
  /** Starts it again with the same state and port. @param words more arguments */
  restart(...words: string[]): Promise<RunningService>;
  /** Resolves with its exit code when it has ended. */
  ended: Promise<number | null>;
  /** Ctrl-C. @returns the exit code */
  stop(): Promise<number | null>;
  remove(): void;
}

const demoSchema = z.object({ applicationId, applicationSecret: z.string() });

const PROJECT = new URL("../../../", import.meta.url).pathname;

export async function startService(): Promise<RunningService> {
  return launch(mkdtempSync(join(tmpdir(), "badge-test-")), await freePort());
}

async function launch(folder: string, port: number, words: string[] = []): Promise<RunningService> {
  const env = { ...process.env, BADGE_STATE_DIR: join(folder, "state"), NO_COLOR: "1" };
  const child = spawn(process.execPath, ["src/dev/start.ts", "--port", String(port), ...words], {
    cwd: PROJECT,
    env,
  });
  const ended = once(child, "exit").then(() => child.exitCode);
  const output = collect(child);
  await untilPrinted(child, output, "Create your own applications");
  const demo = demoSchema.parse(JSON.parse(readFileSync(join(folder, "state", "demo-application.json"), "utf8")));
  return {
    origin: `http://localhost:${port}`,
    folder,
    demo,
    output,
    admin: (...words) => runProgram(["src/admin/main.ts", ...words], env),
    async kill() {
      killTree(child.pid ?? 0);
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
    restart: (...more) => launch(folder, port, more),
    ended,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      child.kill("SIGINT");
      await once(child, "exit");
      return child.exitCode;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Runs a Node program of the project until it ends by itself. @param prefix words of a program that runs it */
export async function runProgram(words: readonly string[], env: NodeJS.ProcessEnv, prefix: readonly string[] = []) {
  const node = [process.execPath, "--disable-warning=ExperimentalWarning"];
  const [program = "", ...rest] = [...prefix, ...node, ...words];
  const child = spawn(program, rest, { cwd: PROJECT, env });
  child.stdin.end();
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: child.exitCode ?? 1, stdout, stderr };
}

function collect(child: ChildProcess): () => string {
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (output += chunk));
  return () => output;
}

async function untilPrinted(child: ChildProcess, output: () => string, expected: string): Promise<void> {
  const ended = once(child, "exit");
  while (!output().includes(expected)) {
    const first = await Promise.race([
      ended.then(() => "ended"),
      once(child.stdout ?? child, "data").then(() => "data"),
    ]);
    if (first === "ended") throw new Error(`the service ended before it was ready:\n${output()}`);
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  const { port } = new URL(await listen(server));
  await once(server.close(), "close");
  return Number(port);
}
