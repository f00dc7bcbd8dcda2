/** Something the administrator can put right. Its message is one plain line that says what to do next. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** One line, whatever the text was. */
export const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

/**
 * The line to print for anything thrown. Only the innermost cause speaks: the layers above it (Drizzle's) put bound
 * values into their messages, and those are digests and sealed secrets.
 */
export function describeError(error: unknown): string {
  if (error instanceof UserError) return oneLine(error.message);
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  const fileProblem = describeFileError(cause);
  if (fileProblem !== undefined) return oneLine(fileProblem);
  return oneLine(`Unexpected: ${cause instanceof Error ? cause.message : String(cause)}`);
}

/** What the system refuses for reasons that a person can see to. */
const FILE_ERRORS: Readonly<Record<string, string>> = {
  EACCES: "permission denied: does it belong to another user?",
  EPERM: "permission denied: does it belong to another user?",
  EROFS: "the file system is read-only",
  ENOSPC: "there is no space left",
  ENOTDIR: "it is below something that is no folder",
};

/** Node's errors on files name the path. */
function describeFileError(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && "path" in error)) return undefined;
  const reason = FILE_ERRORS[String(error.code)];
  return reason && `Cannot write to ${error.path}: ${reason} (${error.code})`;
}
