import { asc, gt } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { application } from "../../shared/schema.ts";
import type { Database } from "./database.ts";
import { orm, type Placeholders, statement } from "./statement.ts";

const SELECT = statement((p: Placeholders<{ after: string; limit: number }>) =>
  orm
    .select({ id: application.id })
    .from(application)
    .where(gt(application.id, p.after))
    .orderBy(asc(application.id))
    .limit(p.limit),
);

/** Applications of a home, by ID. One round trip. */
export async function listApplications(db: Database, after: string, limit: number): Promise<ApplicationId[]> {
  return (await db.all(SELECT, { after, limit })).map(({ id }) => id);
}
