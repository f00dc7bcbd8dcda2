import * as z from "zod";
import { type DeviceId, type InvitationDigest, invitationDigest } from "../../shared/identifiers.ts";
/** Who may hold a lease: one user device, or one invitation. */
export type Holder =
  | { kind: "device"; device: DeviceId; userId: string }
  | { kind: "invitation"; invitation: InvitationDigest };

export const holderKeySchema = z.string().brand<"HolderKey">();
export type HolderKey = z.infer<typeof holderKeySchema>;

const INVITATION_PREFIX = "invitation:";

/** The key of a holder's lease. Injective, because `device` contains no colon. */
export function holderKey(holder: Holder): HolderKey {
  switch (holder.kind) {
    case "device":
      return holderKeySchema.parse(`device:${holder.device}:${holder.userId}`);
    case "invitation":
      return holderKeySchema.parse(`${INVITATION_PREFIX}${holder.invitation}`);
  }
}

/** @returns null if the holder is a user device */
export function invitationOf(holder: HolderKey): InvitationDigest | null {
  return holder.startsWith(INVITATION_PREFIX) ? invitationDigest.parse(holder.slice(INVITATION_PREFIX.length)) : null;
}

/** The holder of the lease behind a badge row: the invitation, if there was one, even after it was claimed. */
export function badgeHolder(badge: {
  device: DeviceId | null;
  userId: string | null;
  invitation: InvitationDigest | null;
}): Holder | null {
  if (badge.invitation !== null) return { kind: "invitation", invitation: badge.invitation };
  if (badge.device === null || badge.userId === null) return null;
  return { kind: "device", device: badge.device, userId: badge.userId };
}
