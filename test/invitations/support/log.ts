import { afterEach, beforeEach, vi } from "vitest";

/** Keeps the service's log lines out of the test's output. @returns the lines of the running test */
export function useQuietLog(): { lines(): Record<string, unknown>[] } {
  let lines: string[] = [];
  const keep = (line: unknown): void => {
    lines.push(String(line));
  };
  beforeEach(() => {
    lines = [];
    for (const method of ["log", "warn", "error"] as const) vi.spyOn(console, method).mockImplementation(keep);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
  return { lines: () => lines.map((line) => JSON.parse(line)) };
}
