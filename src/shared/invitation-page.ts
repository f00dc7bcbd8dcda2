import * as z from "zod";
import { INVITATION_STATES } from "./badge-lifecycle/states.ts";
import {
  badgeExpiresAt,
  badgeNumber,
  badgeStartsAt,
  described,
  invitation,
  invitationFields,
  time,
} from "./responses.ts";

/** The schema of a list of invitations. */

const invitationState = described(z.enum(INVITATION_STATES), "State of the invitation.", "pending");

export const invitationPage = z.object({
  invitations: z
    .array(
      z.object({
        badgeId: badgeNumber,
        state: invitationState,
        createdAt: described(time, "When it was created.", "2027-01-15T08:00:00.500Z"),
        expiresAt: invitationFields.expiresAt,
        badgeExpiresAt: badgeExpiresAt.optional(),
        badgeStartsAt: badgeStartsAt.optional(),
        name: invitation.shape.name,
        userId: described(z.string(), "The user who claimed it, or who is to.", "alice").optional(),
      }),
    )
    .meta({
      description:
        "Newest first; with `from` or `until`, in the order in which visits begin. Tokens are never listed: the service has only their digests.",
    }),
});
