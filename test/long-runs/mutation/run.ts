import { spawn } from "node:child_process";
import { killTree } from "../chaos/process-tree.ts";

export interface Ending {
  /** Null when the time was over. */
  code: number | null;
  output: string;
  seconds: number;
}

/** Runs Node in a folder, with all that it starts, for so long at most. */
export function runNode(parameters: readonly string[], folder: string, maxSeconds: number): Promise<Ending> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, parameters, {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NO_COLOR: "1", CI: "1" },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (output += bytes));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    if (child.pid !== undefined) killTree(child.pid);
  }, maxSeconds * 1000);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code: isLate ? null : code, output, seconds: (performance.now() - startedAt) / 1000 });
    });
  });
}
