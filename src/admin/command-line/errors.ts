/** Something the administrator can fix. Its message is one plain line that says what to do next. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** Puts a text on one line. */
export const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

/**
 * The line to print for anything that was thrown. Only the innermost cause is printed: Drizzle's errors around it have
 * the bound values in their messages, and those are digests and sealed secrets.
 */
export function describeError(error: unknown): string {
  if (error instanceof UserError) return oneLine(error.message);
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  const fileProblem = describeFileError(cause);
  if (fileProblem !== undefined) return oneLine(fileProblem);
  return oneLine(`Unexpected: ${cause instanceof Error ? cause.message : String(cause)}`);
}

/** Errors of the operating system that a person can fix. */
const FILE_ERRORS: Readonly<Record<string, string>> = {
  EACCES: "permission denied: does it belong to another user?",
  EPERM: "permission denied: does it belong to another user?",
  EROFS: "the file system is read-only",
  ENOSPC: "there is no space left",
  ENOTDIR: "a part of the path is not a folder",
};

/** Undefined when it is not one of Node's file errors, which have a path. */
function describeFileError(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && "path" in error)) return undefined;
  const reason = FILE_ERRORS[String(error.code)];
  return reason && `Cannot write to ${error.path}: ${reason} (${error.code})`;
}
