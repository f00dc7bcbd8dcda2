import { plain } from "./output.ts";

/** Something the administrator can fix. Its message is one plain line that says what to do next. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** Puts a text on one line. */
export const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

/**
 * The line to print for anything that was thrown. Of errors around others only the innermost is printed, or the first that
 * the administrator can fix: Drizzle's errors around it have the bound values in their messages, and those are digests and
 * sealed secrets. A message may quote another server, so it cannot control the terminal.
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

/** Undefined when it is not one of Node's file errors, which have a path. */
function describeFileError(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && "path" in error)) return undefined;
  const reason = FILE_ERRORS[String(error.code)];
  return reason && `Cannot write to ${error.path}: ${reason} (${error.code})`;
}
