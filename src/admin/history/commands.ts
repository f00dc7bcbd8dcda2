import { and, desc, eq, inArray, sql } from "drizzle-orm";
import { viewHistory } from "../../shared/history.ts";
import { history } from "../../shared/schema.ts";
import { APPLICATION, findApplication } from "../application/record.ts";
import { badgeNumber, listLimit, userId } from "../command-line/arguments.ts";
import { command, option } from "../command-line/command.ts";
import { formatTime, tableLines } from "../command-line/output.ts";

export const historyCommand = command("history", {
  arguments: [APPLICATION],
  summary: "show what was done, and by whom",
  description:
    "Shows what was done to the badges, invitations and users of an application, and to its settings, secrets and keys: " +
    "when, by whom, and why if a reason was given. Newest first. A badge that a device got without an invitation has no " +
    "entry: see badge show.",
  options: {
    badge: option("--badge <number>", "only what concerns this badge", badgeNumber),
    user: option("--user <user>", "only what concerns this user", userId),
    limit: option("--limit <n>", "the most to show", listLimit, 100),
  },
  examples: ["", "--badge 1007352219", "--user alice --json"],
  async work({ homes }, applicationId, { badge, user, limit }) {
    const database = homes.databaseFor(applicationId);
    await findApplication(database, applicationId);
    const ofBadge = badge === undefined ? undefined : eq(history.badge, badge);
    const ofUser = user === undefined ? undefined : eq(history.userId, user);
    // Otherwise SQLite would read the whole history of the application. A badge has fewer entries than a user.
    const index = ofBadge ? sql` INDEXED BY history_badge` : ofUser ? sql` INDEXED BY history_user` : sql``;
    const ofApplication = eq(history.applicationId, applicationId);
    const newest = sql`(SELECT ${history.id} FROM ${history}${index} WHERE ${and(ofApplication, ofBadge, ofUser)}
      ORDER BY ${history.id} DESC LIMIT ${limit})`;
    const rows = await database.run((orm) =>
      orm
        .select()
        .from(history)
        .where(and(ofApplication, inArray(history.id, newest)))
        .orderBy(desc(history.id)),
    );
    return rows.map(viewHistory);
  },
  text: historyTable,
});

function historyTable(entries: readonly ReturnType<typeof viewHistory>[]): string {
  const rows = entries.map(({ at, action, actor, badgeId = "", userId: user = "", reason = "" }) => [
    formatTime(at),
    action,
    actor.name === undefined ? actor.kind : `${actor.name} (${actor.kind})`,
    badgeId,
    user,
    reason,
  ]);
  return tableLines(["AT", "ACTION", "BY", "BADGE", "USER", "REASON"], rows, "There are no such entries.");
}
