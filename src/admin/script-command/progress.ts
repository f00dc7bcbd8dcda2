import type { Session } from "../command-line/session.ts";
import { isLocked } from "../platform/file-lock.ts";

/** Longer than a running service takes. */
const NOTE_AFTER_MILLISECONDS = 1000;
const HINT_AFTER_MILLISECONDS = 15_000;

/** @returns a function to call repeatedly while a command waits, which notes what it waits for */
export function createProgress({ backend, output }: Session): () => void {
  const startedAt = performance.now();
  let [isNoted, isHinted] = [false, false];
  return () => {
    const waited = performance.now() - startedAt;
    if (!isNoted && waited >= NOTE_AFTER_MILLISECONDS) {
      isNoted = true;
      if ("local" in backend && !isLocked(backend.local.serviceLock)) {
        isHinted = true;
        output.note(
          "Waiting for the service, which is not running: npm start starts it. Ctrl-C withdraws the command.",
        );
      } else if (process.stderr.isTTY) {
        output.note("Waiting for the service…");
      }
    }
    if (!isHinted && waited >= HINT_AFTER_MILLISECONDS) {
      isHinted = true;
      output.note(
        "local" in backend
          ? "Still waiting for the service: look at its log, or start it with npm start. Ctrl-C withdraws the command."
          : `Still waiting for the service: is it deployed to "${backend.environment}", with its cron trigger? Its log says what it does. Ctrl-C withdraws the command.`,
      );
    }
  };
}
