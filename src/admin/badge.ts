import type { Command } from "commander";
import { eq } from "drizzle-orm";
import { badge, invitation, signingKey } from "../shared/schema.ts";
import { badgeNumber } from "./arguments.ts";
import { selectNeighbour } from "./number-range.ts";
import { fieldLines, isoTime } from "./output.ts";
import type { Database } from "./platform/database.ts";
import { inSession } from "./session.ts";
import { examples } from "./shell.ts";

/** Adds `badge …`. */
export function addBadgeCommands(program: Command): void {
  const group = program
    .command("badge")
    .summary("show what is known of a badge number")
    .description("Shows what is known of a badge number.");
  addShow(group);
}

function addShow(group: Command): void {
  group
    .command("show")
    .argument("<number>", "the badge number", badgeNumber)
    .summary("show what is known of a badge number")
    .description(
      "Shows whether a badge number is issued, reserved by an invitation, retired, free, or in no application's range, " +
        "and to whom it belongs. A number in no application's range is a result like the others (state: outside, exit code " +
        "0), not an error. Devices are not shown: the service does not keep their udids.",
    )
    .addHelpText("after", examples("badge show 1004831324"))
    .action(
      inSession(async ({ database, output }, number: number) => {
        const badge = await showBadge(database, number);
        output.result(badge, () => badgeText(badge));
      }),
    );
}

/** What D1 knows of a badge number. The device is not part of it: D1 has no udid. */
export interface ShownBadge {
  number: string;
  /** `free`: in an application's range and held by nobody. `outside`: in no application's range. */
  state: "issued" | "reserved" | "retired" | "free" | "outside";
  applicationId: string | null;
  userId: string | null;
  metadata: unknown;
  issuedAt: string | null;
  retiredAt: string | null;
  /** ID of the key that signs for this badge. */
  keyId: string | null;
  eventId: string | null;
  /** The invitation that reserved the number. */
  invitation: { state: string; expiresAt: string } | null;
}

export async function showBadge(database: Database, number: number): Promise<ShownBadge> {
  const [found] = await database.run((orm) =>
    orm
      .select()
      .from(badge)
      .leftJoin(signingKey, eq(signingKey.id, badge.signingKeyId))
      .leftJoin(invitation, eq(invitation.digest, badge.invitation))
      .where(eq(badge.number, number)),
  );
  if (found === undefined) return showUnused(database, number);
  const { badge: row, signing_key: key, invitation: reservedBy } = found;
  return {
    number: String(number),
    state: row.retiredAt !== null ? "retired" : row.position !== null ? "issued" : "reserved",
    applicationId: row.applicationId,
    userId: row.userId,
    metadata: row.metadata === null ? null : JSON.parse(row.metadata),
    issuedAt: isoTime(row.issuedAt),
    retiredAt: isoTime(row.retiredAt),
    keyId: key?.kid ?? null,
    eventId: row.eventId,
    invitation: reservedBy && { state: reservedBy.state, expiresAt: reservedBy.expiresAt },
  };
}

async function showUnused(database: Database, number: number): Promise<ShownBadge> {
  const [neighbour] = await database.run((orm) => selectNeighbour(orm, number, ""));
  const owner = neighbour !== undefined && neighbour.lastNumber >= number ? neighbour.id : null;
  return {
    number: String(number),
    state: owner === null ? "outside" : "free",
    applicationId: owner,
    userId: null,
    metadata: null,
    issuedAt: null,
    retiredAt: null,
    keyId: null,
    eventId: null,
    invitation: null,
  };
}

const STATES: Readonly<Record<ShownBadge["state"], string>> = {
  issued: "issued",
  reserved: "reserved by an invitation",
  retired: "retired: an invitation's number took its place",
  free: "free: nobody has it",
  outside: "in no application's range",
};

function badgeText({ number, state, invitation, metadata, ...badge }: ShownBadge): string {
  return fieldLines({
    "Badge number": number,
    State: STATES[state],
    Application: badge.applicationId ?? undefined,
    User: badge.userId ?? undefined,
    Metadata: metadata === null ? undefined : JSON.stringify(metadata),
    Issued: badge.issuedAt ?? undefined,
    Retired: badge.retiredAt ?? undefined,
    "Key ID": badge.keyId ?? undefined,
    "Event ID": badge.eventId ?? undefined,
    Invitation: invitation === null ? undefined : `${invitation.state}, expires ${invitation.expiresAt}`,
  });
}
