import { type Column, type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { applicationHead } from "../../shared/schema.ts";
import { Unavailable } from "../platform.ts";
import { type Placeholders, query, statement } from "./statement.ts";

/** Whether the application may be read: after a restore D1 lacks changes until the allocator has sent them again (contract section 21). */
export const isReadable = sql<number>`${applicationHead.sequence} >= ${applicationHead.readableFrom}`;

/** Whether the application of a row may be read. */
export const isOfReadable = (applicationId: Column): SQL =>
  sql`EXISTS (SELECT 1 FROM ${applicationHead} WHERE ${applicationHead.applicationId} = ${applicationId} AND ${isReadable})`;

/** @throws Unavailable while D1 lacks changes of the application */
export function requireReadable(head: { isReadable: number } | undefined): void {
  if (head?.isReadable === 0) throw new Unavailable("D1", new Error("D1 lacks changes since a restore"));
}

/** The counters of an application, as of the changes that D1 has. */
export const SELECT_HEAD = statement((p: Placeholders<{ applicationId: ApplicationId }>) => {
  const { applicationId, epoch, lastOrdinal, lastChange } = applicationHead;
  return query(
    { isReadable, epoch, lastOrdinal, lastChange },
    (fields) => sql`SELECT ${fields} FROM ${applicationHead} WHERE ${applicationId} = ${p.applicationId}`,
  );
});

/** @param result of `SELECT_HEAD` */
export function headOf(result: Parameters<typeof SELECT_HEAD.rows>[0]) {
  const [head] = SELECT_HEAD.rows(result);
  if (!head) throw new Error("the application has no head");
  return head;
}
