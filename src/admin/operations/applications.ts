import { and, asc, count, eq, isNotNull, isNull } from "drizzle-orm";
import { isApplicationId } from "../../shared/identifiers.ts";
import { application, webhookEvent } from "../../shared/schema.ts";
import { ADMIN, UserError } from "../errors.ts";
import { isoTime } from "../output.ts";
import type { Database, Orm } from "../platform/database.ts";

/** An application as the commands print it: everything but what is sealed. */
export interface ShownApplication {
  applicationId: string;
  name: string;
  firstNumber: number;
  lastNumber: number;
  webhookUrl: string | null;
  /** Since when deliveries are held. */
  webhookHeldAt: string | null;
  requireSecret: boolean;
  reuseAfterSeconds: number;
  signatureLifetimeSeconds: number | null;
  createdAt: string | null;
  disabledAt: string | null;
}

export type ApplicationRow = typeof application.$inferSelect;

export function shownApplication(row: ApplicationRow): ShownApplication {
  const { id, name, firstNumber, lastNumber, webhookUrl, requireSecret, reuseAfterSeconds } = row;
  return {
    applicationId: id,
    name,
    firstNumber,
    lastNumber,
    webhookUrl,
    webhookHeldAt: isoTime(row.webhookHeldAt),
    requireSecret,
    reuseAfterSeconds,
    signatureLifetimeSeconds: row.signatureLifetimeSeconds,
    createdAt: isoTime(row.createdAt),
    disabledAt: isoTime(row.disabledAt),
  };
}

export const unknownApplication = (id: string): UserError =>
  new UserError(`There is no application ${id}: see ${ADMIN} application list.`);

/** @throws UserError when a text cannot be an application ID */
export function assertApplicationId(text: string): void {
  if (isApplicationId(text)) return;
  throw new UserError(`"${text}" is not an application ID, which looks like app_…: see ${ADMIN} application list.`);
}

export function selectApplication(orm: Orm, id: string) {
  return orm.select().from(application).where(eq(application.id, id));
}

/** @throws UserError when there is no such application */
export async function findApplication(database: Database, id: string): Promise<ApplicationRow> {
  assertApplicationId(id);
  const [row] = await database.run((orm) => selectApplication(orm, id));
  if (row === undefined) throw unknownApplication(id);
  return row;
}

/** All applications, in the order of their numbers. */
export async function listApplications(database: Database): Promise<ShownApplication[]> {
  const rows = await database.run((orm) => orm.select().from(application).orderBy(asc(application.firstNumber)));
  return rows.map(shownApplication);
}

/** Refuses an application's requests, or accepts them again. Done already, it changes nothing. */
export async function setDisabled(database: Database, id: string, disabled: boolean): Promise<ShownApplication> {
  assertApplicationId(id);
  const notYet = disabled ? isNull(application.disabledAt) : isNotNull(application.disabledAt);
  const [, [row]] = await database.run((orm) =>
    orm.batch([
      orm
        .update(application)
        .set({ disabledAt: disabled ? Date.now() : null })
        .where(and(eq(application.id, id), notYet)),
      selectApplication(orm, id),
    ]),
  );
  if (row === undefined) throw unknownApplication(id);
  return shownApplication(row);
}

/** Events of an application that are kept because their delivery is held. */
export async function countHeldEvents(database: Database, id: string): Promise<number> {
  const [row] = await database.run((orm) =>
    orm
      .select({ held: count() })
      .from(webhookEvent)
      .where(and(eq(webhookEvent.applicationId, id), eq(webhookEvent.state, "held"))),
  );
  return row?.held ?? 0;
}
