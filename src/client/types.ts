import type { MetadataField } from "../shared/metadata-fields.ts";

/**
 * What goes over the wire, as plain types: a program that uses the client needs no schema library to compile. The types
 * equal the service's schemas, which `test/client/types-equal-schemas.ts` checks when it is compiled.
 */

/** What a device reports about itself: up to 256 characters in each field. */
export type Metadata = { [field in MetadataField]?: string | undefined };

/** Body of POST /v1/badge (contract section 2). */
export interface BadgeRequest {
  /** The application's own ID of the user who has logged in: 1 to 255 characters. */
  userId: string;
  metadata?: Metadata | undefined;
  /** The `id` of an invitation, if the user was invited. */
  invitationToken?: string | undefined;
}

/** The response when the badge is new, or new to this user device because it has just claimed an invitation. */
export interface NewBadge {
  badgeId: string;
  /** Verifies every signature for this badge: base64 of the SPKI DER of an ECDSA P-256 key. */
  publicKey: string;
}

export interface ExistingBadge {
  badgeId: string;
}

/**
 * The badge of a user device; `badgeId` is its number. Only a `created` badge comes with its `publicKey`. If that response
 * is lost, the repeated request finds an existing badge; the key is also in the application's key set, at
 * `/v1/applications/{applicationId}/jwks.json`.
 */
export type IssuedBadge = ({ created: true } & NewBadge) | ({ created: false } & ExistingBadge);

/** A badge as the application's server sees it; `id` is its number. */
export interface ListedBadge {
  id: string;
  userId: string;
  metadata?: Metadata | undefined;
  /** Of the invitation that the badge was claimed from. */
  name?: string | undefined;
  /** Absent: the badge is active. */
  state?: "suspended" | "revoked" | "expired" | "replaced" | undefined;
  /** Before this time the badge signs nothing: ISO 8601, UTC. */
  startsAt?: string | undefined;
  /** When the badge ends: ISO 8601, UTC. Absent: it has no end. */
  expiresAt?: string | undefined;
  /** Only on pages with a filter or an order, like `changedAt`. */
  issuedAt?: string | undefined;
  changedAt?: string | undefined;
}

export interface BadgePage {
  badges: ListedBadge[];
  /** Where the next page starts; null on the last page. */
  nextCursor: string | null;
}

export const BADGE_STATES = ["active", "suspended", "revoked", "expired", "replaced"] as const;

/** Only an active badge opens doors. Revoked and replaced are final (contract section 12). */
export type BadgeState = (typeof BADGE_STATES)[number];

/** A badge in any state; `id` is its number. */
export interface Badge {
  id: string;
  userId: string;
  /** Of the invitation that the badge was claimed from. */
  name?: string | undefined;
  state: BadgeState;
  metadata?: Metadata | undefined;
  /** Before this time the badge signs nothing: ISO 8601, UTC. */
  startsAt?: string | undefined;
  /** When the badge ends or ended: ISO 8601, UTC. Absent: it has no end. */
  expiresAt?: string | undefined;
  /** RFC 7638 thumbprint of the key that the badge is bound to. Absent: it is not bound. */
  keyThumbprint?: string | undefined;
  /** ISO 8601, UTC, like the next one. */
  issuedAt: string;
  changedAt: string;
}

/** A badge after its last change (contract section 13). */
export interface BadgeChange extends Badge {
  /** Grows with every change of the application: of two versions of a badge, the higher one is newer. */
  change: number;
}

export interface ChangePage {
  changes: BadgeChange[];
  /** Where to continue, now or at any later time. Store it together with the changes. */
  cursor: string;
  /** False: with this page the copy is complete at this moment. */
  more: boolean;
}

export interface User {
  userId: string;
  /** Whether the user gets no badge. */
  blocked: boolean;
}

export interface BlockedUser extends User {
  /** Numbers of the badges that this call revoked. */
  revoked: string[];
}

/** Body of PATCH /v1/badges/{id}. */
export interface BadgeEndRequest {
  /** ISO 8601 with a zone; null for no end. */
  expiresAt: string | null;
}

/** Body of POST /v1/invitation (contract section 5). */
export interface InvitationRequest {
  /** ISO 8601 with a zone. */
  expiresAt: string;
  /** End of the badge that is claimed: ISO 8601 with a zone, at most 3,650 days ahead. */
  badgeExpiresAt?: string | undefined;
}

/** `id` is the invitation token: the first user device to present it gets the badge. */
export interface Invitation {
  id: string;
  /** The reserved number. */
  badgeId: string;
  /** Exactly as it was sent. */
  expiresAt: string;
  /** End of the badge that is claimed, exactly as it was sent. */
  badgeExpiresAt?: string | undefined;
}

export interface RevokedInvitation extends Omit<Invitation, "badgeExpiresAt"> {
  /** When it was first revoked: ISO 8601, UTC. */
  revokedAt: string;
}
