import type { Context } from "../context.ts";
import { writeExpiry, writeRevocation } from "../storage/invitations.ts";
import type { EventId } from "../storage/webhook-events.ts";
import { sendWakeUps } from "../webhooks/wake-up.ts";

/** Revokes an invitation if it is pending and in time. What came of it, the next look tells. */
export async function revokePending(context: Context, digest: string): Promise<void> {
  wake(context, await writeRevocation(context.db, digest, context.now()));
}

/** Expires an invitation if it is pending and past its time. What came of it, the next look tells. */
export async function expirePending(context: Context, digest: string): Promise<void> {
  wake(context, await writeExpiry(context.db, digest, context.now()));
}

/** Has the events of ended invitations sent at once. Nobody waits for it. */
export function wake({ defer, queue }: Context, events: readonly EventId[]): void {
  for (const [applicationId, ofOne] of Map.groupBy(events, (event) => event.applicationId)) {
    const eventIds = ofOne.map(({ eventId }) => eventId);
    defer(sendWakeUps(queue, applicationId, eventIds));
  }
}
