import { Database, type Query, toQuery } from "../../../../src/worker/storage/database.ts";
import { selectInvitationForDevice } from "../../../../src/worker/storage/invitations.ts";

/** Of what a Worker keeps of an application, the least; the service reads it every 20 seconds, as the floor does. */
export const SELECT_APPLICATION = `
  SELECT id, first_number, last_number, sealed_device_key, signature_lifetime_seconds,
    (SELECT json_group_array(digest) FROM application_secret WHERE application_id = ?1) AS digests,
    (SELECT json_group_array(json_object('id', id, 'kid', kid, 'publicKey', public_key, 'sealed', sealed) ORDER BY id)
      FROM signing_key WHERE application_id = ?1) AS signing_keys
  FROM application WHERE id = ?1`;

export interface ApplicationRow {
  id: string;
  first_number: number;
  last_number: number;
  sealed_device_key: string;
  signature_lifetime_seconds: number | null;
  digests: string;
  signing_keys: string;
}

let selectInvitation: Query | undefined;

/** The service's query. What Drizzle does around it is no part of the floor. */
export function invitationQuery(d1: D1Database): Query {
  selectInvitation ??= toQuery(selectInvitationForDevice(new Database(d1).orm).getQuery());
  return selectInvitation;
}
