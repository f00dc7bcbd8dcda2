import type { Context } from "../context.ts";
import { makeCurrent, type StoredBadge, updateMetadata } from "../storage/badges.ts";

export interface BadgeRequest {
  /** Keyed digest of the udid. */
  device: string;
  userId: string;
  /** JSON text with the known fields in one order, or null when none was sent. */
  metadata: string | null;
}

/** `created` once for a badge, `existing` ever after (contract section 1). */
export type IssuedBadge = { kind: "created"; number: number; publicKey: string } | { kind: "existing"; number: number };

/** A login makes the badge the device's current one, and newer metadata replaces what is stored. */
export async function answerExisting(
  context: Context,
  badge: StoredBadge,
  metadata: string | null,
): Promise<IssuedBadge> {
  if (badge.currentNumber !== badge.number) await makeCurrent(context.db, badge.number, metadata);
  else if (metadata !== null && metadata !== badge.metadata) await updateMetadata(context.db, badge.number, metadata);
  return { kind: "existing", number: badge.number };
}
