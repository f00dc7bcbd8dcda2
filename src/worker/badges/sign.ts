import { CompactSign } from "jose";
import type { DeviceId } from "../../shared/identifiers.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { Refusal } from "../refusal.ts";
import { findCurrentBadge } from "../storage/badges.ts";
import { requireActive } from "./existing.ts";
import { statusClaim } from "./status-index.ts";

/** `typ` of the service's signatures, so that no other JWT of the same key is accepted as one (RFC 8725 section 3.11). */
export const SIGNATURE_TYPE = "badge-signature+jwt";

const encoder = new TextEncoder();

/**
 * Attests which badge presented which client signature, and when (contract section 3). The client signature itself is not
 * verified: the building defines it.
 *
 * @param clientSignature the request's base64 text, unchanged
 * @returns a compact JWS, ES256, by the key that the badge was issued with
 * @throws Refusal
 */
export async function signBadge(
  context: Context,
  application: Application,
  device: DeviceId,
  clientSignature: string,
): Promise<string> {
  const badge = await findCurrentBadge(context.db, { applicationId: application.id, device });
  if (!badge) throw new Refusal("UNKNOWN_BADGE");
  const now = context.now();
  requireActive(badge, now);
  const key = await signingKeyOf(context, application, badge.signingKeyId);
  const issuedAt = Math.floor(now / 1000);
  const expiresAt = earliest(
    application.signatureLifetimeSeconds && issuedAt + application.signatureLifetimeSeconds,
    badge.expiresAt && Math.floor(badge.expiresAt / 1000),
  );
  const claims = {
    client_signature: clientSignature,
    sub: String(badge.number),
    aud: application.id,
    iat: issuedAt,
    ...(expiresAt !== null && { exp: expiresAt }),
    ...(await statusClaim(context, application, badge.position)),
  };
  return new CompactSign(encoder.encode(JSON.stringify(claims)))
    .setProtectedHeader({ alg: "ES256", kid: key.kid, typ: SIGNATURE_TYPE })
    .sign(await context.custody.signingKey(application.id, key.kid, key));
}

/** The earlier of two times; null counts as never. */
function earliest(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}

/** The key that the badge was issued with. If it is newer than the cached application, that is reloaded once. */
async function signingKeyOf(context: Context, application: Application, id: number | null) {
  const byId = (known: Application | undefined) => known?.signingKeys.find((key) => key.id === id);
  const key = byId(application) ?? byId(await context.registry.findFresh(context.db, application.id, context.now()));
  if (!key) throw new Error("an issued badge must name a signing key of its application");
  return key;
}
