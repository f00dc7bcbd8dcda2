import type { ApplicationId } from "../../shared/identifiers.ts";
import * as schema from "../../shared/schema.ts";
import { columnName } from "./columns.ts";
import type { EntryTable, Erasure, RowWrite, StoredEntry } from "./entry.ts";

/**
 * Entries as D1 statements. All of an entry's statements are one batch, which is one transaction (D1: batch). `?2` is the
 * application in all of them.
 */

type Statements = Pick<D1Database, "prepare">;

const TABLES = {
  badge: { table: schema.badge, sql: "badge", key: "badge.number" },
  invitation: { table: schema.invitation, sql: "invitation", key: "invitation.digest" },
  blockedUser: {
    table: schema.blockedUser,
    sql: "blocked_user",
    key: "blocked_user.application_id = ?2 AND blocked_user.user_id",
  },
  freedNumber: { table: schema.freedNumber, sql: "freed_number", key: "freed_number.number" },
  history: { table: schema.history, sql: "history", key: "history.application_id = ?2 AND history.id" },
} satisfies Record<EntryTable, object>;

/**
 * @param journalSince how far back the object's journal reaches, in milliseconds; null: to the application's beginning
 * @returns the statements of an entry; if it has events, the last one returns the IDs of those that were recorded
 */
export function entryStatements(
  d1: Statements,
  applicationId: ApplicationId,
  entry: StoredEntry,
  journalSince: number | null,
): D1PreparedStatement[] {
  const { writes, keys, lastNumber, lossAcceptedAt, erasures, results, events } = entry;
  const rows = (sql: string, values: readonly unknown[]) => d1.prepare(sql).bind(JSON.stringify(values), applicationId);
  return [
    fence(d1, applicationId, entry, journalSince),
    ...(lossAcceptedAt === null ? [] : acceptLoss(d1, applicationId, lossAcceptedAt)),
    ...(lastNumber === null ? [] : [d1.prepare(GROW_RANGE).bind(lastNumber, applicationId)]),
    ...(keys.length > 0 ? [rows(ENSURE_KEYS, keys)] : []),
    ...writes.map((write) => rows(sqlOf(write), write.rows)),
    ...(results.length > 0 ? [rows(STORE_RESULTS, results)] : []),
    ...erasures.flatMap((erasure) => erase(d1, applicationId, erasure)),
    ...(events.length > 0 ? [rows(INSERT_EVENTS, events)] : []),
  ];
}

/**
 * Moves the position on from the entry before. If that is not the last one, `sequence` is NULL, and if what must be true is not,
 * `entry` is: the statement fails, and D1 rolls the batch back. It also fails if the row is missing.
 */
const FENCE = `
  INSERT INTO position (application_id, sequence, entry, fresh, last_position, last_change, last_signing_key, epoch,
    hour_started_at, hour_used, journal_since)
  VALUES (?2, (SELECT ?3 FROM position WHERE application_id = ?2 AND entry = ?4), iif(
      NOT EXISTS (SELECT 1 FROM json_each(?1, '$.devices') AS wanted CROSS JOIN badge
        WHERE badge.application_id = ?2 AND badge.device = wanted.value AND (badge.key_thumbprint IS NOT NULL) IN (0, 1)
          AND badge.user_id IS NOT NULL AND badge.position IS NOT NULL AND badge.retired_at IS NULL)
      AND NOT EXISTS (SELECT 1 FROM json_each(?1, '$.users') AS wanted CROSS JOIN blocked_user
        WHERE blocked_user.application_id = ?2 AND blocked_user.user_id = wanted.value),
    ?5, NULL), ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
  ON CONFLICT (application_id) DO UPDATE SET sequence = excluded.sequence, entry = excluded.entry, fresh = excluded.fresh,
    last_position = excluded.last_position, last_change = excluded.last_change,
    last_signing_key = excluded.last_signing_key, epoch = excluded.epoch, hour_started_at = excluded.hour_started_at,
    hour_used = excluded.hour_used, journal_since = excluded.journal_since`;

function fence(
  d1: Statements,
  applicationId: ApplicationId,
  { previous, position, unless }: StoredEntry,
  journalSince: number | null,
): D1PreparedStatement {
  const { sequence, entry, fresh, lastPosition, lastChange, lastSigningKey, epoch, hourStartedAt, hourUsed } = position;
  return d1
    .prepare(FENCE)
    .bind(
      JSON.stringify(unless ?? {}),
      applicationId,
      sequence,
      previous,
      entry,
      JSON.stringify(fresh),
      lastPosition,
      lastChange,
      lastSigningKey,
      epoch,
      hourStartedAt,
      hourUsed,
      journalSince,
    );
}

/** Statements are built once for each shape of a write. */
const known = new Map<string, string>();

