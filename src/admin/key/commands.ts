import { and, asc, eq, exists, getTableColumns, sql } from "drizzle-orm";
import type { Actor } from "../../shared/actor.ts";
import { currentSigningKey, makeSigningKey, type NewSigningKey } from "../../shared/credentials.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { NEW_KEY_DELAY_SECONDS, URGENT_KEY_DELAY_SECONDS } from "../../shared/limits/key-limits.ts";
import { application, sealingKey, signingKey } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { APPLICATION, findApplication } from "../application/record.ts";
import { countBadges } from "../badge/count.ts";
import { command, group, option } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { formatNumber, formatTime, tableLines } from "../command-line/output.ts";
import { administrator, insertHistoryRow, newHistoryRow } from "../history/note.ts";
import { type Database, insertWhere, type Orm } from "../platform/database.ts";
import { newestSealer } from "../sealing-key/newest.ts";

export const keyCommands = group("key", {
  summary: "list and rotate the keys that sign badges",
  description: "Lists and rotates the keys that sign badges.",
  commands: [
    command("rotate", {
      arguments: [APPLICATION],
      summary: "give new badges a new signing key",
      description:
        "Gives an application a new signing key. It is published at once, and new badges are signed with it 10 minutes " +
        "later, when every cached copy of the key set has it. Other badges keep the key they were issued with, so every " +
        "public key that was published stays valid.",
      options: { now: option("--now", "sign new badges with it within 30 seconds, though doors may not know it yet") },
      examples: ["", "--now"],
      seals: true,
      work: ({ homes, actor }, id, { now = false }) =>
        rotateSigningKey(homes.databaseFor(id), id, { isUrgent: now, actor }),
      text: (rotated, _session, _id, { now = false }) => rotationText(rotated, now),
    }),
    command("list", {
      arguments: [APPLICATION],
      summary: "list an application's signing keys",
      description:
        "Lists the signing keys of an application, newest first: from when each signs new badges, which one does now, and " +
        "how many badges use it, without those that were revoked or replaced. Times are UTC.",
      work: ({ homes }, id) => listSigningKeys(homes.databaseFor(id), id),
      text: signingKeyTable,
    }),
  ],
});

/**
 * Publishes a new signing key of an application. New badges get it once every cached key set has it; existing badges keep
 * the key that they were issued with.
 *
 * @param isUrgent whether new badges get it as soon as every isolate has it, even if doors may not
 */
export async function rotateSigningKey(
  database: Database,
  applicationId: ApplicationId,
  { isUrgent, actor = administrator() }: { isUrgent: boolean; actor?: Actor },
) {
  await findApplication(database, applicationId);
  const key = await makeSigningKey(await newestSealer(database), applicationId);
  const historyRow = await newHistoryRow(database, applicationId, actor, {
    action: "key:rotated",
    detail: { keyId: key.kid },
  });
  const [, , inserted] = await database.run((orm) =>
    orm.batch([
      insertSigningKey(orm, applicationId, key, isUrgent ? URGENT_KEY_DELAY_SECONDS : NEW_KEY_DELAY_SECONDS),
      insertHistoryRow(orm, historyRow, exists(orm.select().from(signingKey).where(isKey(applicationId, key.kid)))),
      orm.select({ signsFrom: signingKey.signsFrom }).from(signingKey).where(isKey(applicationId, key.kid)),
    ]),
  );
  const [row] = inserted;
  if (!row) throw new UserError("The sealing key was replaced meanwhile: run the command again.");
  return { applicationId, keyId: key.kid, signsFrom: isoTime(row.signsFrom) };
}

const isKey = (applicationId: ApplicationId, kid: string) =>
  and(eq(signingKey.applicationId, applicationId), eq(signingKey.kid, kid));

/**
 * Inserts a key unless it exists, so that a repeat after a lost response adds no second one. Times are D1's, because this
 * computer's clock may be wrong by hours.
 */
function insertSigningKey(orm: Orm, applicationId: ApplicationId, key: NewSigningKey, delaySeconds: number) {
  const row = {
    ...key,
    id: sql`max(${key.id}, 1 + coalesce((SELECT max(${signingKey.id}) FROM ${signingKey}), 0))`,
    applicationId,
    createdAt: sql`unixepoch() * 1000`,
    signsFrom: sql`(unixepoch() + ${delaySeconds}) * 1000`,
  };
  const isNew = sql`FROM ${application} WHERE ${application.id} = ${applicationId}
    AND EXISTS (SELECT 1 FROM ${sealingKey} WHERE ${sealingKey.version} = ${key.sealingVersion})
    AND NOT EXISTS (SELECT 1 FROM ${signingKey} WHERE ${isKey(applicationId, key.kid)})`;
  return insertWhere(orm, signingKey, row, isNew);
}

export function rotationText(
  { applicationId, keyId, signsFrom }: Awaited<ReturnType<typeof rotateSigningKey>>,
  isUrgent: boolean,
): string {
  const doors = isUrgent
    ? "Doors with an older copy of the key set refuse those signatures until they fetch it again, after 5 minutes at most."
    : "By then every cached copy of the key set has it.";
  return [
    `Published key ${keyId} of ${applicationId}.`,
    `New badges are signed with it from ${formatTime(signsFrom)} on. ${doors}`,
  ].join("\n");
}

type ShownSigningKey = Awaited<ReturnType<typeof listSigningKeys>>[number];

/** The signing keys of an application, newest first. Badges that were revoked or replaced never sign again and are not counted. */
export async function listSigningKeys(database: Database, applicationId: ApplicationId) {
  const owner = await findApplication(database, applicationId);
  const rows = await database.run((orm) =>
    orm
      .select({ ...getTableColumns(signingKey), now: sql<number>`unixepoch() * 1000` })
      .from(signingKey)
      .where(eq(signingKey.applicationId, applicationId))
      .orderBy(asc(signingKey.id)),
  );
  const [first, ...later] = rows;
  if (!first) return [];
  const current = currentSigningKey([first, ...later], first.now);
  const { byKey } = await countBadges(database, owner);
  const shown = rows.map((row, index) => ({
    keyId: row.kid,
    /** Whether new badges get this key now. */
    current: row === current,
    badges: byKey.get(row.id) ?? 0,
    createdAt: isoTime(row.createdAt),
    /** Null if a later key took effect no later, so that new badges never got this one. */
    signsFrom: rows.slice(index + 1).some((key) => key.signsFrom <= row.signsFrom) ? null : isoTime(row.signsFrom),
  }));
  return shown.reverse();
}

export function signingKeyTable(keys: readonly ShownSigningKey[]): string {
  const currentIndex = keys.findIndex(({ current }) => current);
  const rows = keys.map(({ keyId, current, badges, signsFrom }, index) => [
    keyId,
    formatTime(signsFrom),
    current ? "now" : signsFrom !== null && index < currentIndex ? "next" : "",
    formatNumber(badges),
  ]);
  return tableLines(["KEY ID", "SIGNS FROM", "USE", "BADGES"], rows, "There are no signing keys.");
}
