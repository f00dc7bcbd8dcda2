import type { DeviceId, InvitationDigest } from "../../shared/identifiers.ts";
import { FreedNumbers } from "./freed-numbers.ts";
import { badgeHolder, type HolderKey, holderKey, holderKeySchema, invitationOf } from "./holder.ts";
import { IS_UNCONFIRMED } from "./ledger-tables.ts";
import { integer } from "./sql.ts";

/** A number's owner as D1 has it. */
export interface KnownBadge {
  number: number;
  device: DeviceId | null;
  userId: string | null;
  invitation: InvitationDigest | null;
}

/** One chunk of leases: those of invitations, without those of devices. */
export interface InvitationLeases {
  invitations: InvitationDigest[];
  /** ID of the chunk's last lease, where the next chunk starts; null when no lease is left. */
  through: number | null;
}

/**
 * Copies owners from D1 into the ledger of an object that was restored to an older state: the numbers are no longer free,
 * and their holders have confirmed leases. A different number that such a holder has leased since, and not used, is freed.
 * May be repeated.
 *
 * @param now milliseconds
 * @returns how many leases were added or changed
 */
export function adoptBadges(sql: SqlStorage, badges: readonly KnownBadge[], now: number): number {
  const leases = badges.flatMap((badge) => {
    const holder = badgeHolder(badge);
    return holder ? [{ holder: holderKey(holder), number: badge.number, claimedBy: claimantOf(badge) }] : [];
  });
  const numbers = new Set(badges.map(({ number }) => number));
  const freed = new FreedNumbers(sql);
  for (const number of findReplaced(sql, leases)) if (!numbers.has(number)) freed.add(number, now);
  freed.remove(numbers);
  return sql
    .exec(
      `INSERT INTO lease (holder, number, leased_at, confirmed, claimed_by)
       SELECT value ->> 'holder', value ->> 'number', ?2, 1, value ->> 'claimedBy' FROM json_each(?1) WHERE true
       ON CONFLICT (holder) DO UPDATE
         SET number = excluded.number, confirmed = 1, claimed_by = coalesce(excluded.claimed_by, claimed_by)
         WHERE number <> excluded.number OR ${IS_UNCONFIRMED}
           OR claimed_by IS NULL AND excluded.claimed_by IS NOT NULL
       RETURNING id`,
      JSON.stringify(leases),
      now,
    )
    .toArray().length;
}

/** Unconfirmed numbers of holders that have another number in D1. */
function findReplaced(sql: SqlStorage, leases: readonly { holder: HolderKey; number: number }[]): number[] {
  return sql
    .exec(
      `SELECT lease.number FROM json_each(?) JOIN lease ON lease.holder = value ->> 'holder'
       WHERE ${IS_UNCONFIRMED} AND lease.claimed_by IS NULL AND lease.number <> value ->> 'number'`,
      JSON.stringify(leases),
    )
    .toArray()
    .map(({ number }) => integer(number));
}

function claimantOf({ invitation, device, userId }: KnownBadge): HolderKey | null {
  if (invitation === null || device === null || userId === null) return null;
  return holderKey({ kind: "device", device, userId });
}

/** One chunk of leases after an ID, in the order in which they were made. */
export function listInvitationLeases(sql: SqlStorage, after: number, limit: number): InvitationLeases {
  const rows = sql.exec("SELECT id, holder FROM lease WHERE id > ? ORDER BY id LIMIT ?", after, limit).toArray();
  const last = rows.at(-1)?.id;
  return {
    invitations: rows.flatMap(({ holder }) => invitationOf(holderKeySchema.parse(holder)) ?? []),
    through: last == null ? null : Number(last),
  };
}
