import { type BadgeLife, type BadgeState, stateAt } from "../../shared/badge-life/states.ts";
import type { DeviceId } from "../../shared/identifiers.ts";
import { MAX_LOGIN_ATTEMPTS } from "../../shared/limits.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { Refusal } from "../refusal.ts";
import { findBadge, type StoredBadge, type UserDevice } from "../storage/device-badges.ts";
import { bindBadge, recordLogin } from "../storage/logins.ts";
import type { UserCheck } from "../users/user-check.ts";
import { mayBind, mayUse, mayUseNow } from "./binding.ts";

export interface BadgeRequest {
  /** Keyed digest of the udid. */
  device: DeviceId;
  userId: string;
  /** JSON text with the known fields in one order, or null when none was sent. */
  metadata: string | null;
  /** Of the key that the device proved to hold; null: none. */
  keyThumbprint: string | null;
  /** D1's state that the device knows of; null: none. */
  bookmark: string | null;
  /** Whether its user has been verified (contract section 22). */
  user: UserCheck;
}

export const userDeviceOf = ({ id }: Application, { device, userId }: BadgeRequest): UserDevice => ({
  applicationId: id,
  device,
  userId,
});

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

export const isActive = (badge: Pick<BadgeLife, "state" | "expiresAt">, now: number): boolean =>
  stateAt(badge, now) === "active";

const REFUSED_STATES = {
  active: null,
  suspended: "SUSPENDED_BADGE",
  revoked: "REVOKED_BADGE",
  expired: "EXPIRED_BADGE",
  // Read just before a claim superseded it.
  replaced: "REVOKED_BADGE",
} as const satisfies Record<BadgeState, string | null>;

/**
 * Logs in with an existing badge: it becomes the device's current one, and new metadata replaces the stored one. While the
 * badge may be bound to another key, a login with that key binds it; if a concurrent call came first, this one reads and
 * decides again.
 *
 * @throws Refusal INVALID_PROOF if it is bound to another key, or by its state unless it is active
 */
export async function respondWithExisting(
  context: Context,
  application: Application,
  request: BadgeRequest,
  found: StoredBadge,
): Promise<IssuedBadge> {
  let badge: StoredBadge | undefined = found;
  for (let attempt = 0; badge && attempt < MAX_LOGIN_ATTEMPTS; attempt++) {
    if (await logIn(context, application, request, badge)) return { kind: "existing", number: badge.number };
    badge = await findBadge(context.db, userDeviceOf(application, request));
  }
  throw new Refusal("UNAVAILABLE", { detail: "contended" });
}

/**
 * Whether a login with the badge is accepted and writes nothing, so that a recent copy near the caller decides (contract section
 * 16).
 *
 * @param now milliseconds
 */
export function isMereLogin(application: Application, request: BadgeRequest, badge: StoredBadge, now: number): boolean {
  const { isCurrent, metadata } = writesOf(request, badge);
  const { keyThumbprint } = request;
  return (
    isCurrent &&
    metadata === null &&
    mayUse(badge, keyThumbprint, application) &&
    !mayBind(badge, keyThumbprint, application, now) &&
    isActive(badge, now)
  );
}

/** What a login changes in its badge, besides binding it. */
function writesOf({ metadata }: Pick<BadgeRequest, "metadata">, badge: StoredBadge) {
  return {
    isCurrent: badge.currentNumber === badge.number,
    metadata: metadata === badge.metadata ? null : metadata,
  };
}

/** @returns false if the badge was to be bound and has changed since it was read */
async function logIn(
  context: Context,
  application: Application,
  request: BadgeRequest,
  badge: StoredBadge,
): Promise<boolean> {
  const { db } = context;
  const { keyThumbprint } = request;
  const now = context.now();
  const binds = mayBind(badge, keyThumbprint, application, now);
  if (!binds && !(await mayUseNow(context, application, badge, keyThumbprint))) throw new Refusal("INVALID_PROOF");
  requireActive(badge, now);
  const { isCurrent, metadata } = writesOf(request, badge);
  if (binds) {
    const login = { isCurrent, metadata, readChange: badge.change };
    return bindBadge(db, badge.number, keyThumbprint, login, now);
  }
  if (!isCurrent || metadata !== null) {
    await recordLogin(db, badge.number, { isCurrent, metadata, readMetadata: badge.metadata }, now);
  }
  return true;
}
