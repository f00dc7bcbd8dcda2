import { asc, eq } from "drizzle-orm";
import type { Role } from "../../shared/actor.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { applicationSecret, consoleSecret } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { findApplication } from "../application/record.ts";
import { tableLines } from "../command-line/output.ts";
import type { Database, Orm } from "../platform/database.ts";

/** A secret as the commands print it, without its value. */
export interface ShownSecret {
  secretId: string;
  /** Which of the server's two it is, or what a person may do with it (contract section 24). */
  role: "current" | "added" | "previous" | Role;
  /** Whose it is; only of a person's (contract section 19). */
  name?: string;
  createdAt: string | null;
}

/** The secrets of an application: those of its server, oldest first, then those of people, by name. */
export async function listSecrets(database: Database, applicationId: ApplicationId): Promise<ShownSecret[]> {
  await findApplication(database, applicationId);
  return shownSecrets(await database.run((orm) => orm.batch(selectSecrets(orm, applicationId))));
}

export type SecretRow = typeof applicationSecret.$inferSelect;
type ConsoleSecretRow = typeof consoleSecret.$inferSelect;

/** The statements that `shownSecrets` takes the results of. */
export const selectSecrets = (orm: Orm, applicationId: ApplicationId) =>
  [
    orm
      .select()
      .from(applicationSecret)
      .where(eq(applicationSecret.applicationId, applicationId))
      .orderBy(asc(applicationSecret.createdAt)),
    orm
      .select()
      .from(consoleSecret)
      .where(eq(consoleSecret.applicationId, applicationId))
      .orderBy(asc(consoleSecret.name)),
  ] as const;

export function shownSecrets([secrets, consoleSecrets]: readonly [
  secrets: readonly SecretRow[],
  consoleSecrets: readonly ConsoleSecretRow[],
]): ShownSecret[] {
  return [
    ...secrets.map(({ id, role, createdAt }) => ({ secretId: id, role, createdAt: isoTime(createdAt) })),
    ...consoleSecrets.map(({ id, name, role, createdAt }) => ({
      secretId: id,
      role,
      name,
      createdAt: isoTime(createdAt),
    })),
  ];
}

/** A table of secrets, without their values. */
export function secretTable(secrets: readonly ShownSecret[]): string {
  const rows = secrets.map(({ secretId, role, name, createdAt }) => [secretId, role, createdAt ?? "", name ?? ""]);
  return tableLines(["SECRET ID", "ROLE", "CREATED", "NAME"], rows, "There are no secrets.");
}
