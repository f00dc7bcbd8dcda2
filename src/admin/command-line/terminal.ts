import { createInterface } from "node:readline/promises";

/**
 * Asks a person until the answer is understood.
 *
 * @param understand undefined: ask again
 * @returns null when there is no terminal to ask on
 */
export async function askOnTerminal<Answer>(
  question: string,
  understand: (answer: string) => Answer | undefined,
): Promise<Answer | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return null;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    for (;;) {
      const understood = understand((await terminal.question(question)).trim());
      if (understood !== undefined) return understood;
    }
  } finally {
    terminal.close();
  }
}
