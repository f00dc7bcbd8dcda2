import * as z from "zod";
import { ROLES } from "../../shared/actor.ts";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { MAX_KNOWN_APPLICATIONS } from "../../shared/limits.ts";
import { application } from "../../shared/schema.ts";
import { selectOf } from "./columns.ts";
import type { Database } from "./database.ts";
import { flag } from "./rows.ts";

const nullableText = z.string().nullable();
const nullableNumber = z.number().nullable();

const columns = z.object({
  id: applicationId,
  firstNumber: z.number(),
  lastNumber: z.number(),
  disabledAt: nullableNumber,
  requireSecret: flag,
  reuseAfterSeconds: z.number(),
  signatureLifetimeSeconds: nullableNumber,
  statusList: flag,
  statusLifetimeSeconds: z.number(),
  requireProof: flag,
  bindUntil: nullableNumber,
  newBadgesPerHour: nullableNumber,
  userIssuer: nullableText,
  userAudience: nullableText,
  userClaim: z.string(),
  userObserve: flag,
  sealedDeviceKey: z.string(),
  sealingVersion: z.number(),
});

const jsonArray = <Row>(row: z.ZodType<Row>) => z.string().transform((json) => z.array(row).parse(JSON.parse(json)));

const applicationRow = columns.extend({
  secrets: jsonArray(z.object({ digest: z.string() })),
  consoleSecrets: jsonArray(z.object({ digest: z.string(), name: z.string(), role: z.enum(ROLES) })),
  /** Oldest first. */
  signingKeys: jsonArray(
    z.object({
      id: z.number(),
      kid: z.string(),
      publicKey: z.string(),
      sealed: z.string(),
      sealingVersion: z.number(),
      createdAt: z.number(),
      signsFrom: z.number(),
    }),
  ),
});
/** An application with its secrets and keys, by the names of src/shared/schema.ts. */
export type ApplicationRow = z.infer<typeof applicationRow>;

const SELECT_APPLICATION = `
  SELECT ${selectOf(application, "application", columns)},
    (SELECT json_group_array(json_object('digest', digest))
      FROM application_secret WHERE application_id = application.id) AS secrets,
    (SELECT json_group_array(json_object('digest', digest, 'name', name, 'role', role))
      FROM console_secret WHERE application_id = application.id) AS consoleSecrets,
    (SELECT json_group_array(json_object('id', id, 'kid', kid, 'publicKey', public_key, 'sealed', sealed,
        'sealingVersion', sealing_version, 'createdAt', created_at, 'signsFrom', signs_from) ORDER BY id)
      FROM signing_key WHERE application_id = application.id) AS signingKeys
  FROM application WHERE application.id = ?1`;

/** One round trip. */
export async function findApplication(db: Database, id: ApplicationId): Promise<ApplicationRow | undefined> {
  const [row] = await db.rows(applicationRow, SELECT_APPLICATION, [id]);
  return row;
}

const applicationIdRow = columns.pick({ id: true });

/** The IDs of all applications of the home, at most `MAX_KNOWN_APPLICATIONS`. One round trip. */
export async function listApplicationIds(db: Database): Promise<ApplicationId[]> {
  const rows = await db.rows(applicationIdRow, "SELECT id FROM application LIMIT ?1", [MAX_KNOWN_APPLICATIONS]);
  return rows.map(({ id }) => id);
}
