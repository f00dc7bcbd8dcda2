import * as z from "zod";
import { deviceId, invitationDigest } from "../../shared/identifiers.ts";
import { INVITATION_STATES, STORED_STATES } from "../../shared/schema.ts";

/**
 * The rows of D1 that decisions read and change, without the application ID, which is the same in all of them. Times are
 * milliseconds. The names are those of src/shared/schema.ts, which says what they mean.
 */

export const flag = z.number().transform((value) => value === 1);

export const badgeRow = z.object({
  number: z.number(),
  device: deviceId.nullable(),
  userId: z.string().nullable(),
  metadata: z.string().nullable(),
  signingKeyId: z.number().nullable(),
  eventId: z.string().nullable(),
  position: z.number().nullable(),
  turn: z.number().nullable(),
  invitation: invitationDigest.nullable(),
  issuedAt: z.number().nullable(),
  state: z.enum(STORED_STATES),
  expiresAt: z.number().nullable(),
  startsAt: z.number().nullable(),
  name: z.string().nullable(),
  endedAt: z.number().nullable(),
  retiredAt: z.number().nullable(),
  keyThumbprint: z.string().nullable(),
  rebindUntil: z.number().nullable(),
  change: z.number().nullable(),
  changedAt: z.number().nullable(),
  statusChange: z.number().nullable(),
});
export type BadgeRow = z.infer<typeof badgeRow>;

/** A badge that was issued, in any state. */
export const issuedBadge = badgeRow.extend({
  device: deviceId,
  userId: z.string(),
  signingKeyId: z.number(),
  position: z.number(),
  turn: z.number(),
  issuedAt: z.number(),
  change: z.number(),
  changedAt: z.number(),
});
export type IssuedBadge = z.infer<typeof issuedBadge>;

/** Whether the row is a badge, not a number that an invitation reserves. */
export const isIssued = (row: BadgeRow | undefined): row is IssuedBadge => row !== undefined && row.position !== null;

export const invitationRow = z.object({
  digest: invitationDigest,
  number: z.number(),
  state: z.enum(INVITATION_STATES),
  creatorDevice: deviceId,
  withSecret: flag,
  isRepeatable: flag,
  expiresAt: z.string(),
  expiresAtTime: z.number(),
  badgeExpiresAt: z.string().nullable(),
  badgeExpiresAtTime: z.number().nullable(),
  badgeStartsAt: z.string().nullable(),
  badgeStartsAtTime: z.number().nullable(),
  name: z.string().nullable(),
  userId: z.string().nullable(),
  createdAt: z.number(),
  endedAt: z.number().nullable(),
  claimDevice: deviceId.nullable(),
  claimUserId: z.string().nullable(),
});
export type InvitationRow = z.infer<typeof invitationRow>;

export const blockRow = z.object({
  userId: z.string(),
  blockedAt: z.number(),
  isRevoking: flag,
  throughPosition: z.number(),
  donePosition: z.number(),
  afterChange: z.number(),
});
export type BlockRow = z.infer<typeof blockRow>;

export const freedRow = z.object({ number: z.number(), freedAt: z.number() });
export type FreedRow = z.infer<typeof freedRow>;

/** One part of a number range, with an order of its own; its first `used` numbers in that order are taken. */
const rangePart = z.object({ first: z.number(), size: z.number(), used: z.number() });
export type RangePart = z.infer<typeof rangePart>;

/** How far the application's list of entries has come. */
export const positionRow = z.object({
  sequence: z.number(),
  entry: z.string(),
  fresh: z.string().transform((json) => z.array(rangePart).parse(JSON.parse(json))),
  lastPosition: z.number(),
  lastChange: z.number(),
  lastSigningKey: z.number(),
  epoch: z.string(),
  hourStartedAt: z.number(),
  hourUsed: z.number(),
});
export type Position = z.infer<typeof positionRow>;
