import { useEffect, useRef, useState } from "preact/hooks";
import type { ListedEvent } from "../../client/index.ts";
import { useSession } from "../parts/hooks.ts";
import { type Notice, useNotices } from "../parts/notice.tsx";
import { SessionEnded } from "../session.ts";
import { eventWords, outcomeWord } from "../words.ts";
import { findEvent } from "./find-event.ts";

/** Between looks at how it went: 40 seconds, since a receiver may take 15 to respond. */
const LOOK_AFTER_SECONDS = [0.5, 1, 1.5, 2, 3, 4, 5, 5, 6, 6, 6] as const;

export interface SendAgain {
  /** As it is now. */
  event: ListedEvent;
  /** Whether it is on its way, so that nobody knows yet how it went. */
  isSending: boolean;
  /** When it was sent again by this page. ISO 8601 in UTC; null: it was not. */
  sentAt: string | null;
  send: () => Promise<Notice>;
}

/** Sends a delivery again, and looks until it is known how that went. */
export function useSendAgain(given: ListedEvent): SendAgain {
  const session = useSession();
  const { follow } = useNotices();
  const [event, setEvent] = useState(given);
  const [isSending, setSending] = useState(false);
  const [sentAt, setSentAt] = useState<string | null>(null);
  const isShown = useRef(true);
  useEffect(
    () => () => {
      isShown.current = false;
    },
    [],
  );
  const about = [event.id];
  const name = `“${eventWords(event.event)}”`;

  const watch = async () => {
    for (const seconds of LOOK_AFTER_SECONDS) {
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      if (!isShown.current) return;
      const now = await session.run((server, signal) => findEvent(server, event, signal));
      if (now === null) break;
      // A replay starts counting again.
      if (now.state === "pending" && now.attempts === 0) continue;
      setEvent(now);
      setSending(false);
      return follow(outcomeNotice(now, name));
    }
    setSending(false);
    follow({ text: `${name}: it is not known yet how it went. Load the list again later.`, about, tone: "warning" });
  };
  const send = async (): Promise<Notice> => {
    const { state } = await session.run((server, signal) => server.replayEvent(event.id, { signal }));
    setEvent((before) => ({ ...before, state, attempts: 0, nextAttemptAt: null, deliveredAt: null }));
    setSentAt(new Date().toISOString());
    if (state === "held") {
      return { text: `${name} is on hold: it is sent when deliveries are released.`, about, tone: "warning" };
    }
    setSending(true);
    watch().catch((error: unknown) => {
      if (error instanceof SessionEnded) return;
      setSending(false);
      follow({ text: `${name}: the service does not say how it went. Load the list again.`, about, tone: "warning" });
    });
    return { text: `${name} is being sent again.`, about };
  };
  return { event, isSending, sentAt, send };
}

function outcomeNotice({ id, state, lastOutcome }: ListedEvent, name: string): Notice {
  if (state === "delivered") return { text: `${name} was sent again: the receiver has confirmed it.`, about: [id] };
  const why = lastOutcome === null ? "" : `: ${outcomeWord(lastOutcome)}`;
  const then = state === "pending" ? " It is retried by itself." : "";
  return { text: `${name} was sent again and failed${why}.${then}`, about: [id], tone: "bad" };
}
