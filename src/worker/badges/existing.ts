import { type BadgeLife, type BadgeState, stateAt } from "../../shared/badge-life/states.ts";
import type { DeviceId } from "../../shared/identifiers.ts";
import type { Context } from "../context.ts";
import { Refusal } from "../refusal.ts";
import { recordLogin, type StoredBadge } from "../storage/badges.ts";

export interface BadgeRequest {
  /** Keyed digest of the udid. */
  device: DeviceId;
  userId: string;
  /** JSON text with the known fields in one order, or null when none was sent. */
  metadata: string | null;
}

/** `created` in the response that issues the badge, `existing` in every later one (contract section 1). */
export type IssuedBadge = { kind: "created"; number: number; publicKey: string } | { kind: "existing"; number: number };

/**
 * Device calls are for active badges only (contract section 12).
 *
 * @throws Refusal by the badge's state
 */
export function requireActive(badge: Pick<BadgeLife, "state" | "expiresAt">, now: number): void {
  const code = REFUSED_STATES[stateAt(badge, now)];
  if (code !== null) throw new Refusal(code);
}

const REFUSED_STATES = {
  active: null,
  suspended: "SUSPENDED_BADGE",
  revoked: "REVOKED_BADGE",
  expired: "EXPIRED_BADGE",
  // Read just before a claim superseded it.
  replaced: "REVOKED_BADGE",
} as const satisfies Record<BadgeState, string | null>;

/**
 * Logs in with an existing badge: it becomes the device's current one, and new metadata replaces the stored one.
 *
 * @param metadata JSON text as sent; null: keep the stored one
 * @throws Refusal unless the badge is active
 */
export async function respondWithExisting(
  context: Context,
  badge: StoredBadge,
  metadata: string | null,
): Promise<IssuedBadge> {
  const now = context.now();
  requireActive(badge, now);
  const isCurrent = badge.currentNumber === badge.number;
  const newMetadata = metadata === badge.metadata ? null : metadata;
  if (!isCurrent || newMetadata !== null) {
    const login = { metadata: newMetadata, readMetadata: badge.metadata, isCurrent };
    await recordLogin(context.db, badge.number, login, now);
  }
  return { kind: "existing", number: badge.number };
}
