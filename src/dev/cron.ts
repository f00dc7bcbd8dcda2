import { once } from "node:events";
import { get } from "node:http";
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
    await trigger(url).catch(() => {});
    await pause;
  }
}

/** Not by `fetch`, which sends the URL's own Host: the trigger is refused unless that says localhost. */
async function trigger(url: string): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MILLISECONDS);
  const [response] = await once(get(url, { headers: { host: "localhost" }, signal }), "response");
  response.resume();
  await once(response, "end");
}
