import * as z from "zod";
import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import type { Database } from "./database.ts";

/** The columns with sealed values, by the values' purpose. */
const TABLES = {
  "application-secret": { table: "application_secret", applicationId: "application_id", id: "id", sealed: "sealed" },
  "signing-key": { table: "signing_key", applicationId: "application_id", id: "kid", sealed: "sealed" },
  "device-key": { table: "application", applicationId: "id", id: "id", sealed: "sealed_device_key" },
} as const;

type SealedPurpose = keyof typeof TABLES;

const PURPOSES = ["application-secret", "signing-key", "device-key"] as const satisfies readonly SealedPurpose[];

/** A sealed value and its row. `applicationId` and `id` are those of its label. */
export interface StoredSealed {
  purpose: SealedPurpose;
  rowid: number;
  applicationId: ApplicationId;
  id: string;
  sealed: string;
  sealingVersion: number;
}

/** The last row read of each table. The index of sealing versions orders rows by version, then by rowid. */
export type ReadPositions = Readonly<Record<SealedPurpose, { sealingVersion: number; rowid: number }>>;

const NOTHING_YET = { sealingVersion: 0, rowid: 0 };
export const FROM_THE_START: ReadPositions = {
  "application-secret": NOTHING_YET,
  "signing-key": NOTHING_YET,
  "device-key": NOTHING_YET,
};

const newestRows = z.array(z.object({ version: z.number(), publicKey: z.string() })).max(1);
const sealedRows = z.array(
  z
    .object({ rowid: z.number(), applicationId, id: z.string(), sealed: z.string(), version: z.number() })
    .transform(({ version: sealingVersion, ...row }) => ({ ...row, sealingVersion })),
);

const SELECT_NEWEST = "SELECT version, public_key AS publicKey FROM sealing_key ORDER BY version DESC LIMIT 1";

function selectOld(purpose: SealedPurpose): string {
  const { table, applicationId, id, sealed } = TABLES[purpose];
  return `
    SELECT rowid AS rowid, ${applicationId} AS applicationId, ${id} AS id, ${sealed} AS sealed, sealing_version AS version
    FROM ${table}
    WHERE sealing_version < (SELECT max(version) FROM sealing_key) AND (sealing_version, rowid) > (?1, ?2)
    ORDER BY sealing_version, rowid LIMIT ?3`;
}

/**
 * Values that are not sealed to the newest key. One round trip.
 *
 * @param limit maximum number of values of each table
 * @returns `newest`: the newest sealing key, its public half as base64 of the SPKI DER; undefined when there is none
 */
export async function findOldSealed(
  db: Database,
  after: ReadPositions,
  limit: number,
): Promise<{
  newest: { version: number; publicKey: string } | undefined;
  values: StoredSealed[];
  through: ReadPositions;
}> {
  const [newest, ...tables] = await db.run((d1) =>
    d1.batch([
      d1.prepare(SELECT_NEWEST),
      ...PURPOSES.map((purpose) => {
        const { sealingVersion, rowid } = after[purpose];
        return d1.prepare(selectOld(purpose)).bind(sealingVersion, rowid, limit);
      }),
    ]),
  );
  const values = PURPOSES.flatMap((purpose, index) =>
    sealedRows.parse(tables[index]?.results).map((row) => ({ purpose, ...row })),
  );
  const lastOf = (purpose: SealedPurpose) => values.findLast((value) => value.purpose === purpose) ?? after[purpose];
  const through = {
    "application-secret": lastOf("application-secret"),
    "signing-key": lastOf("signing-key"),
    "device-key": lastOf("device-key"),
  };
  return { newest: newestRows.parse(newest?.results)[0], values, through };
}

/** A value with its new sealed form. */
export interface Resealed {
  value: StoredSealed;
  resealed: string;
}

/**
 * Compare-and-set: a value that was replaced since it was read stays, so a slow sweep cannot return a value to an older
 * key. Nor does it write values sealed to a key that has been removed since.
 */
function replaceSealed(purpose: SealedPurpose): string {
  const { table, sealed } = TABLES[purpose];
  return `
    UPDATE ${table} SET ${sealed} = made ->> 'resealed', sealing_version = ?2
    FROM (SELECT value AS made FROM json_each(?1))
    WHERE ${table}.rowid = made ->> 'rowid' AND ${sealed} = made ->> 'sealed'
      AND EXISTS (SELECT 1 FROM sealing_key WHERE version = ?2)`;
}

/** Replaces the values that have not changed since they were read. One transaction, one round trip. @returns how many */
export async function writeResealed(db: Database, made: readonly Resealed[], version: number): Promise<number> {
  const byPurpose = Map.groupBy(made, ({ value }) => value.purpose);
  const written = await db.run((d1) =>
    d1.batch(
      [...byPurpose].map(([purpose, ofOne]) => {
        const rows = ofOne.map(({ value: { rowid, sealed }, resealed }) => ({ rowid, sealed, resealed }));
        return d1.prepare(replaceSealed(purpose)).bind(JSON.stringify(rows), version);
      }),
    ),
  );
  return written.reduce((sum, { meta }) => sum + meta.changes, 0);
}
