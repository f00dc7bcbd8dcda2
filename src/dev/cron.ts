import { setTimeout as wait } from "node:timers/promises";

/** Production runs the sweep every minute; locally nobody wants to wait that long for a webhook or an expiry. */
const PERIOD_MILLISECONDS = 2000;
/** Longer than a sweep may take. */
const TIMEOUT_MILLISECONDS = 60_000;

/**
 * Runs the Worker's cron trigger again and again, one run at a time, since `wrangler dev` never does by itself. A run
 * that fails (the Worker is reloading) is made up for by the next.
 */
export async function driveCron(origin: string): Promise<never> {
  const url = `${origin}/cdn-cgi/local/scheduled?cron=${encodeURIComponent("* * * * *")}`;
  for (;;) {
    const pause = wait(PERIOD_MILLISECONDS);
    await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS) })
      .then((response) => response.body?.cancel())
      .catch(() => {});
    await pause;
  }
}
