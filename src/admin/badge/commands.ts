import { eq } from "drizzle-orm";
import type * as z from "zod";
import { expectKind } from "../../shared/expect-kind.ts";
import { REBIND_WINDOW_HOURS } from "../../shared/limits/key-limits.ts";
import type { badgeView } from "../../shared/responses.ts";
import { badge } from "../../shared/schema.ts";
import type { AllocatorCommand } from "../../shared/script-commands.ts";
import { timeOrNever } from "../command-line/arguments.ts";
import { command, group, requiredOption } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import type { Session } from "../command-line/session.ts";
import { ADMIN } from "../command-line/shell.ts";
import { databaseOfNumber } from "../number-range/owners.ts";
import { submitAndWait } from "../script-command/submit.ts";
import { BADGE, type ShownBadge, showBadge, showCommand } from "./show.ts";

const BY_SERVICE =
  "The running service carries this out within ten seconds, and sends the event if the application subscribes to it.";

const transitionCommand = (kind: "suspend" | "resume" | "revoke", summary: string, description: string) =>
  command(kind, {
    arguments: [BADGE],
    summary,
    description: `${description} ${BY_SERVICE}`,
    work: (session, number) => changeBadge(session, { kind, number }),
    text: stateText,
  });

/** Every command but `show` does what the server call of the same name does. */
export const badgeCommands = group("badge", {
  summary: "show, suspend, resume, revoke, expire and rebind badges",
  description: "Shows, suspends, resumes, revokes, expires and rebinds badges.",
  commands: [
    showCommand,
    transitionCommand(
      "suspend",
      "make a badge open nothing until it is resumed",
      "Suspends an active badge: its device can neither log in nor sign with it.",
    ),
    transitionCommand("resume", "make a suspended badge active again", "Makes a suspended badge active again."),
    transitionCommand(
      "revoke",
      "end a badge for good",
      "Revokes a badge for good: nothing makes it active again, and its number is never reissued. The user gets another " +
        "badge on that device only by an invitation that was created with the application's secret.",
    ),
    command("expire", {
      arguments: [BADGE],
      summary: "set or remove the end of a badge",
      description:
        "Sets when a badge ends. A time that has passed ends it now; a later one, or never, makes an expired badge what " +
        `it was before. ${BY_SERVICE}`,
      options: { at: requiredOption("--at <time>", "ISO 8601 with a zone, or never for no end", timeOrNever) },
      examples: ["--at 2027-01-31T18:00:00+01:00", "--at never"],
      work: (session, number, { at }) => changeBadge(session, { kind: "reschedule", number, expiresAt: at }),
      text: stateText,
    }),
    command("rebind", {
      arguments: [BADGE],
      summary: "let a badge be bound to another key of its device",
      description:
        `For ${REBIND_WINDOW_HOURS} hours, the first login of the badge's user device with a proof by another key binds the ` +
        "badge to that key. An unbound badge gets its first key in the same way. Until then everything works as before. Do not " +
        "use this for a lost phone: anyone who knows its udid and user could come first, so suspend or revoke that badge.",
      work: (session, number) => changeBadge(session, { kind: "rebind", number }),
      text: rebindText,
    }),
  ],
});

type BadgeView = z.infer<typeof badgeView>;

/**
 * Suspends, resumes, revokes, reschedules or rebinds a badge of any application.
 *
 * @returns the response of the route of the same name
 * @throws UserError when there is no such badge, or when it has ended
 */
async function changeBadge(
  session: Session,
  command: Extract<AllocatorCommand, { number: number }>,
): Promise<BadgeView> {
  const { number } = command;
  const database = await databaseOfNumber(session.homes, number);
  const [owner] = await database.run((orm) =>
    orm.select({ applicationId: badge.applicationId }).from(badge).where(eq(badge.number, number)),
  );
  if (owner === undefined) throw unknownBadge(number);
  const result = await submitAndWait(session, owner.applicationId, command);
  if (result.kind !== "refused") return expectKind(result, "badge").badge;
  const shown = await showBadge(database, number);
  throw shown.state === "reserved" ? unknownBadge(number) : endedBadge(shown);
}

const unknownBadge = (number: number): UserError =>
  new UserError(`Unknown badge: ${number} is not issued, see ${ADMIN} badge show ${number}.`);

function endedBadge({ number, state }: ShownBadge): UserError {
  switch (state) {
    case "expired":
      return new UserError(
        `Ended badge: ${number} is expired. Give it a later end first: ${ADMIN} badge expire ${number} --at TIME`,
      );
    case "revoked":
    case "replaced":
      return new UserError(`Ended badge: ${number} is ${state}, which is final.`);
    default:
      return new UserError(`Badge ${number} changed meanwhile: run the command again.`);
  }
}

function stateText({ id, state, expiresAt }: BadgeView): string {
  const isFinal = state === "revoked" || state === "replaced";
  if (isFinal || expiresAt === undefined) return `Badge ${id} is ${state}.`;
  return `Badge ${id} is ${state}, and ${state === "expired" ? "ended" : "ends"} at ${expiresAt}.`;
}

function rebindText({ id, keyThumbprint }: BadgeView): string {
  const before = keyThumbprint === undefined ? "It is not bound yet." : `Until then the key ${keyThumbprint} works.`;
  return `The first login with another key in the next ${REBIND_WINDOW_HOURS} hours binds badge ${id}. ${before}`;
}
