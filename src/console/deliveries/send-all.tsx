import { useState } from "preact/hooks";
import type { ListedEvent } from "../../client/index.ts";
import { ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { eachOf } from "../parts/each-of.ts";
import { useLoaded, useSession } from "../parts/hooks.ts";
import type { Notice } from "../parts/notice.tsx";
import { Show } from "../parts/states.tsx";
import { counted } from "../parts/texts.tsx";
import { SessionEnded } from "../session.ts";
import { listProblems } from "./list-problems.ts";

/** For more, there is the script: `webhook replay ID --all-exhausted`. */
const MOST = 2000;

/** Sends every delivery with a problem again. */
export function SendAll({ onDone }: { onDone: () => void }) {
  const [isAsking, setAsking] = useState(false);
  return (
    <div class="actions">
      <button type="button" onClick={() => setAsking(true)}>
        Send all again…
      </button>
      {isAsking && <SendAllDialog onDone={onDone} onClose={() => setAsking(false)} />}
    </div>
  );
}

function SendAllDialog({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const session = useSession();
  const problems = useLoaded(async (server, signal) => {
    const found: ListedEvent[] = [];
    for await (const { events } of listProblems(server, 1000, signal)) {
      found.push(...events);
      if (found.length >= MOST) break;
    }
    return found.slice(0, MOST);
  });
  const [sent, setSent] = useState<number | null>(null);
  const act = async (_: string | undefined, closed: AbortSignal): Promise<Notice> => {
    const results = { pending: 0, held: 0, failed: 0 };
    const send = async ({ id }: ListedEvent) => {
      try {
        results[(await session.run((server, signal) => server.replayEvent(id, { signal }))).state]++;
      } catch (error) {
        if (error instanceof SessionEnded) throw error;
        results.failed++;
      }
      setSent(results.pending + results.held + results.failed);
    };
    await eachOf(problems.value ?? [], send, closed);
    onDone();
    const parts = [
      `${counted(results.pending, "delivery is", "deliveries are")} being sent again.`,
      results.held > 0 && `${counted(results.held, "waits", "wait")} until deliveries are released.`,
      results.failed > 0 && `${counted(results.failed, "delivery", "deliveries")} could not be sent again.`,
    ];
    return { text: parts.filter(Boolean).join(" "), tone: results.failed > 0 ? "bad" : "good" };
  };
  const number = problems.value?.length ?? 0;
  return (
    <ConfirmDialog
      title="Send all deliveries with problems again?"
      action={number === 0 ? null : `Send ${counted(number, "delivery", "deliveries")} again`}
      act={act}
      asksReason={false}
      onClose={onClose}
    >
      <Show loaded={problems} what="deliveries with problems">
        {() => (
          <>
            <p>
              {counted(number, "delivery", "deliveries")} {number === 1 ? "is" : "are"} retried, given up or on hold.
              Each is sent once more now, and retried as usual if it fails. Does the receiver work again?
            </p>
            {sent !== null && (
              <p role="status">
                {sent} of {counted(number, "delivery", "deliveries")}…
              </p>
            )}
          </>
        )}
      </Show>
    </ConfirmDialog>
  );
}
