/**
 * Writes one JSON object per line. `level` is omitted for info, because Workers Logs records it and bills bytes. Callers
 * never pass secrets, tokens or udids. Only the names and the platform's message of an error are logged, because
 * Drizzle's own messages contain bound values.
 */
export function log(
  level: "info" | "warn" | "error",
  fields: { event: string; error?: unknown; [field: string]: unknown },
): void {
  const { error } = fields;
  // JSON leaves out undefined fields.
  const line = JSON.stringify({
    level: level === "info" ? undefined : level,
    ...fields,
    ...(error !== undefined && { error: describeError(error) }),
  });
  if (level === "info") console.log(line);
  else if (level === "warn") console.warn(line);
  else console.error(line);
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return "not an error";
  if (error.cause instanceof Error) return `${error.name} < ${describeError(error.cause)}`;
  if (error.message.startsWith("Failed query")) return error.name;
  return `${error.name}: ${error.message.slice(0, 200)}`;
}
