import { METADATA_FIELDS } from "../shared/metadata-fields.ts";
import { isObject } from "./json.ts";
import {
  type Application,
  EVENT_STATES,
  INVITATION_STATES,
  type ListedEvent,
  type ListedInvitation,
  type ReplayedEvent,
  type Statistics,
  type ValueCounts,
} from "./overview-types.ts";
import { anyObject, boolean, fieldsOf, list, nullable, number, object, oneOf, optional, text } from "./reading.ts";
import {
  BADGE_STATES,
  type Badge,
  type BadgeChange,
  type BlockedUser,
  type Invitation,
  type IssuedBadge,
  type ListedBadge,
  type RevokedInvitation,
  type User,
} from "./types.ts";

/** Readers of response bodies. */

export function readIssuedBadge(status: number, body: unknown): IssuedBadge | null {
  if (!isObject(body) || typeof body.badgeId !== "string") return null;
  const { badgeId, publicKey } = body;
  if (status !== 201) return { created: false, badgeId };
  return typeof publicKey === "string" ? { created: true, badgeId, publicKey } : null;
}

export const signature = object<{ signature: string }>({ signature: text });

export const metadata = fieldsOf(METADATA_FIELDS, optional(text));

export const listedBadges = object<{ badges: ListedBadge[] }>({
  badges: list(
    object<ListedBadge>({
      id: text,
      userId: text,
      metadata: optional(metadata),
      state: optional(oneOf("suspended")),
      expiresAt: optional(text),
    }),
  ),
});

export const badgeFields = {
  id: text,
  userId: text,
  state: oneOf(...BADGE_STATES),
  metadata: optional(metadata),
  expiresAt: optional(text),
  keyThumbprint: optional(text),
};

export const badge = object<Badge>(badgeFields);

export const ownBadges = object<{ badges: Badge[] }>({ badges: list(badge) });

export const changes = object<{ changes: BadgeChange[]; more: boolean }>({
  changes: list(object<BadgeChange>({ ...badgeFields, change: number, changedAt: text })),
  more: boolean,
});

const userFields = { userId: text, blocked: boolean };

export const user = object<User>(userFields);

export const blockedUser = object<BlockedUser>({ ...userFields, revoked: list(text) });

const invitationFields = { id: text, badgeId: text, expiresAt: text };

export const invitation = object<Invitation>({ ...invitationFields, badgeExpiresAt: optional(text) });

export const revokedInvitation = object<RevokedInvitation>({ ...invitationFields, revokedAt: text });

export const application = object<Application>({
  applicationId: text,
  name: text,
  firstNumber: number,
  lastNumber: number,
  requireSecret: boolean,
  requireProof: boolean,
  statusList: boolean,
  webhookUrl: nullable(text),
});

export const listedInvitations = object<{ invitations: ListedInvitation[] }>({
  invitations: list(
    object<ListedInvitation>({
      badgeId: text,
      state: oneOf(...INVITATION_STATES),
      createdAt: text,
      expiresAt: text,
      badgeExpiresAt: optional(text),
      userId: optional(text),
    }),
  ),
});

export const listedEvents = object<{ events: ListedEvent[] }>({
  events: list(
    object<ListedEvent>({
      id: text,
      event: text,
      state: oneOf(...EVENT_STATES),
      attempts: number,
      lastStatus: nullable(number),
      lastOutcome: nullable(text),
      lastResponse: nullable(text),
      createdAt: text,
      nextAttemptAt: nullable(text),
      deliveredAt: nullable(text),
      data: anyObject,
    }),
  ),
});

export const replayedEvent = object<ReplayedEvent>({ id: text, state: oneOf("pending", "held") });

const valueCounts = object<ValueCounts>({
  values: list(object<ValueCounts["values"][number]>({ value: nullable(text), badges: number })),
  others: number,
});

export const statistics = object<Statistics>({
  applicationId: text,
  name: text,
  numbers: fieldsOf(
    ["size", "issued", "reserved", "retired", "resting", "left", "used", "usedPercent"] as const,
    number,
  ),
  badges: fieldsOf(METADATA_FIELDS, valueCounts),
  invitations: fieldsOf(INVITATION_STATES, number),
  badgesByState: fieldsOf(BADGE_STATES, number),
  badgesPerDay: list(object<Statistics["badgesPerDay"][number]>({ day: text, badges: number })),
  deliveries: list(
    object<Statistics["deliveries"][number]>({
      state: oneOf(...EVENT_STATES),
      outcome: nullable(text),
      events: number,
    }),
  ),
  logins: fieldsOf(["withToken", "withoutToken", "withWrongToken"] as const, number),
  asOf: text,
});
