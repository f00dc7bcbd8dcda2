import { FreedNumbers } from "./freed-numbers.ts";
import { badgeHolder, holderKey } from "./holder.ts";
import { integer } from "./sql.ts";

/** What D1 knows of a number. */
export interface KnownBadge {
  number: number;
  device: string | null;
  userId: string | null;
  invitation: string | null;
}

/** The leases of one chunk, those of devices left out, and where the next chunk begins. */
export interface InvitationLeases {
  invitations: string[];
  /** The last lease that was looked at; null when there was none. */
  through: number | null;
}

/**
 * Takes over what D1 knows, into the ledger of an object that was restored to an older state: the numbers are free no
 * more, and their holders have them. A number leased to a holder meanwhile, and not used, is freed. Repeated, it does
 * nothing.
 *
 * @param now milliseconds
 * @returns how many leases it added or changed
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
         WHERE number <> excluded.number OR confirmed = 0 OR claimed_by IS NULL AND excluded.claimed_by IS NOT NULL
       RETURNING id`,
      JSON.stringify(leases),
      now,
    )
    .toArray().length;
}

/** Numbers that nobody confirmed, of holders that D1 knows with other ones. */
function findReplaced(sql: SqlStorage, leases: readonly { holder: string; number: number }[]): number[] {
  return sql
    .exec(
      `SELECT lease.number FROM json_each(?) JOIN lease ON lease.holder = value ->> 'holder'
       WHERE lease.confirmed = 0 AND lease.claimed_by IS NULL AND lease.number <> value ->> 'number'`,
      JSON.stringify(leases),
    )
    .toArray()
    .map(({ number }) => integer(number));
}

function claimantOf({ invitation, device, userId }: KnownBadge): string | null {
  if (invitation === null || device === null || userId === null) return null;
  return holderKey({ kind: "device", device, userId });
}

/** Leases in the order in which they were made, as far as invitations hold them. */
export function listInvitationLeases(sql: SqlStorage, after: number, limit: number): InvitationLeases {
  const rows = sql.exec("SELECT id, holder FROM lease WHERE id > ? ORDER BY id LIMIT ?", after, limit).toArray();
  const prefix = holderKey({ kind: "invitation", invitation: "" });
  const holders = rows.map(({ holder }) => String(holder)).filter((holder) => holder.startsWith(prefix));
  const last = rows.at(-1)?.id;
  return {
    invitations: holders.map((holder) => holder.slice(prefix.length)),
    through: last == null ? null : Number(last),
  };
}
