import { getTableColumns, getTableName, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ApplicationId } from "../../../shared/identifiers.ts";
import { STATISTICS_DAYS } from "../../../shared/limits/statistics-limits.ts";
import { LATE_EVENT_MILLISECONDS } from "../../../shared/limits/sweep-limits.ts";
import {
  application,
  applicationHead,
  badge,
  history,
  scriptCommand,
  signingKey,
  webhookEvent,
} from "../../../shared/schema.ts";
import { isGivenUp } from "../../storage/command-rows.ts";
import type { FreedRow, InvitationRow } from "../../storage/rows.ts";
import { byShape, columnName, query, type Returning, type Statement, statement } from "../../storage/statement.ts";
import type { EntryChanges, RowTable, RowWrite } from "../log-entry.ts";
import { ERASE_EVENTS } from "./erase-events.ts";
import { ERASE_ACTOR, ERASE_HISTORY, ERASE_MENTIONED, type ErasureValues } from "./erase-history.ts";
import { ROW_TABLES } from "./row-keys.ts";

/**
 * Entries as D1 statements. There is one statement for all rows of one shape: D1 takes less than half the time that a statement for
 * each row would take. Every statement concerns rows of this application only.
 */

/** Binds a list of rows as one value, and the application. */
interface RowValues {
  applicationId: ApplicationId;
  rows: readonly unknown[];
}

type RowStatement = Statement<RowValues, never>;

const AS_JSON = { mapToDriverValue: JSON.stringify };

const each = (rows: unknown): SQL => sql`json_each(${sql.param(rows, AS_JSON)}) AS row`;

/** Column `index` of a row that is a JSON array. */
const value = (index: number): SQL => sql`row.value ->> ${sql.raw(`'$[${index}]'`)}`;

/** The statement for rows of one shape, built once for each. */
const rowStatement = byShape(
  ({ op, table, columns }: { op: RowWrite["op"]; table: RowTable; columns: string }): RowStatement =>
    statement<RowValues, SQL>(({ applicationId, rows }) => {
      const target = ROW_TABLES[table];
      const known: Record<string, { name: string }> = getTableColumns(target);
      const names = columns.split(",").map((name) => {
        const column = known[name];
        if (!column) throw new Error(`${getTableName(target)} has no column ${name}`);
        return columnName(column);
      });
      const key = sql`${sql.identifier(getTableName(target))}.${names[0]}`;
      // The plus sign keeps SQLite from searching by application, which would read all of its rows. Blocks have no other key.
      const owner = columnName(target.applicationId);
      const isOwn = table === "blockedUser" ? sql`${owner} = ${applicationId}` : sql`+${owner} = ${applicationId}`;
      switch (op) {
        case "insert":
          return sql`INSERT INTO ${target} (${owner}, ${sql.join(names, sql`, `)})
            SELECT ${applicationId}, ${sql.join(
              names.map((_, index) => value(index)),
              sql`, `,
            )} FROM ${each(rows)}
            WHERE ${mayStore(table, columns.split(","), applicationId)} ${ifTaken(table, names, applicationId)}`;
        case "update":
          return sql`UPDATE ${target} SET ${sql.join(
            names.flatMap((name, index) => (index === 0 ? [] : [sql`${name} = ${value(index)}`])),
            sql`, `,
          )} FROM ${each(rows)} WHERE ${key} = ${value(0)} AND ${isOwn}`;
        case "delete":
          return sql`DELETE FROM ${target} WHERE ${key} IN (SELECT ${value(0)} FROM ${each(rows)}) AND ${isOwn}`;
      }
    }),
);

/**
 * A badge number that another application has in D1 is refused: the row is left alone, and the application's head lists the
 * number. Any other existing row is this application's, and is overwritten.
 */
function ifTaken(table: RowTable, names: readonly SQL[], applicationId: unknown): SQL {
  const target = ROW_TABLES[table];
  const key = table === "blockedUser" ? sql`${columnName(target.applicationId)}, ${names[0]}` : sql`${names[0]}`;
  const changed = names.slice(1).map((name) => sql`${name} = excluded.${name}`);
  return sql`ON CONFLICT (${key}) DO UPDATE SET ${sql.join(changed, sql`, `)}
    WHERE ${sql.identifier(getTableName(target))}.${columnName(target.applicationId)} = ${applicationId}`;
}

