import type { Command } from "commander";
import { and, eq } from "drizzle-orm";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { expectKind } from "../../shared/kinds.ts";
import { blockedUser } from "../../shared/schema.ts";
import { applicationIdArgument, findApplication } from "../application/record.ts";
import { userId } from "../command-line/arguments.ts";
import { counted, plain } from "../command-line/output.ts";
import { inSession, printing, type Session } from "../command-line/session.ts";
import { examples } from "../command-line/shell.ts";
import { carryOut } from "../inbox/carry-out.ts";

const BY_SERVICE = "The running service carries it out within ten seconds.";

/** Adds `user …`, which do what the server calls of the same names do (contract sections 12 and 24). */
export function addUserCommands(program: Command): void {
  const group = program
    .command("user")
    .summary("block, unblock and erase users")
    .description("Blocks, unblocks and erases users of an application.");
  /** A command about one user of one application. */
  const userCommand = (name: string): Command =>
    group
      .command(name)
      .argument("<id>", "the application's ID", applicationIdArgument)
      .argument("<user>", "the application's own ID of the user", userId)
      .addHelpText("after", examples(`user ${name} app_… alice`));
  userCommand("block")
    .summary("refuse a user new badges and revoke the present ones")
    .description(
      "Refuses a user of application <id> new badges, and revokes for good every badge of the user that is active, " +
        "suspended or expired. Prints those that it revoked. A user without any badge can be blocked too. " +
        BY_SERVICE,
    )
    .action(
      printing((session, id: ApplicationId, user: string) => setBlocked(session, id, user, "block"), blockedText),
    );
  userCommand("unblock")
    .summary("let a user have new badges again")
    .description(
      `Lets a blocked user of application <id> have new badges again. Revoked badges stay revoked. ${BY_SERVICE}`,
    )
    .action(printing((session, id: ApplicationId, user: string) => setBlocked(session, id, user, "unblock"), userText));
  userCommand("erase")
    .summary("revoke a user's badges and forget who it was")
    .description(
      "Revokes the badges of a user of application <id>, puts a random ID in place of the user's everywhere, and deletes " +
        `metadata and names. Their numbers stay taken. Nothing brings the user back. ${BY_SERVICE}`,
    )
    .action(inSession(erase));
  userCommand("show")
    .summary("show whether a user is blocked")
    .description("Shows whether a user of application <id> is blocked.")
    .action(printing(showUser, userText));
}

async function setBlocked(session: Session, id: ApplicationId, user: string, kind: "block" | "unblock") {
  await findApplication(session.homes.of(id), id);
  const { numbers } = expectKind(await carryOut(session, id, { kind, userId: user }), "user");
  return { userId: user, blocked: kind === "block", revoked: numbers.map(String) };
}

async function erase(session: Session, id: ApplicationId, user: string): Promise<void> {
  await findApplication(session.homes.of(id), id);
  const { userId: alias, erased } = expectKind(await carryOut(session, id, { kind: "erase", userId: user }), "erased");
  session.output.result({ userId: alias, erased }, () =>
    erased === 0
      ? `User ${plain(user)} had no badge.`
      : `User ${plain(user)} is erased: ${counted(erased, "badge")} of ${alias} now, all revoked.`,
  );
}

/** What `GET /v1/users/{id}` responds. */
async function showUser({ homes }: Session, id: ApplicationId, user: string) {
  const database = homes.of(id);
  await findApplication(database, id);
  const isUser = and(eq(blockedUser.applicationId, id), eq(blockedUser.userId, user));
  return { userId: user, blocked: (await database.run((orm) => orm.$count(blockedUser, isUser))) > 0 };
}

const userText = ({ userId: user, blocked }: Awaited<ReturnType<typeof showUser>>): string =>
  `User ${plain(user)} is ${blocked ? "blocked: no new badges" : "not blocked"}.`;

function blockedText(user: Awaited<ReturnType<typeof setBlocked>>): string {
  const { revoked } = user;
  if (revoked.length === 0) return `${userText(user)} There was no badge to revoke.`;
  return [`${userText(user)} Revoked ${counted(revoked.length, "badge")}:`, ...revoked].join("\n  ");
}
