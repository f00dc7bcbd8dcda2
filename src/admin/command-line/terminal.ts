import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import { UserError } from "./errors.ts";

/**
 * Asks until the answer can be parsed.
 *
 * @param parse returns undefined to ask again
 * @returns null when there is no terminal to ask on
 * @throws UserError when the person ends it with Ctrl-C or Ctrl-D
 */
export async function askOnTerminal<Answer>(
  question: string,
  parse: (answer: string) => Answer | undefined,
): Promise<Answer | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return null;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Ctrl-C or Ctrl-D rejects the question or leaves it open, by version of Node; either closes the terminal.
  const closed = once(terminal, "close").then(() => null);
  try {
    for (;;) {
      const answer = await Promise.race([terminal.question(question).catch(() => null), closed]);
      if (answer === null) throw new UserError("Stopped without an answer: nothing was changed.");
      const parsed = parse(answer.trim());
      if (parsed !== undefined) return parsed;
    }
  } finally {
    terminal.close();
  }
}
