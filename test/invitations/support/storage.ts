import { getTableColumns, getTableName } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { ApplicationId } from "../../../src/shared/identifiers.ts";
import { badge, invitation, webhookEvent } from "../../../src/shared/schema.ts";
import { expectInSync } from "../../allocator/support.ts";
import { homeDatabase } from "../../support/home.ts";

interface ApplicationRows {
  badges: (typeof badge.$inferSelect)[];
  invitations: (typeof invitation.$inferSelect)[];
  events: (typeof webhookEvent.$inferSelect)[];
}

/** The rows of a table that are one application's, as one JSON text whose fields are named as in code. */
function jsonOf(table: SQLiteTable, order = "rowid"): string {
  const fields = Object.entries(getTableColumns(table)).map(([name, column]) => `'${name}', "${column.name}"`);
  return `(SELECT json_group_array(json_object(${fields.join(", ")}) ORDER BY ${order}) FROM ${getTableName(table)}
    WHERE application_id = ?1)`;
}

/** Events of one millisecond have no order but that of the changes that they report. */
const EVENT_ORDER = "created_at, payload ->> '$.data.change', id";

/** One statement with one row: a model test asks after every step, and each call to D1 costs more than what it asks. */
const SELECT_ALL = `SELECT ${jsonOf(badge)} AS badges, ${jsonOf(invitation)} AS invitations, ${jsonOf(webhookEvent, EVENT_ORDER)} AS events`;

/** All that D1 has of an application; invitations and events in the order in which they came. */
export async function readRows({ id }: { id: string }): Promise<ApplicationRows> {
  const row = await homeDatabase().prepare(SELECT_ALL).bind(id).first<Record<keyof ApplicationRows, string>>();
  if (!row) throw new Error("a SELECT without FROM has one row");
  return { badges: JSON.parse(row.badges), invitations: JSON.parse(row.invitations), events: JSON.parse(row.events) };
}

/** The same when all is quiet: D1 then has what the allocator has, and counts it. */
export async function rowsInSync(application: { id: ApplicationId }): Promise<ApplicationRows> {
  await expectInSync(application);
  return readRows(application);
}

/** An endpoint that is set and held: events are recorded, nothing is sent. */
export const RECORDED_EVENTS = { webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1 } as const;
