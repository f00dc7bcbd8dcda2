import type { Command } from "commander";
import { eq } from "drizzle-orm";
import type { BadgeState, Step } from "../../shared/badge-life/states.ts";
import { type StepResult, takeStep } from "../../shared/badge-life/steps.ts";
import { type BadgeView, viewBadge } from "../../shared/badge-life/view.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { badge } from "../../shared/schema.ts";
import { badgeEnd, badgeNumber } from "../command-line/arguments.ts";
import { UserError } from "../command-line/errors.ts";
import { inSession, type Session } from "../command-line/session.ts";
import { ADMIN, examples } from "../command-line/shell.ts";
import { databaseOfNumber } from "../number-range/owners.ts";
import type { Database } from "../platform/database.ts";
import { openBadgeStore } from "./store.ts";

const EVENTS_FOLLOW = "The running service sends its event, if the application wants it, within about a minute.";

/** Adds `badge suspend`, `resume`, `revoke` and `expire`, which do what the server calls of the same names do. */
export function addStepCommands(group: Command): void {
  addSuspend(group);
  addResume(group);
  addRevoke(group);
  addExpire(group);
}

function addSuspend(group: Command): void {
  group
    .command("suspend")
    .argument("<number>", "the badge number", badgeNumber)
    .summary("make a badge open nothing until it is resumed")
    .description(`Suspends an active badge at once: its device can neither log in nor sign with it. ${EVENTS_FOLLOW}`)
    .addHelpText("after", examples("badge suspend 1004831324"))
    .action(inSession((session, number: number) => printStep(session, number, { kind: "suspend" })));
}

function addResume(group: Command): void {
  group
    .command("resume")
    .argument("<number>", "the badge number", badgeNumber)
    .summary("make a suspended badge active again")
    .description(`Makes a suspended badge active again. ${EVENTS_FOLLOW}`)
    .addHelpText("after", examples("badge resume 1004831324"))
    .action(inSession((session, number: number) => printStep(session, number, { kind: "resume" })));
}

function addRevoke(group: Command): void {
  group
    .command("revoke")
    .argument("<number>", "the badge number", badgeNumber)
    .summary("end a badge for good")
    .description(
      "Revokes a badge at once and for good: nothing makes it active again, and its number is never reissued. The user " +
        "gets another badge on that device only by an invitation that was created with the application's secret. " +
        `${EVENTS_FOLLOW} By then it also remembers the revocation where a restoration of D1 does not undo it, so that ` +
        "reconcile can repeat it.",
    )
    .addHelpText("after", examples("badge revoke 1004831324"))
    .action(inSession((session, number: number) => printStep(session, number, { kind: "revoke" })));
}

function addExpire(group: Command): void {
  group
    .command("expire")
    .argument("<number>", "the badge number", badgeNumber)
    .summary("set or remove the end of a badge")
    .description(
      "Sets when a badge ends. A time that has passed ends it now; a later one, or never, makes an expired badge what " +
        `it was before. ${EVENTS_FOLLOW}`,
    )
    .requiredOption("--at <time>", "ISO 8601 with a zone, or never for no end", badgeEnd)
    .addHelpText(
      "after",
      examples("badge expire 1004831324 --at 2027-01-31T18:00:00+01:00", "badge expire 1004831324 --at never"),
    )
    .action(
      inSession((session, number: number, { at }: { at: ReturnType<typeof badgeEnd> }) =>
        printStep(session, number, { kind: "set-end", ...at }),
      ),
    );
}

async function printStep({ homes, output }: Session, number: number, step: Step): Promise<void> {
  const badge = await changeBadge(await databaseOfNumber(homes, number), number, step);
  output.result(badge, () => stepText(badge));
}

/**
 * Takes one step in the life of a badge of any application (contract section 12).
 *
 * @returns the response of the route of the same name
 * @throws UserError when there is no such badge, or when it has ended and the step is not possible any more
 */
export async function changeBadge(database: Database, number: number, step: Step): Promise<BadgeView> {
  const applicationId = await ownerOf(database, number);
  return viewResult(number, await takeStep(await openBadgeStore(database), applicationId, number, step));
}

/** The ID of the application that has the number. @throws UserError when none has */
export async function ownerOf(database: Database, number: number): Promise<ApplicationId> {
  const [owner] = await database.run((orm) =>
    orm.select({ applicationId: badge.applicationId }).from(badge).where(eq(badge.number, number)),
  );
  if (owner === undefined) throw unknownBadge(number);
  return owner.applicationId;
}

/** @throws UserError unless the step was taken */
export function viewResult(number: number, result: StepResult): BadgeView {
  switch (result.kind) {
    case "taken":
      return viewBadge(result.badge);
    case "unknown":
      throw unknownBadge(number);
    case "ended":
      throw endedBadge(number, result.state);
    case "contended":
      throw new UserError(`Badge ${number} was changed by others at every try: run the command again.`);
  }
}

const unknownBadge = (number: number): UserError =>
  new UserError(`Unknown badge: ${number} is not issued, see ${ADMIN} badge show ${number}.`);

const endedBadge = (number: number, state: BadgeState): UserError =>
  new UserError(
    state === "expired"
      ? `Ended badge: ${number} is expired. Give it a later end first: ${ADMIN} badge expire ${number} --at TIME`
      : `Ended badge: ${number} is ${state}, which is final.`,
  );

function stepText({ id, state, expiresAt }: BadgeView): string {
  const isFinal = state === "revoked" || state === "replaced";
  if (isFinal || expiresAt === undefined) return `Badge ${id} is ${state}.`;
  return `Badge ${id} is ${state}, and ${state === "expired" ? "ended" : "ends"} at ${expiresAt}.`;
}
