import { execFileSync } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";

interface RunningProcess {
  pid: number;
  parent: number;
  group: number;
  command: string;
}

/** All processes that are not merely waiting to be buried. */
function processes(): RunningProcess[] {
  const table = execFileSync("ps", ["-axww", "-o", "pid=,ppid=,pgid=,stat=,args="], { encoding: "utf8" });
  return [...table.matchAll(/^\s*(\d+)\s+(\d+)\s+(\d+)\s+[^Z\s]\S*\s+(.*)$/gm)].map(
    ([, pid, parent, group, command = ""]) => ({
      ...{ pid: Number(pid), parent: Number(parent), group: Number(group), command },
    }),
  );
}

/** Kills a process and everything below it with SIGKILL, so that none of them can tidy up. */
export function killTree(root: number | undefined): void {
  if (root === undefined) return;
  const all = processes();
  const treeOf = (pid: number): number[] => [
    pid,
    ...all.filter(({ parent }) => parent === pid).flatMap((child) => treeOf(child.pid)),
  ];
  for (const pid of treeOf(root)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended by itself meanwhile.
    }
  }
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
