import { eq, sql } from "drizzle-orm";
import type { ApplicationId } from "../../../shared/identifiers.ts";
import { applicationHead } from "../../../shared/schema.ts";
import type { Database } from "../../storage/database.ts";
import { orm, statement } from "../../storage/statement.ts";
import type { Counters, Mark } from "../counters.ts";

/** D1's head of an application's log: its row in `application_head`. */
type DatabaseHead = typeof applicationHead.$inferSelect;

const selectHead = orm
  .select()
  .from(applicationHead)
  .where(eq(applicationHead.applicationId, sql.placeholder("applicationId")));

export const SELECT_HEAD = statement<{ applicationId: ApplicationId }, typeof selectHead>(() => selectHead);

/** One round trip, once, to the primary. @returns undefined: D1 does not know the application @throws Unavailable */
export async function readHead(db: Database, applicationId: ApplicationId): Promise<DatabaseHead | undefined> {
  const [head] = await db.onceAtPrimary((session) => SELECT_HEAD.all(session, { applicationId }));
  return head;
}

/** Where the fence moves D1's head to. */
interface FenceTarget extends Mark {
  counters: Counters;
  /** The sequence from which readers may read again; `keep`: D1's own flag, or this one if it is higher. */
  readableFrom: { keep: boolean; sequence: number };
}

/**
 * The first statement of every batch: moves D1's head from one entry to another. Where D1's head is another entry, `sequence` is
 * NULL: the statement fails, and D1 rolls the whole batch back. So a batch that comes late, twice or out of turn changes nothing.
 */
const FENCE = statement<
  {
    applicationId: ApplicationId;
    from: string;
    sequence: number;
    entry: string;
    rangeSegments: Counters["rangeSegments"];
    lastOrdinal: number;
    lastChange: number;
    lastSigningKey: number;
    epoch: string;
    hour: number;
    hourUsed: number;
    statistics: Counters["statistics"];
    readableFrom: number;
    keeps: number;
  },
  ReturnType<typeof sql>
>((p) => {
  const head = applicationHead;
  const isAt = sql`${head.applicationId} = ${p.applicationId} AND ${head.entry} = ${p.from}`;
  const flag = sql`max(iif(${p.keeps}, ${head.readableFrom}, 0), ${p.readableFrom})`;
  const set = (column: { name: string }) =>
    sql`${sql.identifier(column.name)} = excluded.${sql.identifier(column.name)}`;
  const changed = [
    head.sequence,
    head.entry,
    head.rangeSegments,
    head.lastOrdinal,
    head.lastChange,
    head.lastSigningKey,
    head.epoch,
    head.hour,
    head.hourUsed,
    head.statistics,
    head.readableFrom,
  ];
  const names = sql.join(
    [head.applicationId, ...changed].map((column) => sql.identifier(column.name)),
    sql`, `,
  );
  return sql`INSERT INTO ${head} (${names}) VALUES (${p.applicationId},
    (SELECT ${p.sequence} FROM ${head} WHERE ${isAt}), ${p.entry}, ${sql.param(p.rangeSegments, head.rangeSegments)}, ${p.lastOrdinal}, ${p.lastChange},
    ${p.lastSigningKey}, ${p.epoch}, ${p.hour}, ${p.hourUsed}, ${sql.param(p.statistics, head.statistics)},
    (SELECT iif(${flag} > ${p.sequence}, ${flag}, 0) FROM ${head} WHERE ${isAt}))
    ON CONFLICT (${sql.identifier(head.applicationId.name)}) DO UPDATE SET ${sql.join(changed.map(set), sql`, `)}`;
});

export function fence(
  session: D1DatabaseSession,
  applicationId: ApplicationId,
  from: string,
  { sequence, entry, counters, readableFrom }: FenceTarget,
): D1PreparedStatement {
  const { keep, sequence: flag } = readableFrom;
  return FENCE.bind(session, {
    ...counters,
    applicationId,
    from,
    sequence,
    entry,
    readableFrom: flag,
    keeps: keep ? 1 : 0,
  });
}

const CLOSE = statement<{ applicationId: ApplicationId; entry: string; readableFrom: number }, ReturnType<typeof sql>>(
  (p) => sql`UPDATE ${applicationHead} SET ${sql.identifier(applicationHead.readableFrom.name)} = ${p.readableFrom}
    WHERE ${applicationHead.applicationId} = ${p.applicationId} AND ${applicationHead.entry} = ${p.entry}`,
);

/**
 * Sets the readers' flag without a batch. One round trip, once.
 *
 * @param readableFrom the sequence from which readers may read again. By default no sequence reaches it: readers stay
 *   stopped until a fence overwrites the flag
 * @throws Unavailable
 */
export async function closeToReaders(
  db: Database,
  applicationId: ApplicationId,
  entry: string,
  readableFrom = Number.MAX_SAFE_INTEGER,
): Promise<void> {
  await db.onceAtPrimary((session) => CLOSE.bind(session, { applicationId, entry, readableFrom }).run());
}

const NOTE_LOG_SINCE = statement<{ applicationId: ApplicationId; since: number }, ReturnType<typeof sql>>((p) => {
  const since = applicationHead.logSince;
  return sql`UPDATE ${applicationHead} SET ${sql.identifier(since.name)} = max(coalesce(${since}, 0), ${p.since})
    WHERE ${applicationHead.applicationId} = ${p.applicationId}`;
});

/** D1 can be restored to no earlier moment: the log begins there. One round trip. @param since milliseconds @throws Unavailable */
export async function noteLogSince(db: Database, applicationId: ApplicationId, since: number): Promise<void> {
  await db.run((d1) => NOTE_LOG_SINCE.bind(d1, { applicationId, since }).run());
}
