import { readFileSync } from "node:fs";
import { join } from "node:path";
import { replaceInSource } from "./loading.ts";

const FAULT = /^([\w-]+): (\S+)\n((?: {2}[-+] .*\n)+)/gm;
const faults = [...readFileSync(join(import.meta.dirname, "planted.txt"), "utf8").matchAll(FAULT)].map(
  ([, name = "", file = "", diff = ""]) => {
    const lines = diff.trimEnd().split("\n");
    const text = (sign: string) => lines.filter((line) => line[2] === sign).map((line) => line.slice(4));
    return { name, file, from: text("-").join("\n"), to: text("+").join("\n") };
  },
);

export const PLANTED: readonly string[] = [...new Set(faults.map(({ name }) => name))];
/** The one that only `--isolation` sees. */
export const OF_ISOLATION = "blocks-at-once-in-D1";

/** Puts a fault into the service. Called before anything of it is loaded. */
export function plant(name: string): void {
  for (const fault of faults) if (fault.name === name) replaceInSource(`worker/${fault.file}`, [fault]);
}