/** Invitations and freed numbers are stored only where the number is not another application's. */
function mayStore(table: RowTable, columns: readonly string[], applicationId: unknown): SQL {
  if (table !== "invitation" && table !== "freedNumber") return sql`true`;
  return isFreeOrOwn(value(columns.indexOf("number" satisfies keyof InvitationRow & keyof FreedRow)), applicationId);
}

const held = alias(badge, "held");

const isFreeOrOwn = (number: SQL, applicationId: unknown): SQL =>
  sql`NOT EXISTS (SELECT 1 FROM ${badge} AS ${held} WHERE ${held.number} = ${number}
    AND ${held.applicationId} <> ${applicationId})`;

/**
 * Numbers of inserted badges that another application has: they go into the head, which names them until they are withdrawn.
 * Returns them; nothing if there are none.
 */
const NOTE_REFUSED = statement<RowValues, Returning<{ refused: typeof applicationHead.refused }>>(
  ({ applicationId, rows }) => {
    const head = applicationHead;
    const foreign = sql`SELECT ${held.number} FROM ${each(rows)}
    CROSS JOIN ${badge} AS ${held} ON ${held.number} = row.value
    WHERE ${held.applicationId} <> ${applicationId}`;
    return query(
      { refused: head.refused },
      (columns) => sql`UPDATE ${head} SET ${columnName(head.refused)} = (
      SELECT json_group_array(one) FROM (
        SELECT value AS one FROM json_each(${columnName(head.refused)}) UNION ${foreign}))
    WHERE ${columnName(head.applicationId)} = ${applicationId} AND EXISTS (${foreign})
    RETURNING ${columns}`,
    );
  },
);

const NOTE_WITHDRAWN = statement<RowValues, SQL>(({ applicationId, rows }) => {
  const head = applicationHead;
  return sql`UPDATE ${head} SET ${columnName(head.refused)} = (
      SELECT json_group_array(value) FROM json_each(${columnName(head.refused)})
      WHERE value NOT IN (SELECT row.value FROM ${each(rows)}))
    WHERE ${columnName(head.applicationId)} = ${applicationId}`;
});

/** A field of a row that is a JSON object; an object in it becomes JSON text. */
const field = (path: string): SQL => sql`row.value ->> ${sql.raw(`'$.${path}'`)}`;

/** Inserts rows that are JSON objects by the schema's names. What D1 has stays. */
const insertMissing = (table: typeof history | typeof signingKey) =>
  statement<RowValues, SQL>(({ applicationId, rows }) => {
    const { applicationId: owner, ...others } = getTableColumns(table);
    return sql`INSERT INTO ${table} (${columnName(owner)}, ${sql.join(Object.values(others).map(columnName), sql`, `)})
      SELECT ${applicationId}, ${sql.join(Object.keys(others).map(field), sql`, `)} FROM ${each(rows)}
      WHERE true ON CONFLICT DO NOTHING`;
  });

const INSERT_HISTORY = insertMissing(history);
const ENSURE_KEYS = insertMissing(signingKey);

/**
 * Webhook events; none for those that the application does not subscribe to (contract section 18). Of an entry that D1 may have
 * had before, events are due at once, or `held` if the URL has been removed since (contract section 21). Events that D1 gets late
 * are due at once, too, because ticks look for untried events of the last minutes only. Returns the IDs of events that are to be
 * sent now.
 */
