import type { z } from "zod";
import type { badgeRequest, invitationRequest, metadata } from "../shared/requests.ts";
import type { badge, existingBadge, invitation, newBadge, revokedInvitation } from "../shared/responses.ts";
import { isObject } from "./json.ts";

/**
 * What the service takes and answers. All of it is typed by the service's own schemas, of which nothing but the types
 * comes here; answers are checked by hand, so that no schema library is bundled into an app.
 */

/** `userId`, `metadata` and `invitationToken` of POST /v1/badge (contract section 2). */
export type BadgeRequest = z.input<typeof badgeRequest>;
export type Metadata = z.infer<typeof metadata>;
/** Of POST /v1/invitation (contract section 5). */
export type InvitationRequest = z.input<typeof invitationRequest>;

/**
 * The badge of a user device: its number, and when it is `created` its `publicKey`, base64 of the SPKI DER. Created means
 * new, or new by its invitation. The key comes with the 201 answer alone; when that answer was lost, the repeated request
 * finds the badge there already. The application's key set, at `/v1/applications/{applicationId}/jwks.json`, has the key
 * at any time.
 */
export type IssuedBadge =
  | ({ created: true } & z.infer<typeof newBadge>)
  | ({ created: false } & z.infer<typeof existingBadge>);

/** A badge as the application's server sees it; `id` is its number. */
export type ListedBadge = z.infer<typeof badge>;

export interface BadgePage {
  badges: ListedBadge[];
  /** Where the next page starts; null on the last. */
  nextCursor: string | null;
}

/** `id` is the invitation token: whoever presents it first gets the badge. `badgeId` is the number reserved. */
export type Invitation = z.infer<typeof invitation>;

export type RevokedInvitation = z.infer<typeof revokedInvitation>;

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

const METADATA_FIELDS = ["deviceModel", "os", "osVersion", "sdkVersion"] as const satisfies (keyof Metadata)[];

export function readMetadata(value: unknown): Metadata | null {
  if (!isObject(value)) return null;
  const known: Metadata = {};
  for (const name of METADATA_FIELDS) {
    const field = value[name];
    if (field !== undefined && typeof field !== "string") return null;
    if (field !== undefined) known[name] = field;
  }
  return known;
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
