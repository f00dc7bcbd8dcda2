import { eq } from "drizzle-orm";
import { type ApplicationId, parseApplicationId } from "../../shared/identifiers.ts";
import { requiresSecret } from "../../shared/required-secret.ts";
import { application } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { argument } from "../command-line/command.ts";
import { UserError } from "../command-line/errors.ts";
import { bold, fieldLines } from "../command-line/output.ts";
import { ADMIN } from "../command-line/shell.ts";
import { formatsOfRange } from "../number-range/range-options.ts";
import type { Database, Orm } from "../platform/database.ts";
import { userFields } from "./user-options.ts";

export type ApplicationRow = typeof application.$inferSelect;

export type ShownApplication = ReturnType<typeof toApplicationView>;

/** An application as the commands print it, without its sealed values. Times are ISO 8601. */
export function toApplicationView(row: ApplicationRow) {
  const { id, name, firstNumber, lastNumber, webhookUrl, reuseAfterSeconds } = row;
  return {
    applicationId: id,
    name,
    firstNumber,
    lastNumber,
    /** The card formats that the whole range fits with one facility or company code. */
    cardFormats: formatsOfRange({ first: firstNumber, last: lastNumber }),
    webhookUrl,
    invitationLink: row.invitationLink,
    events: row.events.split(","),
    webhookHeldAt: isoTime(row.webhookHeldAt),
    requireSecret: requiresSecret(row),
    reuseAfterSeconds,
    signatureLifetimeSeconds: row.signatureLifetimeSeconds,
    statusList: row.statusList,
    statusLifetimeSeconds: row.statusLifetimeSeconds,
    requireProof: row.requireProof,
    bindUntil: isoTime(row.bindUntil),
    newBadgesPerHour: row.newBadgesPerHour,
    userIssuer: row.userIssuer,
    userAudience: row.userAudience,
    userClaim: row.userClaim,
    userObserve: row.userObserve,
    createdAt: isoTime(row.createdAt),
    disabledAt: isoTime(row.disabledAt),
  };
}

export const formatState = ({ disabledAt }: ShownApplication): string => (disabledAt === null ? "enabled" : "disabled");

export function applicationText(application: ShownApplication): string {
  const { firstNumber, lastNumber, webhookUrl, webhookHeldAt, signatureLifetimeSeconds } = application;
  return `${bold(application.name)}

${fieldLines({
  "Application ID": application.applicationId,
  State: formatState(application),
  "Badge numbers": `${firstNumber} to ${lastNumber}`,
  "Card formats": application.cardFormats.join(", ") || "none fits them all",
  "Webhook URL": webhookUrl ?? "none",
  Events: application.events.join(", "),
  "Invitation link": application.invitationLink,
  Deliveries: webhookHeldAt === null ? undefined : `held since ${webhookHeldAt}`,
  "Invitations need the secret": application.requireSecret ? "yes" : "no",
  "Freed numbers cool down for": `${application.reuseAfterSeconds} s`,
  "Signatures are valid for": signatureLifetimeSeconds === null ? "no limit" : `${signatureLifetimeSeconds} s`,
  "Status lists": application.statusList ? `yes, valid for ${application.statusLifetimeSeconds} s` : "no",
  "Device calls need a proof": application.requireProof ? "yes" : "no",
  "First proofs bind badges until": application.bindUntil,
  "New badges per clock hour":
    application.newBadgesPerHour === null ? "no limit" : `at most ${application.newBadgesPerHour}`,
  ...userFields(application),
  Created: application.createdAt,
  Disabled: application.disabledAt,
})}`;
}

export const unknownApplication = (id: string): UserError =>
  new UserError(`There is no application ${id}: see ${ADMIN} application list.`);

export const APPLICATION = argument("<id>", "the application's ID", "app_…", (text) => {
  const id = parseApplicationId(text);
  if (id !== undefined) return id;
  throw new UserError(`"${text}" is not an application ID, which looks like app_…: see ${ADMIN} application list.`);
});

export function selectApplication(orm: Orm, id: ApplicationId) {
  return orm.select().from(application).where(eq(application.id, id));
}

/** @throws UserError when there is no such application */
export async function findApplication(database: Database, id: ApplicationId): Promise<ApplicationRow> {
  const [row] = await database.run((orm) => selectApplication(orm, id));
  if (row === undefined) throw unknownApplication(id);
  return row;
}
