import { BY_CLOCK, type Origin } from "../../../src/shared/actor.ts";
import { type DeviceId, deviceId, invitationDigest } from "../../../src/shared/identifiers.ts";
import type { BadgeCommand, NewInvitation, Rules } from "../../../src/worker/allocator/commands.ts";
import { Draft } from "../../../src/worker/core/decide/draft.ts";
import type { InvitationRow, IssuedBadge, Position } from "../../../src/worker/storage/rows.ts";

/** Rows as D1 would have them, for decisions without a database. */

export const NOW = Date.UTC(2026, 10, 22, 12);
export const HOUR = 3600 * 1000;
export const SERVER: Origin = { actor: { kind: "server" } };
export const DEVICE: Origin = { actor: { kind: "device" } };
export { BY_CLOCK };

export const PHONE = deviceId.parse("phone");
export const DIGEST = invitationDigest.parse("digest");

const POSITION: Position = {
  sequence: 7,
  entry: "entry 7",
  fresh: [{ first: 1000, size: 100, used: 10 }],
  lastPosition: 20,
  lastChange: 40,
  lastSigningKey: 5,
  epoch: "epoch",
  hourStartedAt: NOW - HOUR / 2,
  hourUsed: 0,
};

/** A draft at noon: fresh numbers come in rising order, and the last of several freed ones is drawn. */
export const draftAt = (now = NOW, position: Partial<Position> = {}): Draft =>
  new Draft(
    { ...POSITION, ...position },
    { now, numberAt: ({ first }, index) => first + index, randomBelow: (limit) => limit - 1 },
  );

export const RULES: Rules = {
  range: { first: 1000, last: 1099 },
  reuseAfterSeconds: 0,
  requireProof: false,
  bindUntil: null,
  newBadgesPerHour: null,
  deviceKey: { sealed: "sealed", sealingVersion: 1 },
  signingKey: { id: 5, kid: "kid", publicKey: "key", sealed: "sealed", sealingVersion: 1, createdAt: 0, signsFrom: 0 },
};

const BADGE: IssuedBadge = {
  number: 1001,
  device: PHONE,
  userId: "alice",
  metadata: null,
  signingKeyId: 5,
  eventId: "evt_1",
  position: 1,
  turn: 1,
  invitation: null,
  issuedAt: NOW - HOUR,
  state: "active",
  expiresAt: null,
  startsAt: null,
  name: null,
  endedAt: null,
  retiredAt: null,
  keyThumbprint: null,
  rebindUntil: null,
  change: 10,
  changedAt: NOW - HOUR,
  statusChange: null,
};

/** Puts an issued badge into the draft, as D1 has it. */
export function loadBadge(draft: Draft, more: Partial<IssuedBadge> = {}): IssuedBadge {
  const badge = { ...BADGE, ...more };
  draft.badges.load(badge.number, badge);
  draft.turns.set(badge.device, Math.max(badge.turn, draft.turns.get(badge.device) ?? 0));
  return badge;
}

export const NEW_INVITATION: NewInvitation = {
  digest: DIGEST,
  creatorDevice: deviceId.parse("server's device"),
  withSecret: true,
  isRepeatable: true,
  expiresAt: "2026-11-23T12:00:00Z",
  expiresAtTime: NOW + 24 * HOUR,
  badgeExpiresAt: null,
  badgeExpiresAtTime: null,
  badgeStartsAt: null,
  badgeStartsAtTime: null,
  name: null,
  userId: null,
  createdAt: NOW - HOUR,
};

/** Puts an invitation into the draft, with its reservation while it is pending. */
export function loadInvitation(draft: Draft, more: Partial<InvitationRow> = {}): InvitationRow {
  const ended = { state: "pending", endedAt: null, claimDevice: null, claimUserId: null } as const;
  const invitation = { ...NEW_INVITATION, ...ended, number: 1050, ...more };
  draft.invitations.load(invitation.digest, invitation);
  if (invitation.state !== "pending") return invitation;
  const { number, digest } = invitation;
  const nothing = { device: null, userId: null, signingKeyId: null, eventId: null, position: null, turn: null };
  const reservation = { ...nothing, issuedAt: null, change: null, changedAt: null };
  draft.badges.load(number, { ...BADGE, ...reservation, number, invitation: digest });
  return invitation;
}

/** `POST /v1/badge` of alice's phone. */
export const request = (more: Partial<BadgeCommand> = {}): BadgeCommand => ({
  kind: "badge",
  rules: RULES,
  device: PHONE,
  userId: "alice",
  metadata: null,
  keyThumbprint: null,
  isVerified: true,
  isNew: false,
  invitation: null,
  ...more,
});

export const claimOf = (more: Partial<BadgeCommand> = {}): BadgeCommand =>
  request({ invitation: { digest: DIGEST, token: "inv_token" }, ...more });

export const device = (name: string): DeviceId => deviceId.parse(name);

/** Bodies of the events that were decided, without their IDs and times. */
export const eventsOf = (draft: Draft): { event: string; data: unknown }[] =>
  draft.events.map(({ event, payload }) => ({ event, data: JSON.parse(payload).data }));

export const actionsOf = (draft: Draft): string[] => draft.history.map(({ action }) => action);

export const refused = (code: string) => ({ kind: "refused", code });
