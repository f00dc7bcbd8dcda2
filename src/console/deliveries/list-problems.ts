import type { EventPage, ServerClient } from "../../client/index.ts";
import { isProblem } from "../words.ts";

/** The first shows a receiver that fails now. */
const STATES = ["pending", "exhausted", "held"] as const;

/** Deliveries that somebody should look at: retried after a failure, given up, on hold. */
export async function* listProblems(
  server: ServerClient,
  perPage: number,
  signal: AbortSignal,
): AsyncGenerator<EventPage, void, void> {
  // A page is held back until the next one comes, so that the last one can be marked as the last.
  let waiting: EventPage | null = null;
  for (const state of STATES) {
    for await (const page of server.listEvents({ state, perPage, signal })) {
      const events = page.events.filter(({ lastOutcome }) => isProblem(state, lastOutcome));
      if (events.length === 0) continue;
      if (waiting !== null) yield { ...waiting, nextCursor: state };
      waiting = { events, nextCursor: null };
    }
  }
  if (waiting !== null) yield waiting;
}
