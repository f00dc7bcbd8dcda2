import { expectKind } from "../../shared/expect-kind.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { APPLICATION, findApplication } from "../application/record.ts";
import { userId } from "../command-line/arguments.ts";
import { argument, command, group } from "../command-line/command.ts";
import { counted, plain } from "../command-line/output.ts";
import type { Session } from "../command-line/session.ts";
import { submitAndWait } from "../script-command/submit.ts";

const BY_SERVICE = "The running service carries this out within ten seconds.";

const USER = argument("<user>", "the application's own ID of the user", "alice", userId);

/** Each command does what the server call of the same name does. */
export const userCommands = group("user", {
  summary: "block, unblock and erase users",
  description: "Blocks, unblocks and erases users of an application.",
  commands: [
    command("block", {
      arguments: [APPLICATION, USER],
      summary: "refuse a user new badges and revoke the present ones",
      description:
        "Refuses a user of application <id> new badges, and revokes for good every badge of the user that is active, " +
        "suspended or expired. Prints those that it revoked. A user without any badge can be blocked too. " +
        BY_SERVICE,
      work: (session, id, user) => setBlocked(session, id, user, "block"),
      text: blockedText,
    }),
    command("unblock", {
      arguments: [APPLICATION, USER],
      summary: "let a user have new badges again",
      description: `Lets a blocked user of application <id> have new badges again. Revoked badges stay revoked. ${BY_SERVICE}`,
      work: (session, id, user) => setBlocked(session, id, user, "unblock"),
      text: userText,
    }),
    command("erase", {
      arguments: [APPLICATION, USER],
      summary: "revoke a user's badges and forget who it was",
      description:
        "Revokes the badges of a user of application <id>, replaces the user's ID with a random one everywhere, and deletes " +
        `metadata and names. The badges' numbers stay taken. This cannot be undone. ${BY_SERVICE}`,
      async work(session, id, user) {
        await findApplication(session.homes.databaseFor(id), id);
        const carried = await submitAndWait(session, id, { kind: "erase", userId: user });
        const { userId: alias, erased } = expectKind(carried, "erased");
        return { userId: alias, erased };
      },
      text: ({ userId: alias, erased }, _session, _id, user) =>
        erased === 0
          ? `User ${plain(user)} had no badge.`
          : `User ${plain(user)} is erased: ${counted(erased, "badge")} now under ${alias}, all revoked.`,
    }),
    command("show", {
      arguments: [APPLICATION, USER],
      summary: "show whether a user is blocked",
      description: `Shows whether a user of application <id> is blocked, also one who was erased. ${BY_SERVICE}`,
      /** @returns what `GET /v1/users/{id}` responds */
      async work(session, id, user) {
        await findApplication(session.homes.databaseFor(id), id);
        const { blocked } = expectKind(
          await submitAndWait(session, id, { kind: "show-user", userId: user }),
          "user-shown",
        );
        return { userId: user, blocked };
      },
      text: userText,
    }),
  ],
});

async function setBlocked(session: Session, id: ApplicationId, user: string, kind: "block" | "unblock") {
  await findApplication(session.homes.databaseFor(id), id);
  const { numbers } = expectKind(await submitAndWait(session, id, { kind, userId: user }), "user");
  return { userId: user, blocked: kind === "block", revoked: numbers.map(String) };
}

function userText({ userId: user, blocked }: { userId: string; blocked: boolean }): string {
  return `User ${plain(user)} is ${blocked ? "blocked: no new badges" : "not blocked"}.`;
}

function blockedText(user: Awaited<ReturnType<typeof setBlocked>>): string {
  const { revoked } = user;
  if (revoked.length === 0) return `${userText(user)} There was no badge to revoke.`;
  return [`${userText(user)} Revoked ${counted(revoked.length, "badge")}:`, ...revoked].join("\n  ");
}
