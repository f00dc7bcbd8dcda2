import { type KeyOfBadge, mayBind, mayUse } from "../allocator/decide/keys.ts";
import type { Application } from "../applications/application-cache.ts";
import type { Context } from "../context.ts";
import type { AcceptedProof } from "../dpop/verify.ts";
import { Unavailable } from "../platform.ts";

/** A key whose private half the caller has proved to hold. */
export type ProvenKey = Pick<AcceptedProof, "thumbprint" | "jwk">;

/**
 * Whether the badge may be used. Where the application's settings decide, a refusal rests on settings at most a second old: an
 * administrator may just have stopped requiring proofs.
 */
export async function mayUseNow(
  context: Pick<Context, "applicationCache" | "db" | "now">,
  application: Application,
  badge: Pick<KeyOfBadge, "keyThumbprint">,
  thumbprint: string | null,
): Promise<boolean> {
  if (mayUse(badge, thumbprint, application)) return true;
  return badge.keyThumbprint === null && !(await requiresProof(context, application));
}

/** Whether the application requires proofs; a yes is at most a second old. */
export async function requiresProof(
  { applicationCache, db, now }: Pick<Context, "applicationCache" | "db" | "now">,
  application: Application,
): Promise<boolean> {
  if (!application.requireProof) return false;
  const recent = await applicationCache.findRecent(db, application.id, now());
  return recent?.requireProof ?? true;
}

/**
 * The application, at most a second old where its settings decide that a proved key does not bind the badge: an administrator
 * may just have set `--bind-until`.
 */
export async function settingsOfBinding(
  { applicationCache, db, now }: Pick<Context, "applicationCache" | "db" | "now">,
  application: Application,
  badge: KeyOfBadge,
  thumbprint: string | null,
): Promise<Application> {
  const isUnbound = thumbprint !== null && badge.keyThumbprint === null;
  if (!isUnbound || mayBind(badge, thumbprint, application, now())) return application;
  try {
    return (await applicationCache.findRecent(db, application.id, now())) ?? application;
  } catch (error) {
    // Without the primary it is a login like any other.
    if (error instanceof Unavailable) return application;
    throw error;
  }
}
