import { readFileSync } from "node:fs";
import { join } from "node:path";
import { replaceInSource } from "./loading.ts";

const FAULT = /^([\w-]+): (\S+)\n((?: {2}[-+] .*\n)+)/gm;
/** A fault that changes two places is here twice. */
export const FAULTS = [...readFileSync(join(import.meta.dirname, "planted.txt"), "utf8").matchAll(FAULT)].map(
  ([, name = "", file = "", diff = ""]) => {
    const lines = diff.trimEnd().split("\n");
    const text = (sign: string) => lines.filter((line) => line[2] === sign).map((line) => line.slice(4));
    return { name, file, from: text("-").join("\n"), to: text("+").join("\n") };
  },
);

export const PLANTED: readonly string[] = [...new Set(FAULTS.map(({ name }) => name))];
/** Those that only `--isolation` sees. */
export const OF_ISOLATION: readonly string[] = ["blocks-at-once-in-D1", "delivers-at-once"];

/** Puts a fault into the service. Called before anything of it is loaded. */
export function plant(name: string): void {
  for (const fault of FAULTS) if (fault.name === name) replaceInSource(`worker/${fault.file}`, [fault]);
}
