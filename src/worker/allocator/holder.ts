/** Who may hold a lease: one user device, or one invitation. */
export type Holder = { kind: "device"; device: string; userId: string } | { kind: "invitation"; invitation: string };

/** The key of a holder's lease. Injective, because `device` contains no colon. */
export function holderKey(holder: Holder): string {
  switch (holder.kind) {
    case "device":
      return `device:${holder.device}:${holder.userId}`;
    case "invitation":
      return `invitation:${holder.invitation}`;
  }
}

/** The holder of the lease behind a badge row: the invitation, if there was one, even after it was claimed. */
export function badgeHolder(badge: {
  device: string | null;
  userId: string | null;
  invitation: string | null;
}): Holder | null {
  if (badge.invitation !== null) return { kind: "invitation", invitation: badge.invitation };
  if (badge.device === null || badge.userId === null) return null;
  return { kind: "device", device: badge.device, userId: badge.userId };
}
