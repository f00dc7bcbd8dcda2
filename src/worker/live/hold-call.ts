import { ApiError } from "../api-error.ts";
import { applicationForStatusLists, type StatusListener } from "../applications/credentials.ts";
import type { Context } from "../context.ts";
import { emptyDelta, signDelta } from "./door-delta.ts";

/**
 * Holds a call until a badge's status has changed, or for `LIVE_HOLD_MILLISECONDS`.
 *
 * @param have the last change that the caller has
 * @returns a delta as a compact JWS; it is empty if nothing has changed
 * @throws ApiError UNKNOWN_STATUSLIST; RATE_LIMITED when a later call has replaced this one; INVALID_CREDENTIALS when the secret was
 * retired meanwhile
 * @throws Unavailable
 */
export async function holdCall(
  context: Context,
  { application, door }: StatusListener,
  clientAddress: string,
  have: number,
): Promise<string> {
  const { id: applicationId } = application;
  const currentSettings = () => applicationForStatusLists(context, clientAddress, applicationId);
  await currentSettings();
  const message = await context.live.listen(applicationId, { door: door && { id: door.id, name: door.name }, have });
  // The signing key may have been rotated meanwhile.
  if (message === null) return signDelta(context, await currentSettings(), emptyDelta(have), context.now());
  if ("refused" in message) {
    if (door && message.refused === "INVALID_CREDENTIALS") context.applicationCache.forgetDoor(applicationId, door);
    throw new ApiError(message.refused, { applicationId });
  }
  return message.jwt;
}
