import type * as z from "zod";
import { invitationDigestOf } from "../../shared/identifiers.ts";
import type { describedInvitation } from "../../shared/responses.ts";
import { ApiError } from "../api-error.ts";
import type { Application } from "../applications/application-cache.ts";
import type { Context } from "../context.ts";
import { findDescription } from "../storage/invitation-description.ts";
import { shownTimes } from "./shown-times.ts";

/**
 * Describes an invitation to the holder of its token, and consumes nothing. The result has the invitation's own name,
 * not the user who claimed it.
 *
 * @throws ApiError UNKNOWN_INVITATION
 * @throws Unavailable
 */
export async function describeInvitation(
  { db, now }: Pick<Context, "db" | "now">,
  { id }: Application,
  token: string,
): Promise<z.infer<typeof describedInvitation>> {
  const found = await findDescription(db, id, await invitationDigestOf(token));
  if (!found) throw new ApiError("UNKNOWN_INVITATION");
  const { state, expiresAt, expiresAtTime, name, userId, applicationName } = found;
  return {
    // The allocator records an expiry later (contract section 19).
    state: state === "pending" && expiresAtTime <= now() ? "expired" : state,
    expiresAt,
    ...shownTimes(found),
    ...(name !== null && { name }),
    ...(userId !== null && { userId }),
    applicationName,
  };
}
