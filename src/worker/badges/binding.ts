import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import type { AcceptedProof } from "../proofs/proof.ts";

/** A key whose private half the caller has proved to hold. */
export type ProvenKey = Pick<AcceptedProof, "thumbprint" | "jwk">;

/** What decides whether a key may use a badge. */
export interface KeyOfBadge {
  /** Of the key that it is bound to; null: it is not bound. */
  keyThumbprint: string | null;
  /** Until when another key may take its place, in milliseconds; null: none may. */
  rebindUntil: number | null;
}

/**
 * Whether the badge may be used by a caller who has proved this key, or no key (contract section 15).
 *
 * @param thumbprint null: no key was proved
 */
export function mayUse(
  { keyThumbprint }: Pick<KeyOfBadge, "keyThumbprint">,
  thumbprint: string | null,
  { requireProof }: Pick<Application, "requireProof">,
): boolean {
  return keyThumbprint === null ? !requireProof : keyThumbprint === thumbprint;
}

/**
 * Whether a login with this key binds the badge to it: while the badge is to be rebound, or unbound badges of the application
 * are to be bound (contract section 15).
 */
export function mayBind(
  { keyThumbprint, rebindUntil }: KeyOfBadge,
  thumbprint: string | null,
  { bindUntil }: Pick<Application, "bindUntil">,
  now: number,
): thumbprint is string {
  if (thumbprint === null || thumbprint === keyThumbprint) return false;
  const isAhead = (time: number | null) => time !== null && now < time;
  return isAhead(rebindUntil) || (keyThumbprint === null && isAhead(bindUntil));
}

/**
 * Whether the badge may be used. Where the application's settings decide, a refusal rests on settings at most a second old: an
 * administrator may just have stopped requiring proofs.
 */
export async function mayUseNow(
  context: Pick<Context, "registry" | "db" | "now">,
  application: Application,
  badge: Pick<KeyOfBadge, "keyThumbprint">,
  thumbprint: string | null,
): Promise<boolean> {
  if (mayUse(badge, thumbprint, application)) return true;
  return badge.keyThumbprint === null && !(await requiresProof(context, application));
}

/** Whether the application requires proofs; a yes is at most a second old. */
export async function requiresProof(
  { registry, db, now }: Pick<Context, "registry" | "db" | "now">,
  application: Application,
): Promise<boolean> {
  if (!application.requireProof) return false;
  const recent = await registry.findForDenial(db, application.id, now());
  return recent?.requireProof ?? true;
}
