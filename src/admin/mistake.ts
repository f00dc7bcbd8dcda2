/** How a person runs this script; for lines that say what to do next. */
export const ADMIN = "npm run -s admin --";

/** Something the administrator can put right. Its message is one plain line that says what to do next. */
export class Mistake extends Error {
  override readonly name = "Mistake";
}

/** One line, whatever the text was. */
export const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

/**
 * The line to print for anything thrown. Only the innermost cause speaks: the layers above it (Drizzle's) put bound
 * values into their messages, and those are digests and sealed secrets.
 */
export function describeError(error: unknown): string {
  if (error instanceof Mistake) return oneLine(error.message);
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  return oneLine(`Unexpected: ${cause instanceof Error ? cause.message : String(cause)}`);
}
