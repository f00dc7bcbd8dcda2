import { plain } from "./output.ts";

/** An error that the administrator can fix. Its message is one plain line that says what to do next. */
export class UserError extends Error {
  override readonly name = "UserError";
}

export const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

/**
 * The line to print for anything that was thrown: the outermost UserError, or else the innermost cause. Drizzle's errors
 * around it are not printed, because their messages have the bound values, such as digests and sealed secrets. Control
 * characters are replaced, because a message may quote another server.
 */
export function describeError(error: unknown): string {
  let cause = error;
  while (!(cause instanceof UserError) && cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  return plain(oneLine(messageOf(cause)));
}

function messageOf(error: unknown): string {
  if (error instanceof UserError) return error.message;
  return describeFileError(error) ?? `Unexpected: ${error instanceof Error ? error.message : String(error)}`;
}

/** Errors of the operating system that a person can fix. */
const FILE_ERRORS: Readonly<Record<string, string>> = {
  EACCES: "permission denied: does it belong to another user?",
  EPERM: "permission denied: does it belong to another user?",
  EROFS: "the file system is read-only",
  ENOSPC: "there is no space left",
  ENOTDIR: "a part of the path is not a folder",
};

/** Undefined unless it is one of Node's file errors, which have a path. */
function describeFileError(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && "path" in error)) return undefined;
  const reason = FILE_ERRORS[String(error.code)];
  return reason && `Cannot write to ${error.path}: ${reason} (${error.code})`;
}
