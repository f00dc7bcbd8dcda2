import { type Column, desc, eq, lt, max, type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application, applicationSecret, sealingKey, signingKey } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { eachOf, orm, type Placeholders, query, statement } from "./statement.ts";

const PURPOSES = ["application-secret", "signing-key", "device-key"] as const;
type SealedPurpose = (typeof PURPOSES)[number];

/** Columns with sealed values. `applicationId` and `id` are those of their labels. */
interface SealedColumns {
  table: typeof application | typeof applicationSecret | typeof signingKey;
  applicationId: Column;
  id: Column;
  sealed: Column;
}

const COLUMNS: Readonly<Record<SealedPurpose, SealedColumns>> = {
  "application-secret": {
    table: applicationSecret,
    applicationId: applicationSecret.applicationId,
    id: applicationSecret.id,
    sealed: applicationSecret.sealed,
  },
  "signing-key": {
    table: signingKey,
    applicationId: signingKey.applicationId,
    id: signingKey.kid,
    sealed: signingKey.sealed,
  },
  "device-key": {
    table: application,
    applicationId: application.id,
    id: application.id,
    sealed: application.sealedRootKey,
  },
};

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

const SELECT_NEWEST = statement(() =>
  orm
    .select({ version: sealingKey.version, publicKey: sealingKey.publicKey })
    .from(sealingKey)
    .orderBy(desc(sealingKey.version))
    .limit(1),
);

const rowid = sql<number>`rowid`;

/** Values that are not sealed to the newest key. */
function selectOld(purpose: SealedPurpose) {
  const { table, applicationId, id, sealed } = COLUMNS[purpose];
  const newest = orm.select({ version: max(sealingKey.version) }).from(sealingKey);
  const fields = {
    rowid,
    applicationId: sql<ApplicationId>`${applicationId}`,
    id: sql<string>`${id}`,
    sealed: sql<string>`${sealed}`,
    sealingVersion: table.sealingVersion,
  };
  return statement((p: Placeholders<{ sealingVersion: number; rowid: number; limit: number }>) =>
    query(
      fields,
      (columns) => sql`SELECT ${columns} FROM ${table}
        WHERE ${lt(table.sealingVersion, newest)} AND (${table.sealingVersion}, ${rowid}) > (${p.sealingVersion}, ${p.rowid})
        ORDER BY ${table.sealingVersion}, ${rowid} LIMIT ${p.limit}`,
    ),
  );
}

/** Builds one value for each purpose. */
const forEachPurpose = <Built>(build: (purpose: SealedPurpose) => Built): Readonly<Record<SealedPurpose, Built>> => ({
  "application-secret": build("application-secret"),
  "signing-key": build("signing-key"),
  "device-key": build("device-key"),
});

const SELECT_OLD = forEachPurpose(selectOld);

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
      SELECT_NEWEST.bind(d1, {}),
      ...PURPOSES.map((purpose) => SELECT_OLD[purpose].bind(d1, { ...after[purpose], limit })),
    ]),
  );
  const values = PURPOSES.flatMap((purpose, index) =>
    SELECT_OLD[purpose].rows(tables[index]).map((row) => ({ purpose, ...row })),
  );
  const through = forEachPurpose((purpose) => values.findLast((value) => value.purpose === purpose) ?? after[purpose]);
  return { newest: SELECT_NEWEST.rows(newest)[0], values, through };
}

/** A value with its new sealed form. */
export interface Resealed {
  value: StoredSealed;
  resealed: string;
}

interface Replacement {
  rowid: number;
  sealed: string;
  resealed: string;
}

/**
 * Compare-and-set: a value that was replaced since it was read stays, so a slow sweep cannot return a value to an older
 * key. It also does not write values sealed to a key that was removed since.
 */
const REPLACE = forEachPurpose((purpose) =>
  statement((p: Placeholders<{ made: readonly Replacement[]; version: number }>) => {
    const { table, sealed } = COLUMNS[purpose];
    const made = (field: keyof Replacement): SQL => sql`made ->> ${field}`;
    const exists = orm
      .select({ version: sealingKey.version })
      .from(sealingKey)
      .where(eq(sealingKey.version, p.version));
    return sql`UPDATE ${table}
      SET ${sql.identifier(sealed.name)} = ${made("resealed")}, ${sql.identifier(table.sealingVersion.name)} = ${p.version}
      FROM (SELECT value AS made FROM ${eachOf(p.made)})
      WHERE ${table}.rowid = ${made("rowid")} AND ${sealed} = ${made("sealed")} AND EXISTS ${exists}`;
  }),
);

/**
 * Replaces the values that have not changed since they were read. One transaction, one round trip. @returns their
 * number
 */
export async function writeResealed(db: Database, made: readonly Resealed[], version: number): Promise<number> {
  const byPurpose = Map.groupBy(made, ({ value }) => value.purpose);
  const written = await db.run((d1) =>
    d1.batch(
      [...byPurpose].map(([purpose, ofOne]) => {
        const rows = ofOne.map(({ value: { rowid, sealed }, resealed }) => ({ rowid, sealed, resealed }));
        return REPLACE[purpose].bind(d1, { made: rows, version });
      }),
    ),
  );
  return written.reduce((sum, { meta }) => sum + meta.changes, 0);
}
