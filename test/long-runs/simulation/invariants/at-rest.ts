import type { ApplicationPlan } from "../plan.ts";
import type { World } from "../world.ts";

/** Of what D1 has no row when nothing is under way and nothing is due. */
const NOTHING_LEFT = {
  "no reservation outlives its invitation": "SELECT * FROM badge WHERE position IS NULL",
  "a range reaches as far as its numbers were handed out": `SELECT badge.* FROM badge
    JOIN application ON application.id = badge.application_id WHERE badge.number > application.last_number`,
  "a number that somebody has is not free": "SELECT badge.* FROM badge JOIN freed_number USING (number)",
  "an event is given up after all its attempts":
    "SELECT * FROM webhook_event WHERE state = 'exhausted' AND attempts <> 14",
  "a blocked user has no live badge": `SELECT badge.* FROM blocked_user JOIN badge
    ON badge.application_id = blocked_user.application_id AND badge.user_id = blocked_user.user_id
    AND badge.position IS NOT NULL AND badge.state IN ('active', 'suspended')`,
};

/** What must be true when nothing is under way and nothing is due. */
export function checkAtRest(world: World): void {
  const { d1, verdict, plan, entries } = world;
  for (const [promise, sql] of Object.entries(NOTHING_LEFT)) {
    const left = d1.look(sql);
    verdict.expect(left.length === 0, promise, left);
  }
  for (const application of plan.applications) checkApplication(world, application);
  entries.checkAtRest();
}

/**
 * Every number that was handed out is somebody's or free again, and D1 is where the object's list ends. Callers that do not know
 * yet that the range grew skip numbers beyond it.
 */
function checkApplication({ verdict, objects, d1 }: World, { id, numbersAtFirst }: ApplicationPlan): void {
  const home = d1.of(id);
  const [counted] = home.look(
    `SELECT sequence, entry,
      (SELECT coalesce(sum(value ->> 'used'), 0) FROM json_each(position.fresh)) AS used,
      (SELECT coalesce(sum(value ->> 'size'), 0) FROM json_each(position.fresh)) AS size,
      (SELECT count(*) FROM badge WHERE application_id = ?1) AS owned,
      (SELECT count(*) FROM freed_number WHERE application_id = ?1) AS freed
    FROM position WHERE application_id = ?1`,
    id,
  );
  const skipped = Number(counted?.used) - Number(counted?.owned) - Number(counted?.freed);
  const isExact = skipped === 0 || (skipped > 0 && skipped <= Number(counted?.size) - numbersAtFirst);
  verdict.expect(isExact, "no number is lost, and none is handed out twice", id, counted);
  const object = objects.get(id);
  if (!object || object.hasForgotten) return;
  const [last] = object.sqlite.run(LAST_ENTRY).rows;
  const isLevel = last === undefined || last.entry === counted?.entry;
  verdict.expect(isLevel, "D1 is where its object's list ends", id, counted, last ?? "");
}

const LAST_ENTRY = `
  SELECT id AS entry FROM (SELECT id, place FROM journal_entry UNION ALL SELECT entry, sequence * 64 FROM journal_base)
  ORDER BY place DESC LIMIT 1`;