const insertEvents = (isResent: boolean) =>
  statement<RowValues & { now: number; isHeldWithoutUrl: number }, Returning<{ id: typeof webhookEvent.id }>>(
    ({ applicationId, rows, now, isHeldWithoutUrl }) => {
      const event = webhookEvent;
      const names = [
        event.applicationId,
        event.id,
        event.event,
        event.payload,
        event.state,
        event.dueAt,
        event.createdAt,
      ];
      const url = application.webhookUrl;
      const isHeld = sql`(${url} IS NULL OR ${application.webhookHeldAt} IS NOT NULL)`;
      return query(
        { id: event.id },
        (columns) => sql`INSERT INTO ${event} (${sql.join(names.map(columnName), sql`, `)})
        SELECT ${applicationId}, ${field("payload.id")}, ${field("payload.event")}, ${field("payload")}, iif(${isHeld}, 'held', 'pending'),
          ${isResent ? sql`${now}` : dueIfLate(now)}, ${field("createdAt")}
        FROM ${each(rows)} JOIN ${application} ON ${application.id} = ${applicationId}
          AND ${isResent ? sql`(${url} IS NOT NULL OR ${isHeldWithoutUrl})` : sql`${url} IS NOT NULL`}
          AND instr(',' || ${application.events} || ',', ',' || (${field("payload.event")}) || ',') > 0
        WHERE ${isFreeOrOwn(field("payload.data.id"), applicationId)}
        ON CONFLICT DO NOTHING
        RETURNING ${columns}`,
      );
    },
  );

/**
 * Due at once if the event is older than half of `LATE_EVENT_MILLISECONDS`, else no due time. Half, because D1 may
 * apply a batch long after it was sent.
 */
const dueIfLate = (now: unknown): SQL =>
  sql`iif(${field("createdAt")} < ${now} - ${sql.raw(String(LATE_EVENT_MILLISECONDS / 2))}, ${now}, NULL)`;

const INSERT_EVENTS = insertEvents(false);
const INSERT_RESENT_EVENTS = insertEvents(true);

const GROW_RANGE = statement<{ applicationId: ApplicationId; lastNumber: number }, SQL>(
  ({ applicationId, lastNumber }) => {
    const last = columnName(application.lastNumber);
    return sql`UPDATE ${application} SET ${last} = max(${last}, ${lastNumber})
      WHERE ${columnName(application.id)} = ${applicationId}`;
  },
);

/** Drops days older than the 90 shown. */
const STORE_ENDED_DAY = statement<RowValues, SQL>(({ applicationId, rows }) => {
  const days = columnName(applicationHead.pastDays);
  const shown = sql.raw(String(STATISTICS_DAYS));
  return sql`UPDATE ${applicationHead} SET ${days} = (
      SELECT json_group_object(past.key, past.value)
      FROM json_each(json_set(${days}, '$."' || (${field("day")}) || '"', ${field("count")})) AS past
      WHERE CAST(past.key AS INTEGER) > (${field("day")}) - ${shown})
    FROM ${each(rows)} WHERE ${columnName(applicationHead.applicationId)} = ${applicationId}`;
});

const STORE_RESULTS = statement<{ rows: readonly unknown[]; applicationId: ApplicationId }, SQL>(
  ({ applicationId, rows }) => {
    const command = scriptCommand;
    return sql`UPDATE ${command} SET ${columnName(command.result)} = ${field("result")} FROM ${each(rows)}
      WHERE ${command.id} = ${field("id")} AND ${command.recipient} = ${applicationId}`;
  },
);

/** Erases the person as the author of script commands. */
const ERASE_COMMANDER = statement<ErasureValues, SQL>(({ applicationId, userId, alias }) => {
  const command = columnName(scriptCommand.command);
  return sql`UPDATE ${scriptCommand} SET ${command} = json_replace(${command}, '$.actor.name', ${alias})
    WHERE ${columnName(scriptCommand.recipient)} = ${applicationId} AND ${command} ->> '$.actor.name' = ${userId}`;
});

/** Erases the person from script commands that are completed, the erasing one included, or too old to be carried out. */
const ERASE_COMMANDS = statement<ErasureValues, SQL>(({ applicationId, userId, alias }) => {
  const [command, result] = [columnName(scriptCommand.command), columnName(scriptCommand.result)];
  return sql`UPDATE ${scriptCommand} SET ${command} = json_replace(${command}, '$.command.userId', ${alias}),
      ${result} = json_remove(json_replace(${result}, '$.userId', ${alias}, '$.badge.userId', ${alias}),
        '$.badge.metadata', '$.badge.name')
    WHERE ${columnName(scriptCommand.recipient)} = ${applicationId}
      AND (${result} IS NOT NULL OR ${isGivenUp})
      AND ${userId} IN (${command} ->> '$.command.userId', ${result} ->> '$.badge.userId')`;
});

