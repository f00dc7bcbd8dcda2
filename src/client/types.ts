import type { MetadataField } from "../shared/metadata-fields.ts";

/**
 * The types of requests and responses, as plain types, so that a program that uses the client needs no schema library
 * to compile. The types equal the service's schemas, which `test/client/types-equal-schemas.ts` checks when it is
 * compiled.
 */

/** What a device reports about itself: up to 256 characters in each field. */
export type Metadata = { [field in MetadataField]?: string | undefined };

/** Body of POST /v1/badge. */
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
  /** RFC 7638 thumbprint of the key that the badge is bound to; absent if unbound. */
  keyThumbprint?: string | undefined;
}

export interface ExistingBadge {
  badgeId: string;
  /** RFC 7638 thumbprint of the key that the badge is bound to; absent if unbound. */
  keyThumbprint?: string | undefined;
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
  /** The invitation's name of the visitor, if it has one. */
  name?: string | undefined;
  /** Absent for an active badge. */
  state?: BadgeState | undefined;
  /** Time from which the badge opens doors: ISO 8601, UTC. Absent if from its issue on. */
  startsAt?: string | undefined;
  /** End of the badge: ISO 8601, UTC. Absent without an end. */
  expiresAt?: string | undefined;
  /** Only in a list that was searched, filtered or ordered: ISO 8601, UTC. */
  issuedAt?: string | undefined;
  changedAt?: string | undefined;
  /**
   * The actor of the last change, in such a list for a person's secret. Absent if the last change was a device's login, or if
   * the history no longer has it.
   */
  changedBy?: HistoryActor | undefined;
}

/** The actor of a change. */
export interface HistoryActor {
  kind: "device" | "user" | "server" | "person" | "administrator" | "service";
  name?: string | undefined;
}

export interface BadgePage {
  badges: ListedBadge[];
  /** Where the next page starts; null on the last page. */
  nextCursor: string | null;
}

/** Only an active badge opens doors. Revoked and replaced are final (contract section 12). */
export type BadgeState = "active" | "suspended" | "revoked" | "expired" | "replaced";

/** A badge in any state; `id` is its number. */
export interface Badge {
  id: string;
  userId: string;
  state: BadgeState;
  metadata?: Metadata | undefined;
  /** The invitation's name of the visitor, if it has one. */
  name?: string | undefined;
  /** Time from which the badge opens doors: ISO 8601, UTC. Absent if from its issue on. */
  startsAt?: string | undefined;
  /** End of the badge: ISO 8601, UTC. Absent without an end. */
  expiresAt?: string | undefined;
  /** RFC 7638 thumbprint of the key that the badge is bound to; absent if unbound. */
  keyThumbprint?: string | undefined;
  /** ISO 8601, UTC. */
  issuedAt: string;
  /** When it last changed: ISO 8601, UTC. */
  changedAt: string;
}

/** A badge that was read or changed alone. */
export interface CurrentBadge extends Badge {
  /** Number of its last change, for `ifChange`. Absent if a proxy removed the response's `ETag`. */
  change?: number | undefined;
}

/** A badge after its last change. */
export interface BadgeChange extends Badge {
  /** Grows with every change of the application: of two versions of a badge, the higher one is newer. */
  change: number;
}

export interface ChangePage {
  changes: BadgeChange[];
  /** The position to continue from, now or later. Store it together with the changes. */
  cursor: string;
  /** False: with this page the mirror is complete at this moment. */
  more: boolean;
}

export interface User {
  userId: string;
  /** Whether the user is blocked. */
  blocked: boolean;
}

export interface BlockedUser extends User {
  /** Numbers of the badges that this call revoked. */
  revoked: string[];
}

/** Body of PATCH /v1/badges/{id}. Absent fields stay unchanged. */
export interface BadgeTimesRequest {
  /** ISO 8601 with a zone; null for no end. */
  expiresAt?: string | null | undefined;
  /** ISO 8601 with a zone; null if the badge opens doors from its issue on. */
  startsAt?: string | null | undefined;
  reason?: string | undefined;
}

/** A blocked user, as `listBlockedUsers` has it. */
export interface ListedBlockedUser extends User {
  /** ISO 8601, UTC. */
  blockedAt: string;
}

export interface BlockedUserPage {
  users: ListedBlockedUser[];
  /** Where the next page starts; null on the last page. */
  nextCursor: string | null;
}

export interface ErasedUser {
  /** The random user ID that replaces the erased one. If `erased` is 0, as in a repeated call, nothing has it. */
  userId: string;
  /** Number of badges from which this call erased the user. */
  erased: number;
}

/** Body of POST /v1/invitation. */
export interface InvitationRequest {
  /** ISO 8601 with a zone. */
  expiresAt: string;
  /** End of the badge that is claimed: ISO 8601 with a zone, at most 3,650 days ahead. */
  badgeExpiresAt?: string | undefined;
  /** Start of the claimed badge: ISO 8601 with a zone, before its end. */
  badgeStartsAt?: string | undefined;
  /** Name of the visitor, for the application's staff: 1 to 100 characters. */
  name?: string | undefined;
  /** The invited user; only a device that names this user can claim the invitation. */
  userId?: string | undefined;
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
  /** Start of the claimed badge, exactly as it was sent. */
  badgeStartsAt?: string | undefined;
  name?: string | undefined;
  userId?: string | undefined;
}

/** An invitation as `describeInvitation` returns it to the holder of its token. */
export interface DescribedInvitation extends Omit<Invitation, "id" | "badgeId"> {
  state: "pending" | "claimed" | "revoked" | "expired";
  /** Where the visitor is expected. */
  applicationName: string;
}

/** A refused invitation among others, with the same reason as if it were created alone. */
export interface RefusedInvitation {
  /** One of `ERROR_CODES`. */
  error: string;
}

export interface RevokedInvitation extends Pick<Invitation, "id" | "badgeId" | "expiresAt"> {
  /** When it was first revoked: ISO 8601, UTC. */
  revokedAt: string;
}

export interface ErasedInvitation {
  badgeId: string;
}
