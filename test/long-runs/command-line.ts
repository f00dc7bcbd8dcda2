import { InvalidArgumentError } from "commander";

export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("Not a whole number.");
  return Number(text);
}

export const randomSeed = (): number => Math.floor(Math.random() * 2 ** 31);

/** Results. */
export const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Progress and errors. */
export const note = (line: string): void => void process.stderr.write(`${line}\n`);

/** As lines: the first column to the left, the others to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)));
  const padded = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0);
  return lines.map((cells) => cells.map(padded).join("  ").trimEnd()).join("\n");
}

/** An error of the command becomes a message and exit code 1. */
export async function runCommand(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    note(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}
