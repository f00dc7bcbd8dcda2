import { and, eq, lt, type SQL, sql } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { OBSERVED_HOURS } from "../../shared/limits/user-token-limits.ts";
import { observedLogins } from "../../shared/schema.ts";
import { HOUR_MILLISECONDS } from "../../shared/time.ts";
import type { Database } from "./database.ts";
import { orm, type Placeholders, statement } from "./statement.ts";

/** Logins by the validity of their user tokens. */
type LoginCounts = Pick<typeof observedLogins.$inferSelect, "withToken" | "withoutToken" | "withWrongToken">;

const sumOf = (column: (typeof observedLogins)[keyof LoginCounts]): SQL =>
  sql`${column} + excluded.${sql.identifier(column.name)}`;

const ADD = statement((p: Placeholders<typeof observedLogins.$inferInsert>) =>
  orm
    .insert(observedLogins)
    .values({
      applicationId: p.applicationId,
      hour: p.hour,
      withToken: p.withToken,
      withoutToken: p.withoutToken,
      withWrongToken: p.withWrongToken,
    })
    .onConflictDoUpdate({
      target: [observedLogins.applicationId, observedLogins.hour],
      set: {
        withToken: sumOf(observedLogins.withToken),
        withoutToken: sumOf(observedLogins.withoutToken),
        withWrongToken: sumOf(observedLogins.withWrongToken),
      },
    }),
);

const DELETE_OLD = statement((p: Placeholders<{ applicationId: ApplicationId; firstHour: number }>) =>
  orm
    .delete(observedLogins)
    .where(and(eq(observedLogins.applicationId, p.applicationId), lt(observedLogins.hour, p.firstHour))),
);

/**
 * Adds logins to the present hour, and deletes hours that no longer count. One round trip. A retry after a lost
 * response counts twice, which these statistics tolerate.
 *
 * @param now milliseconds
 */
export async function addObservedLogins(
  db: Database,
  applicationId: ApplicationId,
  counts: LoginCounts,
  now: number,
): Promise<void> {
  const hour = Math.floor(now / HOUR_MILLISECONDS);
  await db.run((d1) =>
    d1.batch([
      ADD.bind(d1, { applicationId, hour, ...counts }),
      DELETE_OLD.bind(d1, { applicationId, firstHour: hour - OBSERVED_HOURS }),
    ]),
  );
}
