import { eq } from "drizzle-orm";
import { type BadgeState, stateAt } from "../../shared/badge-lifecycle/states.ts";
import { parseMetadata } from "../../shared/badge-lifecycle/view.ts";
import { CARD_FORMATS, cardHex, encodeCard, splitBadgeNumber } from "../../shared/card-formats.ts";
import { badge, invitation, signingKey } from "../../shared/schema.ts";
import { isoTime } from "../../shared/time.ts";
import { badgeNumber } from "../command-line/arguments.ts";
import { argument, command } from "../command-line/command.ts";
import { bold, fieldLines } from "../command-line/output.ts";
import { databaseOfNumber, ownerOfNumber } from "../number-range/owners.ts";
import type { Database } from "../platform/database.ts";

export const BADGE = argument("<number>", "the badge number", "1004831324", badgeNumber);

export const showCommand = command("show", {
  arguments: [BADGE],
  summary: "show what is known about a badge number",
  description:
    "Shows a badge's state (active, suspended, revoked, expired or replaced), its end and its user; or that the number is " +
    "reserved by an invitation, free, or in no application's range. The last is a result too (state: outside, exit " +
    "code 0), not an error. It also shows the number as a card has it, in hexadecimal and bits, in each format that it " +
    "fits. Devices are not shown: the service does not store their udids.",
  work: async ({ homes }, number) => showBadge(await databaseOfNumber(homes, number), number),
  text: badgeText,
});

/**
 * The state of an issued badge as callers see it; for other numbers `reserved` (by an invitation), `free` (in an
 * application's range, not in use) or `outside` (in no application's range).
 */
type ShownState = BadgeState | "reserved" | "free" | "outside";

export type ShownBadge = Awaited<ReturnType<typeof showBadge>>;

/** What D1 has about a badge number, times as ISO 8601. The device is not included: D1 has no udid. */
export async function showBadge(database: Database, number: number) {
  const now = await database.readClock();
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
  const unused = applicationId === null ? "outside" : "free";
  const state: ShownState = row === undefined ? unused : row.issuedAt === null ? "reserved" : stateAt(row, now);
  return {
    number: String(number),
    state,
    applicationId,
    userId: row?.userId ?? null,
    name: row?.name ?? null,
    metadata: parseMetadata(row?.metadata ?? null) ?? null,
    issuedAt: isoTime(row?.issuedAt ?? null),
    startsAt: isoTime(row?.startsAt ?? null),
    expiresAt: isoTime(row?.expiresAt ?? null),
    changedAt: isoTime(row?.changedAt ?? row?.issuedAt ?? null),
    supersededAt: isoTime(row?.supersededAt ?? null),
    keyId: key?.kid ?? null,
    /** RFC 7638 thumbprint of the device's key that the badge is bound to. */
    keyThumbprint: row?.keyThumbprint ?? null,
    /** Until then, another key may replace it (badge rebind). */
    rebindUntil: rebindUntil !== null && rebindUntil > now ? isoTime(rebindUntil) : null,
    eventId: row?.eventId ?? null,
    /** The invitation that reserved the number. */
    invitation: reservedBy ? { state: reservedBy.state, expiresAt: reservedBy.expiresAt } : null,
    cards: cardsOf(number),
  };
}

const STATES: Readonly<Record<ShownState, string>> = {
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
    Superseded: badge.supersededAt,
    "Key ID": badge.keyId,
    "Bound to the key": badge.keyThumbprint,
    "May be rebound until": badge.rebindUntil,
    "Event ID": badge.eventId,
    Invitation: invitation === null ? undefined : `${invitation.state}, expires ${invitation.expiresAt}`,
  });
  return `${fields}\n\n${cardText(cards)}`;
}

/** A badge number in each card format that it fits. `bits` is a text of `0` and `1` with parity, first bit first. */
function cardsOf(number: number) {
  return CARD_FORMATS.flatMap((format) => {
    const bits = encodeCard(format, number);
    const parts = splitBadgeNumber(format, number);
    return bits === null || parts === null ? [] : [{ format, ...parts, bits, hex: cardHex(bits) }];
  });
}

function cardText(cards: ReturnType<typeof cardsOf>): string {
  if (cards.length === 0) return "The number fits no card format.";
  const lines = cards.map(({ format, siteCode, cardNumber, bits, hex }) => {
    const site = siteCode === null ? "" : `site code ${siteCode}, `;
    return `  ${format}, ${bits.length} bits: ${site}card number ${cardNumber}\n    ${hex}  ${bits}`;
  });
  return [bold("On a card:"), ...lines].join("\n");
}