/** What events that are sent again need. */
interface Resend {
  /** The time of sending, in milliseconds: they are due at once. */
  now: number;
  /** Whether the application had a URL: where it is gone, its events are held. */
  hadUrl: boolean;
}

/** The statements of one or more entries, and which of them return something. */
export class RenderedEntries {
  readonly statements: D1PreparedStatement[] = [];
  readonly #events: number[] = [];
  readonly #refused: number[] = [];

  constructor(
    session: D1DatabaseSession,
    applicationId: ApplicationId,
    entries: readonly { changes: EntryChanges; isResent: boolean }[],
    resend: Resend,
  ) {
    for (const { changes, isResent } of entries) this.#add(session, applicationId, changes, isResent, resend);
  }

  /** IDs of the events that were recorded. @param results of the statements, in their order */
  newEvents(results: readonly D1Result[]): string[] {
    return this.#events.flatMap((index) => INSERT_EVENTS.rows(results[index]).map(({ id }) => id));
  }

  /** Numbers of this application that another one has in D1. @param results of the statements, in their order */
  refusedNumbers(results: readonly D1Result[]): number[] {
    return [
      ...new Set(this.#refused.flatMap((index) => NOTE_REFUSED.rows(results[index]).flatMap((row) => row.refused))),
    ];
  }

  #add(
    session: D1DatabaseSession,
    applicationId: ApplicationId,
    changes: EntryChanges,
    isResent: boolean,
    { now, hadUrl }: Resend,
  ): void {
    const { rows, history, events, erasures, eventSearches, erasedHistory, results, keys } = changes;
    const { lastNumber, endedDay, withdrawn } = changes;
    const { statements } = this;
    const add = (to: Statement<RowValues, unknown>, values: readonly unknown[]) => {
      if (values.length > 0) statements.push(to.bind(session, { applicationId, rows: values }));
    };
    if (lastNumber !== null) statements.push(GROW_RANGE.bind(session, { applicationId, lastNumber }));
    add(STORE_ENDED_DAY, endedDay === null ? [] : [endedDay]);
    add(ENSURE_KEYS, keys);
    for (const write of rows) add(statementOf(write), write.rows);
    const inserted = rows.flatMap(({ op, table, rows: each }) =>
      op === "insert" && table === "badge" ? each.map(([number]) => number) : [],
    );
    if (inserted.length > 0) this.#refused.push(statements.length);
    add(NOTE_REFUSED, inserted);
    add(NOTE_WITHDRAWN, withdrawn);
    const erase = (from: readonly Statement<ErasureValues, never>[]) => {
      for (const { userId, alias, isDone } of erasures) {
        if (isDone) continue;
        for (const one of from) statements.push(one.bind(session, { applicationId, userId, alias }));
      }
    };
    // Before INSERT_HISTORY: this entry's own rows name the person only if they came after the erasure.
    erase([ERASE_HISTORY, ERASE_ACTOR]);
    add(INSERT_HISTORY, history);
    add(STORE_RESULTS, results);
    // After STORE_RESULTS, because a command is erased only once it has a result; the erasing command is one of them.
    erase([ERASE_COMMANDS, ERASE_COMMANDER]);
    for (const chunk of eventSearches) statements.push(ERASE_EVENTS.bind(session, { ...chunk, applicationId }));
    add(
      ERASE_MENTIONED,
      erasedHistory.map((row) => ({ ...row, applicationId })),
    );
    if (events.length === 0) return;
    this.#events.push(statements.length);
    const insert = isResent ? INSERT_RESENT_EVENTS : INSERT_EVENTS;
    statements.push(insert.bind(session, { applicationId, rows: events, now, isHeldWithoutUrl: hadUrl ? 1 : 0 }));
  }
}

const statementOf = ({ op, table, columns }: RowWrite): RowStatement =>
  rowStatement({ op, table, columns: columns.join() });
