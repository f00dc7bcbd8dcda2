import { once } from "node:events";
import { get } from "node:http";

/** Longer than a tick may take. */
const TIMEOUT_MILLISECONDS = 60_000;

/**
 * Runs the cron trigger of a local Worker once, since `wrangler dev` never does by itself. Not with `fetch`, which sets Host from
 * the URL: the trigger is refused unless Host is localhost.
 */
export async function tickLocally(origin: string): Promise<void> {
  const url = `${origin}/cdn-cgi/local/scheduled?cron=${encodeURIComponent("* * * * *")}`;
  const request = get(url, { headers: { host: "localhost" }, signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS) });
  const [response] = await once(request, "response");
  response.resume();
  await once(response, "end");
}
