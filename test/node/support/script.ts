import { vi } from "vitest";
import { createAdminProgram, run } from "../../../src/admin/program.ts";

/** What a command printed, and its exit code. */
export interface Printed {
  code: number | string;
  stdout: string;
  stderr: string;
}

/** Runs a command line of the administration script in this process, which is much quicker than in one of its own. */
export async function runScriptHere(words: readonly string[], stateFolder: string): Promise<Printed> {
  process.env.BADGE_STATE_DIR = stateFolder;
  const written = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    vi.spyOn(process[stream], "write").mockImplementation((part) => {
      written[stream] += part;
      return true;
    });
  }
  try {
    await run(createAdminProgram(), words);
    return { code: process.exitCode ?? 0, ...written };
  } finally {
    vi.restoreAllMocks();
    process.exitCode = undefined;
  }
}