function sqlOf(write: RowWrite): string {
  const shape = `${write.op} ${write.table} ${write.columns.join(",")}`;
  const sql = known.get(shape) ?? buildSql(write);
  known.set(shape, sql);
  return sql;
}

function buildSql({ op, table: name, columns }: RowWrite): string {
  const { table, sql, key } = TABLES[name];
  const names = columns.map((column) => columnName(table, column));
  const value = (index: number) => `row.value ->> '$[${index}]'`;
  switch (op) {
    case "insert":
      return `INSERT INTO ${sql} (application_id, ${names.join(", ")})
        SELECT ?2, ${names.map((_, index) => value(index)).join(", ")} FROM json_each(?1) AS row`;
    case "update":
      return `UPDATE ${sql} SET ${names
        .flatMap((column, index) => (index === 0 ? [] : [`${column} = ${value(index)}`]))
        .join(", ")}
        FROM json_each(?1) AS row WHERE ${key} = ${value(0)} AND +${sql}.application_id = ?2`;
    case "delete":
      return `DELETE FROM ${sql} WHERE ${key} IN (SELECT ${value(0)} FROM json_each(?1) AS row)
        AND +${sql}.application_id = ?2`;
  }
}

/** A restoration may have forgotten that the range grew, and the key that badges of this entry are issued with. */
const GROW_RANGE = "UPDATE application SET last_number = max(last_number, ?1) WHERE id = ?2";

const ENSURE_KEYS = `
  INSERT INTO signing_key (id, application_id, kid, public_key, sealed, sealing_version, created_at, signs_from)
  SELECT value ->> 'id', ?2, value ->> 'kid', value ->> 'publicKey', value ->> 'sealed', value ->> 'sealingVersion',
    value ->> 'createdAt', value ->> 'signsFrom'
  FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING`;

const STORE_RESULTS = `
  UPDATE inbox SET result = row.value ->> 'result' FROM json_each(?1) AS row
  WHERE inbox.id = row.value ->> 'id' AND inbox.application_id = ?2`;

/**
 * Outbox rows; none for events that the application does not subscribe to (contract section 18). Applied again, they are sent
 * again. Returns the IDs of those that were recorded as `written`.
 */
const INSERT_EVENTS = `
  INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
  SELECT ?2, row ->> 'id', row ->> 'event', row ->> 'payload', iif(application.webhook_held_at IS NULL, 'pending', 'held'), 0,
    row ->> 'createdAt'
  FROM (SELECT value AS row FROM json_each(?1))
  JOIN application ON application.id = ?2 AND application.webhook_url IS NOT NULL
    AND instr(',' || application.events || ',', ',' || (row ->> 'event') || ',') > 0
  WHERE true
  ON CONFLICT DO NOTHING
  RETURNING id AS written`;

/** Deliveries of a person who is erased go on, without the person. */
const ERASE_EVENTS = `
  UPDATE webhook_event SET last_response = NULL, payload = json_set(json_remove(payload, '$.data.metadata', '$.data.name'),
    '$.data.userId', ?4)
  WHERE application_id = ?2 AND id > ?1 AND (?5 IS NULL OR id <= ?5) AND payload ->> '$.data.userId' = ?3`;

const ERASE_HISTORY = `
  UPDATE history SET user_id = ?3, reason = NULL, detail = NULL
  WHERE application_id = ?2 AND user_id = ?1 AND id <= coalesce(?4, '~')`;

/** Commands of the script that were carried out, the one that erases included: only its result is new, so it comes after that. */
const ERASE_COMMANDS = `
  UPDATE inbox SET command = json_replace(command, '$.command.userId', ?3), result = json_remove(
    json_replace(result, '$.userId', ?3, '$.badge.userId', ?3), '$.badge.metadata', '$.badge.name')
  WHERE application_id = ?2 AND result IS NOT NULL
    AND ?1 IN (command ->> '$.command.userId', result ->> '$.badge.userId')`;

function erase(d1: Statements, applicationId: ApplicationId, erasure: Erasure): D1PreparedStatement[] {
  const { userId, alias, historyThrough, eventsAfter, eventsThrough } = erasure;
  return [
    d1.prepare(ERASE_EVENTS).bind(eventsAfter, applicationId, userId, alias, eventsThrough),
    d1.prepare(ERASE_HISTORY).bind(userId, applicationId, alias, historyThrough),
    d1.prepare(ERASE_COMMANDS).bind(userId, applicationId, alias),
  ];
}

function acceptLoss(d1: Statements, applicationId: ApplicationId, now: number): D1PreparedStatement[] {
  return [
    ...["freed_number", "status_list"].map((table) =>
      d1.prepare(`DELETE FROM ${table} WHERE application_id = ?1`).bind(applicationId),
    ),
    d1
      .prepare("UPDATE invitation SET state = 'revoked', ended_at = ?2 WHERE application_id = ?1 AND state = 'pending'")
      .bind(applicationId, now),
  ];
}
