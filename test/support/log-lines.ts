import type { Mock } from "vitest";

/**
 * The service's log lines that a spy on a method of `console` has seen. Files share a runtime: what another file left
 * running may have written some of them, so each test picks its own by request ID, application or event.
 */
export const linesOf = (spy: Mock): Record<string, unknown>[] =>
  spy.mock.calls.map(([line]) => JSON.parse(String(line)));
