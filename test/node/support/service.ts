import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import { listenSomewhere } from "../../../src/dev/demo/listen.ts";
import { type ApplicationId, applicationId } from "../../../src/shared/identifiers.ts";
import { killTree } from "./process-tree.ts";
import { startProgram } from "./program.ts";

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

export async function startService(): Promise<RunningService> {
  return launch(mkdtempSync(join(tmpdir(), "badge-test-")), await freePort());
}

async function launch(folder: string, port: number, words: string[] = []): Promise<RunningService> {
  const env = { BADGE_STATE_DIR: join(folder, "state"), NO_COLOR: "1" };
  const start = [process.execPath, "src/dev/start.ts", "--port", String(port), ...words];
  const { child, said, ended, untilSaid } = startProgram(start, { env });
  await untilSaid(/Create your own applications/);
  const demo = demoSchema.parse(JSON.parse(readFileSync(join(folder, "state", "demo-application.json"), "utf8")));
  return {
    origin: `http://localhost:${port}`,
    folder,
    demo,
    output: () => said.all,
    admin: (...words) => runProgram(["src/admin/main.ts", ...words], env),
    async kill() {
      killTree(child.pid);
      await ended;
    },
    restart: (...more) => launch(folder, port, more),
    ended,
    stop() {
      child.kill("SIGINT");
      return ended;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Runs a Node program of the project until it ends by itself. */
export async function runProgram(words: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const node = [process.execPath, "--disable-warning=ExperimentalWarning"];
  const { child, said, ended } = startProgram([...node, ...words], { env });
  child.stdin.end();
  return { code: (await ended) ?? 1, stdout: said.out, stderr: said.err };
}

export async function freePort(): Promise<number> {
  const server = createServer();
  const { port } = new URL(await listenSomewhere(server));
  await once(server.close(), "close");
  return Number(port);
}
