import type { ListedEvent, ServerClient } from "../../client/index.ts";

const PER_PAGE = 200;
/** A look-up ends there, rather than read a long list again and again. */
const MOST_PAGES_PER_STATE = 10;

/** The order in which a delivery that is being sent goes through states. */
const STATES = ["pending", "delivered", "held", "exhausted"] as const;

/**
 * An event as it is now. The service has no call for one event, so this goes through the lists, newest first, until
 * they are older than the event.
 *
 * @returns null when it is not among the newest
 */
export async function findEvent(
  server: ServerClient,
  { id, createdAt }: ListedEvent,
  signal: AbortSignal,
): Promise<ListedEvent | null> {
  for (const state of STATES) {
    let pages = 0;
    for await (const { events } of server.listEvents({ state, perPage: PER_PAGE, signal })) {
      const event = events.find((each) => each.id === id);
      if (event !== undefined) return event;
      const oldest = events.at(-1);
      if (++pages >= MOST_PAGES_PER_STATE || (oldest !== undefined && oldest.createdAt < createdAt)) break;
    }
  }
  return null;
}
