import type { Command } from "commander";
import { eq } from "drizzle-orm";
import { type BadgeState, stateAt } from "../../shared/badge-life/states.ts";
import { parseMetadata } from "../../shared/badge-life/view.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { badge, invitation, signingKey } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { badgeNumber } from "../command-line/arguments.ts";
import { fieldLines } from "../command-line/output.ts";
import { inSession } from "../command-line/session.ts";
import { examples } from "../command-line/shell.ts";
import { databaseOfNumber, ownerOfNumber } from "../number-range/owners.ts";
import { readClock } from "../platform/clock.ts";
import type { Database } from "../platform/database.ts";
import { cardsOf, cardText, type ShownCard } from "./cards.ts";

/** Adds `badge show`. */
export function addShow(group: Command): void {
  group
    .command("show")
    .argument("<number>", "the badge number", badgeNumber)
    .summary("show what is known of a badge number")
    .description(
      "Shows the state of a badge (active, suspended, revoked, expired or replaced), when it ends and to whom it belongs; " +
        "or that its number is reserved by an invitation, free, or in no application's range. Then the number on a card, as " +
        "hexadecimal and bits, in each format that it fits. A number in no application's range is a result like the others (state: outside, exit code " +
        "0), not an error. Devices are not shown: the service does not keep their udids.",
    )
    .addHelpText("after", examples("badge show 1004831324"))
    .action(
      inSession(async ({ homes, output }, number: number) => {
        const badge = await showBadge(await databaseOfNumber(homes, number), number);
        output.result(badge, () => badgeText(badge));
      }),
    );
}

/** What D1 knows of a badge number. The device is not included: D1 has no udid. */
export interface ShownBadge {
  number: string;
  /**
   * Of an issued badge, its state as callers see it (contract section 12). `reserved`: by an invitation. `free`: in an
   * application's range and not in use. `outside`: in no application's range.
   */
  state: BadgeState | "reserved" | "free" | "outside";
  applicationId: ApplicationId | null;
  userId: string | null;
  /** Of the person who was invited (contract section 24). */
  name: string | null;
  metadata: Record<string, string> | null;
  issuedAt: string | null;
  /** Before this it signs nothing; null: it has begun when it was issued. */
  startsAt: string | null;
  /** When the badge ends or ended; null: it has no end. */
  expiresAt: string | null;
  /** When its state, end or metadata last changed; null for a number that is not issued. */
  changedAt: string | null;
  /** When another badge replaced it. */
  retiredAt: string | null;
  /** ID of the key that signs for this badge. */
  keyId: string | null;
  /** Thumbprint (RFC 7638) of the device's key that the badge is bound to; null: it is not bound. */
  keyThumbprint: string | null;
  /** Until when another key may take its place (badge rebind); null: none may. */
  rebindUntil: string | null;
  eventId: string | null;
  /** The invitation that reserved the number. */
  invitation: { state: string; expiresAt: string } | null;
  /** The number on a card, in each format that it fits (contract section 20). */
  cards: ShownCard[];
}

export async function showBadge(database: Database, number: number): Promise<ShownBadge> {
  const now = await readClock(database);
  const [found] = await database.run((orm) =>
    orm
      .select()
      .from(badge)
      .leftJoin(signingKey, eq(signingKey.id, badge.signingKeyId))
      .leftJoin(invitation, eq(invitation.digest, badge.invitation))
      .where(eq(badge.number, number)),
  );
  const { badge: row, signing_key: key, invitation: reservedBy } = found ?? {};
  const applicationId = row?.applicationId ?? (await ownerOfNumber(database, number))?.id ?? null;
  const rebindUntil = row?.rebindUntil ?? null;
  return {
    number: String(number),
    state: row ? stateOf(row, now) : applicationId === null ? "outside" : "free",
    applicationId,
    userId: row?.userId ?? null,
    name: row?.name ?? null,
    metadata: parseMetadata(row?.metadata ?? null) ?? null,
    issuedAt: isoTime(row?.issuedAt ?? null),
    startsAt: isoTime(row?.startsAt ?? null),
    expiresAt: isoTime(row?.expiresAt ?? null),
    changedAt: isoTime(row?.changedAt ?? row?.issuedAt ?? null),
    retiredAt: isoTime(row?.retiredAt ?? null),
    keyId: key?.kid ?? null,
    keyThumbprint: row?.keyThumbprint ?? null,
    rebindUntil: rebindUntil !== null && rebindUntil > now ? isoTime(rebindUntil) : null,
    eventId: row?.eventId ?? null,
    invitation: reservedBy ? { state: reservedBy.state, expiresAt: reservedBy.expiresAt } : null,
    cards: cardsOf(number),
  };
}

const stateOf = (row: typeof badge.$inferSelect, now: number): ShownBadge["state"] =>
  row.issuedAt === null ? "reserved" : stateAt(row, now);

const STATES: Readonly<Record<ShownBadge["state"], string>> = {
  active: "active",
  suspended: "suspended",
  revoked: "revoked",
  expired: "expired",
  replaced: "replaced: an invitation's badge took its place",
  reserved: "reserved by an invitation",
  free: "free: not in use",
  outside: "in no application's range",
};

function badgeText({ number, state, invitation, metadata, cards, ...badge }: ShownBadge): string {
  const fields = fieldLines({
    "Badge number": number,
    State: STATES[state],
    Application: badge.applicationId,
    User: badge.userId,
    Name: badge.name,
    Metadata: metadata === null ? undefined : JSON.stringify(metadata),
    Issued: badge.issuedAt,
    Start: badge.startsAt,
    End: badge.expiresAt,
    "Last change": badge.changedAt,
    Retired: badge.retiredAt,
    "Key ID": badge.keyId,
    "Bound to the key": badge.keyThumbprint,
    "May be rebound until": badge.rebindUntil,
    "Event ID": badge.eventId,
    Invitation: invitation === null ? undefined : `${invitation.state}, expires ${invitation.expiresAt}`,
  });
  return `${fields}\n\n${cardText(cards)}`;
}
