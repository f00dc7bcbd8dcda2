import { dirname } from "node:path";
import type { Fate } from "./campaign.ts";

export function describeFate({ mutant, killedBy, isTimeout, seconds }: Fate): string {
  const { file, line, original, replacement } = mutant;
  const fate = killedBy === null ? "SURVIVED" : `killed by ${killedBy.split(":")[0]}${isTimeout ? " (time)" : ""}`;
  return `${fate}, ${seconds.toFixed(0)} s: ${file}:${line} ${oneLine(original)} -> ${oneLine(replacement)}`;
}

/** One row a file and one a folder, as Markdown. */
export function table(fates: readonly Fate[]): string {
  const rows = ["| | mutants | killed | share |", "| --- | --- | --- | --- |"];
  const inOrder = fates.toSorted((one, other) => one.mutant.file.localeCompare(other.mutant.file));
  for (const [folder, ofFolder] of Map.groupBy(inOrder, ({ mutant }) => dirname(mutant.file))) {
    for (const [file, ofFile] of Map.groupBy(ofFolder, ({ mutant }) => mutant.file))
      rows.push(row(`\`${file}\``, ofFile));
    rows.push(row(`**\`${folder}\`**`, ofFolder));
  }
  return [...rows, row("**all**", fates)].join("\n");
}

function row(name: string, fates: readonly Fate[]): string {
  const killed = fates.filter(({ killedBy }) => killedBy !== null).length;
  return `| ${name} | ${fates.length} | ${killed} | ${((100 * killed) / fates.length).toFixed(0)} % |`;
}

/** The survivors with a column for the reason, as Markdown. */
export function survivors(fates: readonly Fate[]): string {
  const rows = fates
    .filter(({ killedBy }) => killedBy === null)
    .map(
      ({ mutant: { file, line, original, replacement } }) =>
        `| \`${file}:${line}\` | ${code(original)} | ${code(replacement)} | |`,
    );
  return ["| where | original | mutant | reason |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line === "" ? "(nothing)" : line.length > 60 ? `${line.slice(0, 57)}…` : line;
}

const code = (text: string): string => `\`${oneLine(text).replaceAll("`", "'").replaceAll("|", "\\|")}\``;
