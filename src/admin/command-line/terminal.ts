import { createInterface } from "node:readline/promises";

/**
 * Asks until the answer can be parsed.
 *
 * @param parse returns undefined to ask again
 * @returns null when there is no terminal to ask on
 */
export async function askOnTerminal<Answer>(
  question: string,
  parse: (answer: string) => Answer | undefined,
): Promise<Answer | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return null;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    for (;;) {
      const parsed = parse((await terminal.question(question)).trim());
      if (parsed !== undefined) return parsed;
    }
  } finally {
    terminal.close();
  }
}
