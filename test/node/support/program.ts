import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";

const PROJECT = new URL("../../../", import.meta.url).pathname;

/** Starts a program, in the project if `cwd` is no other folder, and collects what it prints. */
export function startProgram(
  [program = "", ...words]: readonly string[],
  { cwd = PROJECT, env = {} }: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
) {
  const child = spawn(program, words, { cwd, env: { ...process.env, ...env }, stdio: "pipe" });
  /** What it said so far: on standard output, on standard error, and on both in the order of arrival. */
  const said = { out: "", err: "", all: "" };
  for (const name of ["out", "err"] as const) {
    child[`std${name}`].on("data", (chunk) => {
      said[name] += chunk;
      said.all += chunk;
    });
  }
  let hasEnded = false;
  /** Its exit code, or null if a signal has ended it. */
  const ended = once(child, "close").then(() => {
    hasEnded = true;
    return child.exitCode;
  });
  return {
    ...{ child, said, ended },
    /** @throws Error with all that it has said, when it ends before it says this */
    async untilSaid(pattern: RegExp, where: keyof typeof said = "all"): Promise<RegExpExecArray> {
      for (;;) {
        const found = pattern.exec(said[where]);
        if (found) return found;
        if (hasEnded) throw new Error(`it ended before it said ${pattern}:\n${said.all}`);
        await wait(10);
      }
    },
  };
}

export type RunningProgram = ReturnType<typeof startProgram>;
