import { execFileSync } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";

/** Kills a process and everything below it with SIGKILL, so that none of them can tidy up. */
export function killTree(root: number): void {
  for (const pid of [root, ...descendants(root)]) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended by itself meanwhile.
    }
  }
}

function descendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const line of execFileSync("ps", ["-e", "-o", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n")) {
    const [pid = 0, parent = 0] = line.trim().split(/\s+/).map(Number);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const below = (pid: number): number[] => (children.get(pid) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(root);
}

export interface RunningProcess {
  pid: number;
  group: number;
  command: string;
}

/** All processes that are not merely waiting to be buried. */
function processes(): RunningProcess[] {
  const table = execFileSync("ps", ["-axww", "-o", "pid=,pgid=,stat=,args="], { encoding: "utf8" });
  return table.split("\n").flatMap((line) => {
    const [, pid, group, status = "", command = ""] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined || status.startsWith("Z") ? [] : [{ pid: Number(pid), group: Number(group), command }];
  });
}

/** `npm start` itself, and everything in the group of processes that it starts. */
export function processesOf({ origin, folder }: { origin: string; folder: string }): {
  main: RunningProcess;
  below: RunningProcess[];
} {
  const all = processes();
  const main = all.find(({ command }) => command.includes(`src/dev/start.ts --port ${new URL(origin).port}`));
  const wrangler = all.find(({ command }) => command.includes(`--persist-to ${folder}`));
  if (main === undefined || wrangler === undefined) throw new Error("the service is not running");
  return { main, below: all.filter(({ group }) => group === wrangler.group) };
}

export async function untilGone(those: readonly RunningProcess[]): Promise<void> {
  const pids = new Set(those.map(({ pid }) => pid));
  while (processes().some(({ pid }) => pids.has(pid))) await wait(50);
}
