import { IS_UNCONFIRMED } from "../../../../src/worker/allocator/ledger-tables.ts";
import { MAX_ATTEMPTS } from "../../../../src/worker/webhooks/policy.ts";
import type { ApplicationPlan } from "../plan.ts";
import type { Row } from "../platform/sqlite.ts";
import type { World } from "../world.ts";

/** What must be true of an application when nothing is under way and nothing is due. */
export function checkAtRest(world: World): void {
  world.life.checkAtRest();
  for (const application of world.plan.applications) {
    const rows = readRows(world, application);
    checkInvitations(world, rows);
    checkEvents(world, application, rows);
    checkLeases(world, application, rows);
  }
}

interface ApplicationRows {
  badges: Row[];
  invitations: Row[];
  events: Row[];
}

function readRows({ d1 }: World, { id }: ApplicationPlan): ApplicationRows {
  return {
    badges: d1.look("SELECT * FROM badge WHERE application_id = ? ORDER BY number", id),
    invitations: d1.look("SELECT * FROM invitation WHERE application_id = ? ORDER BY digest", id),
    events: d1.look("SELECT * FROM webhook_event WHERE application_id = ? ORDER BY id", id),
  };
}

const isReserved = ({ position }: Row): boolean => position === null;

function checkInvitations({ verdict }: World, { badges, invitations }: ApplicationRows): void {
  const open = invitations.filter(({ state }) => state === "pending");
  verdict.expect(open.length === 0, "every invitation ends", open);
  const reserved = badges.filter(isReserved);
  verdict.expect(reserved.length === 0, "no reservation outlives its invitation", reserved);
}

function checkEvents(world: World, { webhookUrl }: ApplicationPlan, { badges, events }: ApplicationRows): void {
  const { verdict, deliveries } = world;
  const issued = badges.filter((badge) => !isReserved(badge));
  const expected =
    webhookUrl === null ? [] : issued.map((badge) => `${badge.event_id} ${badge.number} ${badge.user_id}`);
  const told = events.flatMap(({ id, event, payload }) => {
    const { data } = JSON.parse(String(payload));
    return event === "badge:created" ? [`${id} ${data.id} ${data.userId}`] : [];
  });
  verdict.expect(isSame(told, expected), "every badge has exactly one event of its issue", told, expected);
  for (const event of events) {
    const { state, attempts } = event;
    verdict.expect(state !== "pending", "every event is delivered, exhausted or held", event);
    const isTrue = state !== "delivered" || deliveries.isAccepted(String(event.id));
    verdict.expect(isTrue, "a delivered event was taken by its receiver", event);
    const isUsedUp = state !== "exhausted" || attempts === MAX_ATTEMPTS;
    verdict.expect(isUsedUp, "an event is given up after all its attempts", event);
  }
  checkReplacements(world, { badges, events });
}

/** A replaced badge is named by the event of the one that took its place. */
function checkReplacements(
  { verdict, plan }: World,
  { badges, events }: Pick<ApplicationRows, "badges" | "events">,
): void {
  const retired = badges.filter(({ state }) => state === "replaced").map(({ number }) => String(number));
  const replaced = events.flatMap(({ payload }) => JSON.parse(String(payload)).data.replacedBadgeId ?? []);
  const isTold = plan.applications.some(({ webhookUrl }) => webhookUrl === null) || isSame(retired, replaced);
  verdict.expect(isTold, "every replaced badge is named once by the event of its successor", retired, replaced);
}

function checkLeases(
  { verdict, objects, rows }: World,
  application: ApplicationPlan,
  { badges }: ApplicationRows,
): void {
  const { id } = application;
  const object = objects.get(id);
  verdict.expect(object !== undefined || badges.length === 0, "every badge has a lease", badges);
  if (!object || object.lacksAlarm) return;
  const look = (sql: string) => object.sqlite.run(sql).rows;
  const leases = look(`SELECT holder, number, NOT ${IS_UNCONFIRMED} AS confirmed FROM lease`);
  const free = look("SELECT number FROM free UNION ALL SELECT number FROM ready UNION ALL SELECT number FROM beyond");
  const [segments] = look("SELECT coalesce(sum(used), 0) AS used FROM segment");
  const open = leases.filter(({ confirmed }) => confirmed !== 1);
  verdict.expect(open.length === 0, "no lease stays open for ever", open);
  const held = leases.map(({ holder, number }) => `${holder} ${number}`);
  // A late repetition may end the lease of a retired number; a write that D1 executes after its lease was reclaimed finds
  // no lease, or another's. D1 knows both numbers as taken all the same, so nobody else gets them.
  const owed = badges
    .filter(
      ({ number, retired_at: at }) =>
        (at === null && !rows.writtenLate.has(Number(number))) || leases.some((lease) => lease.number === number),
    )
    .map((badge) => `${holderOf(badge)} ${badge.number}`);
  verdict.expect(isSame(held, owed), "there is a lease exactly for each number that is not free", held, owed);
  const known = [...leases, ...free].map(({ number }) => number);
  const isOnce = new Set(known).size === known.length;
  verdict.expect(isOnce, "no number is leased or free twice", leases, free);
  const handedOut = new Set([...known, ...badges.map(({ number }) => number), ...rows.mayBeLost(application)]);
  const isAll = handedOut.size === segments?.used;
  verdict.expect(isAll, "no number is lost", leases, free, segments);
}

function holderOf({ invitation, device, user_id: userId }: Row): string {
  return invitation === null ? `device:${device}:${userId}` : `invitation:${invitation}`;
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return [...one].sort().join("\n") === [...other].sort().join("\n");
}
