/** A line that src/worker/log.ts wrote; those of level info do not say their level. */
const IS_LINE = /^\{("level":"(warn|error)",)?"event":/;
const IS_KEPT = Symbol.for("kept log");
const kept: string[] = [];

/** From now on what the service logs is kept, and stays out of the tests' output. */
export function keepLog(): void {
  for (const method of ["log", "warn", "error"] as const) {
    const write = console[method];
    if (Object.hasOwn(write, IS_KEPT)) continue;
    const keep = (...values: unknown[]): void => {
      const line = String(values[0]);
      kept.push(line);
      if (!IS_LINE.test(line)) write(...values);
    };
    console[method] = Object.assign(keep, { [IS_KEPT]: true });
  }
}

export const forgetLines = (): void => void kept.splice(0);

/**
 * Lines since the running test began. Files share a runtime: what another file left running may have written some of them, so
 * each test picks its own by request ID, application or event.
 */
export const log = { lines: (): Record<string, unknown>[] => kept.map((line) => JSON.parse(line)) };
