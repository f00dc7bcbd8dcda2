import { eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { BadgeState } from "../../src/shared/badge-lifecycle/states.ts";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { badge, invitation, webhookEvent } from "../../src/shared/schema.ts";
import { homeDatabase } from "./home.ts";

/** An endpoint that is set and held: events are recorded, nothing is sent. */
export const RECORDED_EVENTS = { webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1 } as const;

/** All that D1 has of an application, in one trip: badges by number, invitations and events in the order in which they came. */
export async function readRows({ id }: { id: ApplicationId }) {
  const orm = drizzle(homeDatabase());
  // Events of one millisecond have no order but that of the changes that they report.
  const inOrder = [webhookEvent.createdAt, sql`payload ->> '$.data.change'`, webhookEvent.id];
  const [badges, invitations, events] = await orm.batch([
    orm.select().from(badge).where(eq(badge.applicationId, id)).orderBy(badge.number),
    orm.select().from(invitation).where(eq(invitation.applicationId, id)).orderBy(sql`rowid`),
    orm
      .select()
      .from(webhookEvent)
      .where(eq(webhookEvent.applicationId, id))
      .orderBy(...inOrder),
  ]);
  return { badges, invitations, events };
}

/** An application's rows in `badge`, in any state. */
export const badgeRows = async (application: { id: ApplicationId }) => (await readRows(application)).badges;

/** An application's `badge:created` rows in the outbox. */
export const eventRows = async (application: { id: ApplicationId }) =>
  (await readRows(application)).events.filter(({ event }) => event === "badge:created");

/** The order in which the head has the counts of badges. */
const BADGE_COUNTS: BadgeState[] = ["active", "suspended", "revoked", "expired", "replaced"];

/**
 * Makes D1's head what it would be if the first numbers of the range were badges in this state. For rows that a test writes into D1
 * before the application's first call, from which its allocator takes them over.
 */
export const countBadges = (
  { id, firstNumber }: { id: ApplicationId; firstNumber: number },
  count: number,
  state: BadgeState = "active",
): D1PreparedStatement =>
  homeDatabase()
    .prepare(
      `UPDATE application_head SET last_ordinal = ?2, last_change = ?2,
         range_segments = json_array(json_object('first', ?3, 'size', ?2, 'used', ?2)),
         statistics = json_set(statistics, '$[0][${BADGE_COUNTS.indexOf(state)}]', ?2) WHERE application_id = ?1`,
    )
    .bind(id, count, firstNumber);
