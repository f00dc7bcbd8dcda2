import type { Command } from "commander";
import { openRebinding } from "../../shared/badge-life/rebinding.ts";
import type { BadgeView } from "../../shared/badge-life/view.ts";
import { REBIND_WINDOW_HOURS } from "../../shared/limits.ts";
import { badgeNumber } from "../command-line/arguments.ts";
import { inSession } from "../command-line/session.ts";
import { examples } from "../command-line/shell.ts";
import { databaseOfNumber } from "../number-range/owners.ts";
import type { Database } from "../platform/database.ts";
import { ownerOf, viewResult } from "./step.ts";
import { openBadgeStore } from "./store.ts";

/** Adds `badge rebind`. */
export function addRebind(group: Command): void {
  group
    .command("rebind")
    .argument("<number>", "the badge number", badgeNumber)
    .summary("let a badge be bound to another key of its device")
    .description(
      `For ${REBIND_WINDOW_HOURS} hours, the first login of the badge's user device with a proof by another key binds the ` +
        "badge to that key; a badge that is not bound gets its first key so. Until then everything works as before. Not " +
        "for a lost phone: whoever knows its udid and user could come first, so suspend or revoke that badge.",
    )
    .addHelpText("after", examples("badge rebind 1004831324"))
    .action(
      inSession(async ({ homes, output }, number: number) => {
        const badge = await rebindBadge(await databaseOfNumber(homes, number), number);
        output.result(badge, () => rebindText(badge));
      }),
    );
}

/**
 * Lets the user device bind the badge to another key (contract section 15).
 *
 * @returns what the route of the same name responds
 * @throws UserError when there is no such badge, or it was revoked or replaced
 */
export async function rebindBadge(database: Database, number: number): Promise<BadgeView> {
  const applicationId = await ownerOf(database, number);
  return viewResult(number, await openRebinding(await openBadgeStore(database), applicationId, number));
}

function rebindText({ id, keyThumbprint }: BadgeView): string {
  const before = keyThumbprint === undefined ? "It is not bound yet." : `Until then the key ${keyThumbprint} works.`;
  return `Badge ${id} is bound by the first login with another key in the next ${REBIND_WINDOW_HOURS} hours. ${before}`;
}
