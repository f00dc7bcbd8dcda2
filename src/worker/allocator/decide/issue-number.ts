import type { BadgeRow, IssuedBadge } from "../../storage/rows.ts";
import type { Rules } from "../commands.ts";
import type { Transaction } from "../transaction.ts";

type NewBadge = Pick<
  IssuedBadge,
  | "number"
  | "device"
  | "userId"
  | "metadata"
  | "keyThumbprint"
  | "name"
  | "startsAt"
  | "expiresAt"
  | "invitation"
  | "eventId"
>;

/**
 * Makes a number the badge of a user device, and the device's current one.
 *
 * @param reserved the number's row if an invitation reserves it
 */
export function issueNumber(
  transaction: Transaction,
  reserved: BadgeRow | undefined,
  badge: NewBadge,
  { signingKey }: Rules,
): void {
  const { tables, counters, now } = transaction;
  counters.lastOrdinal++;
  const issued = {
    ...badge,
    signingKeyId: signingKey.id,
    ordinal: counters.lastOrdinal,
    loginSequence: tables.lastLoginSequence(badge.device) + 1,
    issuedAt: now,
    state: "active" as const,
    endedAt: null,
    supersededAt: null,
    rebindUntil: null,
    change: 0,
    changedAt: now,
    statusChange: null,
  };
  if (reserved) transaction.changeBadge(reserved, issued);
  else transaction.insertBadge({ ...issued, change: ++counters.lastChange });
  transaction.useSigningKey(signingKey);
}
