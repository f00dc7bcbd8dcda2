import type { EventPage, ServerClient } from "../../client/index.ts";
import { isProblem } from "../words.ts";

/** Pending ones come last: there may be many, of which most are no problem, but all have to be read. */
const STATES = ["exhausted", "held", "pending"] as const;
const PENDING_PER_PAGE = 1000;

/** Deliveries that somebody should look at: retried after a failure, given up, on hold. */
export async function* listProblems(
  server: ServerClient,
  perPage: number,
  signal: AbortSignal,
): AsyncGenerator<EventPage, void, void> {
  for (const state of STATES) {
    const pages = server.listEvents({ state, perPage: state === "pending" ? PENDING_PER_PAGE : perPage, signal });
    for await (const { events, nextCursor } of pages) {
      const problems = events.filter(({ lastOutcome }) => isProblem(state, lastOutcome));
      // Only the last page of the last state ends the list.
      yield { events: problems, nextCursor: state === "pending" ? nextCursor : state };
    }
  }
}
