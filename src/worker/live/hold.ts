import { type Listener, requireStatusLists } from "../applications/authentication.ts";
import type { Context } from "../context.ts";
import { Refusal } from "../refusal.ts";
import { emptyDelta, signDelta } from "./delta.ts";

/**
 * Holds a call until a badge's status has changed (contract section 26).
 *
 * @param have the last change that the caller has
 * @returns a compact JWS
 * @throws Refusal UNKNOWN_STATUSLIST; RATE_LIMITED when a later call has replaced this one; INVALID_CREDENTIALS when the secret was
 * retired meanwhile
 * @throws Unavailable
 */
export async function holdCall(
  context: Context,
  { application, door }: Listener,
  clientAddress: string,
  have: number,
): Promise<string> {
  const { id: applicationId } = application;
  const current = await requireStatusLists(context, clientAddress, applicationId);
  const message = await context.live.listen(applicationId, { door: door && { id: door.id, name: door.name }, have });
  if (message === null) return signDelta(context, current, emptyDelta(have), context.now());
  if ("refused" in message) {
    if (door && message.refused === "INVALID_CREDENTIALS") context.registry.forgetDoor(applicationId, door);
    throw new Refusal(message.refused, { applicationId });
  }
  return message.jwt;
}
