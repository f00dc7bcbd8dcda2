/**
 * One JSON object a line, for Workers Logs. Callers name the fields; secrets, tokens and udids are never among them, and
 * of an error only its name and its platform's message are kept: Drizzle puts bound values into its own messages.
 */
export function log(
  level: "info" | "warn" | "error",
  fields: { event: string; error?: unknown; [field: string]: unknown },
): void {
  const { error } = fields;
  // A field that is undefined is left out of the line.
  const line = JSON.stringify({ level, ...fields, error: error === undefined ? undefined : describeError(error) });
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
