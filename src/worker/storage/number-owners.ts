import * as z from "zod";
import { type DeviceId, deviceId, type InvitationDigest, invitationDigest } from "../../shared/identifiers.ts";
import type { Database } from "./database.ts";

const SELECT_KNOWN = `
  SELECT badge.number AS number, badge.device AS device, badge.user_id AS user_id, badge.invitation AS invitation,
    coalesce(invitation.is_repeatable, 0) AS is_repeatable
  FROM json_each(?1) AS asked JOIN badge ON badge.number = asked.value
  LEFT JOIN invitation ON invitation.digest = badge.invitation`;

const knownRows = z.array(
  z.object({
    number: z.number(),
    device: deviceId.nullable(),
    user_id: z.string().nullable(),
    invitation: invitationDigest.nullable(),
    is_repeatable: z.number(),
  }),
);

/** Owner of a number that D1 has, whatever the state of its badge. */
export interface NumberOwner {
  device: DeviceId | null;
  userId: string | null;
  invitation: InvitationDigest | null;
  /** Whether the invitation's creator can request it again, by its Idempotency-Key. */
  isRepeatable: boolean;
}

/** The numbers that D1 has, in any state, with their owners. */
export async function findNumberOwners(db: Database, numbers: readonly number[]): Promise<Map<number, NumberOwner>> {
  const asked = JSON.stringify(numbers);
  const { results } = await db.run((_, d1) => d1.prepare(SELECT_KNOWN).bind(asked).all());
  return new Map(
    knownRows
      .parse(results)
      .map(({ number, device, user_id: userId, invitation, is_repeatable }) => [
        number,
        { device, userId, invitation, isRepeatable: is_repeatable === 1 },
      ]),
  );
}
