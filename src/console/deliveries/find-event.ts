import type { ListedEvent, ServerClient } from "../../client/index.ts";

const PER_PAGE = 200;
/** A look-up ends there, because it may be repeated and lists may be long. */
const MOST_PAGES_PER_STATE = 10;

/** In the order in which a delivery being sent goes through them. */
const STATES = ["pending", "delivered", "held", "exhausted"] as const;

/**
 * Finds an event as it is now. The service has no call for one event, so this reads the lists, newest first, until they are
 * older than the event.
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
