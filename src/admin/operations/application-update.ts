import { and, eq, gte, type SQL, sql } from "drizzle-orm";
import { application } from "../../shared/schema.ts";
import { ADMIN, UserError } from "../errors.ts";
import type { Database } from "../platform/database.ts";
import { overlapLine, selectNeighbour } from "./application-create.ts";
import {
  type ApplicationRow,
  assertApplicationId,
  type ShownApplication,
  selectApplication,
  shownApplication,
  unknownApplication,
} from "./applications.ts";
import { makeDue } from "./make-due.ts";
import { overlapsAnother } from "./number-range.ts";

/** What to change; what is absent stays. */
export interface ApplicationChanges {
  name?: string | undefined;
  /** Only to say that it stays: a range grows at its end. */
  firstNumber?: number | undefined;
  lastNumber?: number | undefined;
  /** Null: no events any more. A URL, also the one that is set, releases an endpoint that is held. */
  webhookUrl?: string | null | undefined;
  requireSecret?: boolean | undefined;
  reuseAfterSeconds?: number | undefined;
  signatureLifetimeSeconds?: number | null | undefined;
}

/**
 * Changes an application in one transaction: all of it or, when the range cannot grow that far, nothing.
 *
 * @throws UserError when the range cannot be so
 */
export async function updateApplication(
  database: Database,
  id: string,
  changes: ApplicationChanges,
): Promise<ShownApplication> {
  assertApplicationId(id);
  if (Object.values(changes).every((value) => value === undefined)) {
    throw new UserError(`Nothing to change: give at least one option, see ${ADMIN} application update --help.`);
  }
  const [updated, , [row], [neighbour]] = await database.run((orm) =>
    orm.batch([
      orm
        .update(application)
        .set(newValues(changes))
        .where(and(eq(application.id, id), rangeCondition(id, changes))),
      makeDue(orm, id, "held", isReleased(id, changes)),
      selectApplication(orm, id),
      selectNeighbour(orm, changes.lastNumber ?? 0, id),
    ]),
  );
  if (row === undefined) throw unknownApplication(id);
  if (updated.meta.changes === 0) throw new UserError(refusalLine(row, changes, neighbour));
  return shownApplication(row);
}

function newValues({ firstNumber: _unchanged, webhookUrl, ...plain }: ApplicationChanges) {
  const fresh = { webhookHeldAt: null, webhookFailingSince: null, webhookFailures: 0 };
  // A first number alone changes nothing, but SQL wants something to set.
  return { id: application.id, ...plain, ...(webhookUrl !== undefined && { webhookUrl, ...fresh }) };
}

function rangeCondition(id: string, { firstNumber, lastNumber }: ApplicationChanges): SQL | undefined {
  const sameFirst = firstNumber === undefined ? undefined : eq(application.firstNumber, firstNumber);
  if (lastNumber === undefined) return sameFirst;
  const first = sql`${application.firstNumber}`;
  const grows = sql`${application.lastNumber} <= ${lastNumber}`;
  return and(sameFirst, grows, sql`NOT ${overlapsAnother(first, sql`${lastNumber}`, id)}`);
}

/** True once the update before it in the batch has set the URL. */
function isReleased(id: string, { webhookUrl, lastNumber }: ApplicationChanges): SQL {
  if (webhookUrl === undefined || webhookUrl === null) return sql`false`;
  const isSet = and(
    eq(application.id, id),
    eq(application.webhookUrl, webhookUrl),
    gte(application.lastNumber, lastNumber ?? 0),
  );
  return sql`EXISTS (SELECT 1 FROM ${application} WHERE ${isSet} AND ${application.webhookHeldAt} IS NULL)`;
}

function refusalLine(
  { firstNumber, lastNumber }: ApplicationRow,
  changes: ApplicationChanges,
  neighbour: ApplicationRow | undefined,
): string {
  if (changes.firstNumber !== undefined && changes.firstNumber !== firstNumber) {
    return `The range starts at ${firstNumber} and stays there: leave out --first.`;
  }
  const wanted = changes.lastNumber ?? lastNumber;
  if (wanted < lastNumber) return `The range ends at ${lastNumber} and can only grow: give a larger --last.`;
  if (neighbour !== undefined && neighbour.lastNumber >= firstNumber) {
    return overlapLine({ firstNumber, lastNumber: wanted }, neighbour);
  }
  return "The ranges changed at this moment: run the command again.";
}
