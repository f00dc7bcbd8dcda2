import type { InvitationDigest } from "../../shared/identifiers.ts";
import type { Context } from "../context.ts";
import { writeExpiry, writeRevocation } from "../storage/invitation-ends.ts";
import type { EventId } from "../storage/webhook-events.ts";
import { sendWakeUps } from "../webhooks/wake-up.ts";

/** Revokes an invitation if it is pending and not past its time. The caller reads it again to see the result. */
export async function revokePending(context: Context, digest: InvitationDigest): Promise<void> {
  wakeEvents(context, await writeRevocation(context.db, digest, context.now()));
}

/** Expires an invitation if it is pending and past its time. The caller reads it again to see the result. */
export async function expirePending(context: Context, digest: InvitationDigest): Promise<void> {
  wakeEvents(context, await writeExpiry(context.db, digest, context.now()));
}

/** Sends wake-ups for the events of ended invitations, without awaiting them. */
export function wakeEvents({ defer, queue }: Context, events: readonly EventId[]): void {
  for (const [applicationId, ofOne] of Map.groupBy(events, (event) => event.applicationId)) {
    const eventIds = ofOne.map(({ eventId }) => eventId);
    defer(sendWakeUps(queue, applicationId, eventIds));
  }
}
