import { METADATA_FIELDS } from "../shared/metadata-fields.ts";
import { isObject } from "./json.ts";
import type { Invitation, IssuedBadge, ListedBadge, Metadata, RevokedInvitation } from "./types.ts";

/**
 * Readers of response bodies: null for a body that is not what the contract says. Written by hand, so that an app does
 * not bundle a schema library. Unknown fields are dropped.
 */

export function readIssuedBadge(status: number, body: unknown): IssuedBadge | null {
  if (!isObject(body) || typeof body.badgeId !== "string") return null;
  const { badgeId, publicKey } = body;
  if (status !== 201) return { created: false, badgeId };
  return typeof publicKey === "string" ? { created: true, badgeId, publicKey } : null;
}

export function readSignature(body: unknown): string | null {
  return isObject(body) && typeof body.signature === "string" ? body.signature : null;
}

export function readBadges(body: unknown): ListedBadge[] | null {
  if (!isObject(body) || !Array.isArray(body.badges)) return null;
  const badges = body.badges.map(readListedBadge).filter((badge) => badge !== null);
  return badges.length === body.badges.length ? badges : null;
}

function readListedBadge(value: unknown): ListedBadge | null {
  if (!isObject(value) || typeof value.id !== "string" || typeof value.userId !== "string") return null;
  const { id, userId } = value;
  if (value.metadata === undefined) return { id, userId };
  const metadata = readMetadata(value.metadata);
  return metadata && { id, userId, metadata };
}

export function readMetadata(value: unknown): Metadata | null {
  if (!isObject(value)) return null;
  const metadata: Metadata = {};
  for (const name of METADATA_FIELDS) {
    const field = value[name];
    if (field !== undefined && typeof field !== "string") return null;
    if (field !== undefined) metadata[name] = field;
  }
  return metadata;
}

export function readInvitation(body: unknown): Invitation | null {
  if (!isObject(body)) return null;
  const { id, badgeId, expiresAt } = body;
  const isComplete = typeof id === "string" && typeof badgeId === "string" && typeof expiresAt === "string";
  return isComplete ? { id, badgeId, expiresAt } : null;
}

export function readRevokedInvitation(body: unknown): RevokedInvitation | null {
  const invitation = readInvitation(body);
  if (!invitation || !isObject(body) || typeof body.revokedAt !== "string") return null;
  return { ...invitation, revokedAt: body.revokedAt };
}
