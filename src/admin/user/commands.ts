import type { Command } from "commander";
import { and, eq } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { expectKind } from "../../shared/kinds.ts";
import { blockedUser } from "../../shared/schema.ts";
import { applicationIdArgument, findApplication } from "../application/record.ts";
import { userId } from "../command-line/arguments.ts";
import { counted, plain } from "../command-line/output.ts";
import { inSession, type Session } from "../command-line/session.ts";
import { examples } from "../command-line/shell.ts";
import { carryOut } from "../inbox/carry-out.ts";
import type { Database } from "../platform/database.ts";

const BY_SERVICE = "The running service carries it out within ten seconds.";

/** Adds `user …`, which do what the server calls of the same names do (contract sections 12 and 24). */
export function addUserCommands(program: Command): void {
  const group = program
    .command("user")
    .summary("block, unblock and erase users")
    .description("Blocks, unblocks and erases users of an application.");
  addBlock(group);
  addUnblock(group);
  addErase(group);
  addShow(group);
}

/** A command about one user of one application. */
const userCommand = (group: Command, name: string): Command =>
  group
    .command(name)
    .argument("<id>", "the application's ID", applicationIdArgument)
    .argument("<user>", "the application's own ID of the user", userId);

function addBlock(group: Command): void {
  userCommand(group, "block")
    .summary("refuse a user new badges and revoke the present ones")
    .description(
      "Refuses a user of application <id> new badges, and revokes for good every badge of the user that is active, " +
        "suspended or expired. Prints those that it revoked. A user without any badge can be blocked too. " +
        BY_SERVICE,
    )
    .addHelpText("after", examples("user block app_… alice"))
    .action(inSession((session, id: ApplicationId, user: string) => printBlock(session, id, user, "block")));
}

function addUnblock(group: Command): void {
  userCommand(group, "unblock")
    .summary("let a user have new badges again")
    .description(
      `Lets a blocked user of application <id> have new badges again. Revoked badges stay revoked. ${BY_SERVICE}`,
    )
    .addHelpText("after", examples("user unblock app_… alice"))
    .action(inSession((session, id: ApplicationId, user: string) => printBlock(session, id, user, "unblock")));
}

interface BlockedUserView extends UserView {
  /** Numbers of the badges that it revoked. */
  revoked: string[];
}

async function printBlock(session: Session, id: ApplicationId, user: string, kind: "block" | "unblock"): Promise<void> {
  await findApplication(session.homes.of(id), id);
  const { numbers } = expectKind(await carryOut(session, id, { kind, userId: user }), "user");
  const changed = { userId: user, blocked: kind === "block", revoked: numbers.map(String) };
  session.output.result(changed, () => (kind === "block" ? blockedText(changed) : userText(changed)));
}

function addErase(group: Command): void {
  userCommand(group, "erase")
    .summary("revoke a user's badges and forget who it was")
    .description(
      "Revokes the badges of a user of application <id>, puts a random ID in place of the user's everywhere, and deletes " +
        `metadata and names. Their numbers stay taken. Nothing brings the user back. ${BY_SERVICE}`,
    )
    .addHelpText("after", examples("user erase app_… alice"))
    .action(
      inSession(async (session, id: ApplicationId, user: string) => {
        await findApplication(session.homes.of(id), id);
        const { userId: alias, erased } = expectKind(
          await carryOut(session, id, { kind: "erase", userId: user }),
          "erased",
        );
        session.output.result({ userId: alias, erased }, () =>
          erased === 0
            ? `User ${plain(user)} had no badge.`
            : `User ${plain(user)} is erased: ${counted(erased, "badge")} of ${alias} now, all revoked.`,
        );
      }),
    );
}

function addShow(group: Command): void {
  userCommand(group, "show")
    .summary("show whether a user is blocked")
    .description("Shows whether a user of application <id> is blocked.")
    .addHelpText("after", examples("user show app_… alice", "user show app_… alice --json"))
    .action(
      inSession(async ({ homes, output }, id: ApplicationId, user: string) => {
        const database = homes.of(id);
        await findApplication(database, id);
        const shown = { userId: user, blocked: await isBlocked(database, id, user) };
        output.result(shown, () => userText(shown));
      }),
    );
}

/** What `GET /v1/users/{id}` responds (contract section 12). */
interface UserView {
  userId: string;
  blocked: boolean;
}

async function isBlocked(database: Database, id: ApplicationId, user: string): Promise<boolean> {
  const isUser = and(eq(blockedUser.applicationId, id), eq(blockedUser.userId, user));
  const rows = await database.run((orm) => orm.select({ userId: blockedUser.userId }).from(blockedUser).where(isUser));
  return rows.length > 0;
}

const userText = ({ userId: user, blocked }: UserView): string =>
  `User ${plain(user)} is ${blocked ? "blocked: no new badges" : "not blocked"}.`;

function blockedText(user: BlockedUserView): string {
  const { revoked } = user;
  if (revoked.length === 0) return `${userText(user)} There was no badge to revoke.`;
  return [`${userText(user)} Revoked ${counted(revoked.length, "badge")}:`, ...revoked].join("\n  ");
}
