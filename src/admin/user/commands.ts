import type { Command } from "commander";
import {
  type BlockedUserView,
  blockUser,
  showUser,
  type UserView,
  unblockUser,
} from "../../shared/badge-life/blocks.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { applicationIdArgument, findApplication } from "../application/record.ts";
import { openBadgeStore } from "../badge/store.ts";
import { userId } from "../command-line/arguments.ts";
import { counted, plain } from "../command-line/output.ts";
import { inSession } from "../command-line/session.ts";
import { examples } from "../command-line/shell.ts";

/** Adds `user …`, which do what the server calls of the same names do (contract section 12). */
export function addUserCommands(program: Command): void {
  const group = program
    .command("user")
    .summary("block and unblock users")
    .description("Blocks and unblocks users of an application.");
  addBlock(group);
  addUnblock(group);
  addShow(group);
}

function addBlock(group: Command): void {
  group
    .command("block")
    .argument("<id>", "the application's ID", applicationIdArgument)
    .argument("<user>", "the application's own ID of the user", userId)
    .summary("refuse a user new badges and revoke the present ones")
    .description(
      "Refuses a user of application <id> new badges, and revokes for good every badge of the user that is active, " +
        "suspended or expired. Prints those that it revoked. A user without any badge can be blocked too. " +
        "If it is interrupted, the running service revokes the rest within about a minute.",
    )
    .addHelpText("after", examples("user block app_… alice"))
    .action(
      inSession(async ({ homes, output }, id: ApplicationId, user: string) => {
        const database = homes.of(id);
        await findApplication(database, id);
        const store = await openBadgeStore(database);
        const blocked = await blockUser(store, { applicationId: id, userId: user });
        output.result(blocked, () => blockedText(blocked));
      }),
    );
}

function addUnblock(group: Command): void {
  group
    .command("unblock")
    .argument("<id>", "the application's ID", applicationIdArgument)
    .argument("<user>", "the application's own ID of the user", userId)
    .summary("let a user have new badges again")
    .description("Lets a blocked user of application <id> have new badges again. Revoked badges stay revoked.")
    .addHelpText("after", examples("user unblock app_… alice"))
    .action(
      inSession(async ({ homes, output }, id: ApplicationId, user: string) => {
        const database = homes.of(id);
        await findApplication(database, id);
        const unblocked = await unblockUser(database, { applicationId: id, userId: user });
        output.result(unblocked, () => userText(unblocked));
      }),
    );
}

function addShow(group: Command): void {
  group
    .command("show")
    .argument("<id>", "the application's ID", applicationIdArgument)
    .argument("<user>", "the application's own ID of the user", userId)
    .summary("show whether a user is blocked")
    .description("Shows whether a user of application <id> is blocked.")
    .addHelpText("after", examples("user show app_… alice", "user show app_… alice --json"))
    .action(
      inSession(async ({ homes, output }, id: ApplicationId, user: string) => {
        const database = homes.of(id);
        await findApplication(database, id);
        const shown = await showUser(database, { applicationId: id, userId: user });
        output.result(shown, () => userText(shown));
      }),
    );
}

const userText = ({ userId, blocked }: UserView): string =>
  `User ${plain(userId)} is ${blocked ? "blocked: no new badges" : "not blocked"}.`;

function blockedText(user: BlockedUserView): string {
  const { revoked } = user;
  if (revoked.length === 0) return `${userText(user)} There was no badge to revoke.`;
  return [`${userText(user)} Revoked ${counted(revoked.length, "badge")}:`, ...revoked].join("\n  ");
}
