import type { ListedEvent } from "../../client/index.ts";
import type { Notice, Notify } from "../parts/notice.tsx";
import { type Session, SessionEnded } from "../session.ts";
import { eventWords, outcomeWord } from "../words.ts";
import { findEvent } from "./find-event.ts";

/** Pauses between polls of the result: 40 seconds in all, because a receiver may take 15 to respond. */
const POLL_PAUSES_SECONDS = [0.5, 1, 1.5, 2, 3, 4, 5, 5, 6, 6, 6] as const;

/** Sends a delivery again, says so, and polls until the result is known. */
export async function sendAgain(session: Session, event: ListedEvent, notify: Notify, onChange: () => void) {
  const name = `“${eventWords(event.event)}”`;
  const { state } = await session.run((server, signal) => server.replayEvent(event.id, { signal }));
  onChange();
  if (state === "held") {
    return notify({ text: `${name} is on hold: it is sent when deliveries are released.`, tone: "warning" });
  }
  notify({ text: `${name} is being sent again.` });
  try {
    notify(await outcomeOf(session, event, name));
  } catch (error) {
    if (error instanceof SessionEnded) return;
    notify({ text: `${name}: the result could not be read. Refresh the list later.`, tone: "warning" });
  }
  onChange();
}

async function outcomeOf(session: Session, event: ListedEvent, name: string): Promise<Notice> {
  for (const seconds of POLL_PAUSES_SECONDS) {
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    const now = await session.run((server, signal) => findEvent(server, event, signal));
    if (now === null) break;
    // A replay resets the attempts.
    if (now.state === "pending" && now.attempts === 0) continue;
    return outcomeNotice(now, name);
  }
  return { text: `${name}: the result is not known yet. Refresh the list later.`, tone: "warning" };
}

function outcomeNotice({ state, lastOutcome }: ListedEvent, name: string): Notice {
  if (state === "delivered") return { text: `${name} was sent again: the receiver has confirmed it.` };
  const why = lastOutcome === null ? "" : `: ${outcomeWord(lastOutcome)}`;
  const then = state === "pending" ? " It is retried automatically." : "";
  return { text: `${name} was sent again and failed${why}.${then}`, tone: "bad" };
}
