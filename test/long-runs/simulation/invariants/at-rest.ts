import { IS_UNCONFIRMED } from "../../../../src/worker/allocator/ledger-tables.ts";
import type { ApplicationPlan } from "../plan.ts";
import type { Row } from "../platform/sqlite.ts";
import type { World } from "../world.ts";

/** Of what D1 has no row when nothing is under way and nothing is due. */
const NOTHING_LEFT = {
  "no reservation outlives its invitation": "SELECT * FROM badge WHERE position IS NULL",
  "an event is given up after all its attempts":
    "SELECT * FROM webhook_event WHERE state = 'exhausted' AND attempts <> 14",
  "a blocked user has no live badge": `SELECT badge.* FROM blocked_user JOIN badge
    ON badge.application_id = blocked_user.application_id AND badge.user_id = blocked_user.user_id
    AND position IS NOT NULL AND badge.state IN ('active', 'suspended')`,
};

/** What must be true when nothing is under way and nothing is due. */
export function checkAtRest(world: World): void {
  const { d1, verdict, plan, isRestored } = world;
  for (const [promise, sql] of Object.entries(NOTHING_LEFT)) {
    const left = d1.look(sql);
    verdict.expect(left.length === 0, promise, left);
  }
  // After a restoration objects keep numbers of which D1 does not know, until somebody runs `reconcile`.
  for (const application of plan.applications) if (!isRestored(application.id)) checkLeases(world, application);
}

function checkLeases({ verdict, objects, rows, d1 }: World, { id, firstNumber, lastNumber }: ApplicationPlan): void {
  const badges = d1.look("SELECT * FROM badge WHERE application_id = ?", id);
  const object = objects.get(id);
  verdict.expect(object !== undefined || badges.length === 0, "every badge has a lease", badges);
  if (!object || object.lacksAlarm) return;
  const look = (sql: string) => object.sqlite.run(sql).rows;
  const leases = look("SELECT holder, number FROM lease");
  const free = look("SELECT number FROM free UNION ALL SELECT number FROM ready UNION ALL SELECT number FROM beyond");
  const [segments] = look("SELECT coalesce(sum(used), 0) AS used FROM segment");
  const open = look(`SELECT holder, number FROM lease WHERE ${IS_UNCONFIRMED}`);
  verdict.expect(open.length === 0, "no lease stays open for ever", open);
  // A late repetition may end the lease of a retired number; a write that D1 executes after its lease was reclaimed finds
  // no lease, or another's. D1 knows both numbers as taken all the same, so nobody else gets them.
  const isOwed = ({ number, retired_at: at }: Row) =>
    (at === null && !rows.writtenLate.has(Number(number))) || leases.some((lease) => lease.number === number);
  const owed = badges.filter(isOwed).map((badge) => `${holderOf(badge)} ${badge.number}`);
  const held = leases.map(({ holder, number }) => `${holder} ${number}`);
  const isExact = held.sort().join() === owed.sort().join();
  verdict.expect(isExact, "there is a lease exactly for each number that is not free", held, owed);
  const known = [...leases, ...free].map(({ number }) => number);
  verdict.expect(new Set(known).size === known.length, "no number is leased or free twice", leases, free);
  // Of what was written late, the row may be gone again, and no lease brings the number back.
  const late = [...rows.writtenLate].filter((number) => number >= firstNumber && number <= lastNumber);
  const handedOut = new Set([...known, ...badges.map(({ number }) => number), ...late]);
  verdict.expect(handedOut.size === segments?.used, "no number is lost", leases, free, segments);
}

const holderOf = ({ invitation, device, user_id: userId }: Row): string =>
  invitation === null ? `device:${device}:${userId}` : `invitation:${invitation}`;
