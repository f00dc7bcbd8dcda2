import { stateAt } from "../../shared/badge-lifecycle/states.ts";
import type { ErrorCode } from "../../shared/error-table.ts";
import type { DeviceId } from "../../shared/identifiers.ts";
import { mayUse } from "../allocator/decide/key-binding.ts";
import { refusalOfState } from "../allocator/decide/refused-states.ts";
import { ApiError } from "../api-error.ts";
import type { Application } from "../applications/application-cache.ts";
import type { Context } from "../context.ts";
import type { ProvenKey } from "../dpop/verify-proof.ts";
import { JwtHeaders, signJwt } from "../keys/own-jwt.ts";
import { Unavailable } from "../platform.ts";
import {
  findSigningBadge,
  findSigningBadgeAtNearest,
  type Signer,
  type SigningBadge,
} from "../storage/device-badges.ts";
import { statusClaim } from "./status-lists/list-index.ts";

/** `typ` of badge signatures, so that no other JWT by the same key is accepted as one (RFC 8725 section 3.11). */
const HEADERS = new JwtHeaders("badge-signature+jwt");

/** A device's request for a signature. */
export interface SignRequest {
  /** Keyed digest of the udid. */
  device: DeviceId;
  /** The request's base64 text, unchanged. */
  clientSignature: string;
  /** Number of the badge that signs; null for the badge of the proved key, or the device's current one. */
  badgeNumber: number | null;
  /** Null without a proof. */
  key: ProvenKey | null;
  /** The bookmark that the caller sent; null if it sent none. */
  bookmark: string | null;
}

/**
 * Attests which badge presented which client signature, and when (contract section 3). The client signature itself is not
 * verified: the building defines it. The signature of a bound badge names its key, so a door can ask the phone to prove
 * possession of that key (RFC 7800 section 3.2).
 *
 * @returns a compact JWS, ES256, by the key that the badge was issued with
 * @throws ApiError
 */
export async function signBadge(
  context: Context,
  application: Application,
  { device, clientSignature, badgeNumber, key: provenKey, bookmark }: SignRequest,
): Promise<string> {
  const thumbprint = provenKey?.thumbprint ?? null;
  const signer = { applicationId: application.id, device, thumbprint, number: badgeNumber };
  const badge = await requireSigningBadge(context, application, signer, bookmark);
  const now = context.now();
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
    ...(badge.startsAt !== null && { nbf: Math.floor(badge.startsAt / 1000) }),
    ...(expiresAt !== null && { exp: expiresAt }),
    ...(await statusClaim(context, application, badge.ordinal)),
    ...(badge.keyThumbprint !== null && provenKey !== null && { cnf: { jwk: provenKey.jwk } }),
  };
  return signJwt(HEADERS.of(key), claims, await context.unsealedKeys.signingKey(application.id, key.kid, key));
}

/**
 * An active badge that the key may use. A recent replica near the caller may accept; only the primary refuses (contract
 * section 16).
 *
 * @throws ApiError
 */
async function requireSigningBadge(
  context: Context,
  application: Application,
  signer: Signer,
  bookmark: string | null,
): Promise<SigningBadge> {
  const { db } = context;
  const { thumbprint } = signer;
  const nearest = bookmark === null ? null : await findSigningBadgeAtNearest(db, signer, bookmark, context.now());
  if (nearest?.source === "fresh-replica" && nearest.badge) {
    const isActive = refusalOf(nearest.badge, context.now()) === null;
    if (isActive && mayUse(nearest.badge, thumbprint, application)) return nearest.badge;
  }
  const badge = nearest?.source === "primary" ? nearest.badge : await findSigningBadge(db, signer);
  if (!badge) throw new ApiError("UNKNOWN_BADGE");
  if (!mayUse(badge, thumbprint, application)) throw new ApiError("INVALID_PROOF");
  const code = refusalOf(badge, context.now());
  if (code !== null) throw new ApiError(code);
  return badge;
}

/** The error code for a badge that is not active or has not begun; null if it may sign. */
function refusalOf(badge: SigningBadge, now: number): ErrorCode | null {
  const code = refusalOfState(stateAt(badge, now));
  return code === null && badge.startsAt !== null && now < badge.startsAt ? "EARLY_BADGE" : code;
}

/** The earlier of two times; null means never. */
function earliest(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}

/**
 * The key that the badge was issued with. If the cached application lacks the key, the application is reloaded once.
 *
 * @throws Unavailable if D1 was restored since the badge was read: the allocator will send the key again
 */
async function signingKeyOf(context: Context, application: Application, id: number | null) {
  const byId = (known: Application | undefined) => known?.signingKeys.find((key) => key.id === id);
  const key =
    byId(application) ?? byId(await context.applicationCache.reload(context.db, application.id, context.now()));
  if (!key) throw new Unavailable("D1", new Error("the badge's signing key is missing"));
  return key;
}
