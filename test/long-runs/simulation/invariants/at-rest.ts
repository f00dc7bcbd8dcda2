import { isDeepStrictEqual } from "node:util";
import { getTableColumns } from "drizzle-orm";
import type { ApplicationId } from "../../../../src/shared/identifiers.ts";
import { applicationHead, counterColumns } from "../../../../src/shared/schema.ts";
import { fromStored } from "../../../../src/worker/allocator/log-entry.ts";
import type { ApplicationPlan } from "../plan.ts";
import { OWNED_TABLES } from "../platform/d1.ts";
import type { Sqlite } from "../platform/sqlite.ts";
import type { Verdict, World } from "../world.ts";
import { KEYS } from "./history.ts";
import { checkReplay } from "./replay.ts";

/** Of what D1 has no row when nothing is under way and nothing is due. */
const NOTHING_LEFT = {
  "no reservation outlives its invitation": "SELECT * FROM badge WHERE ordinal IS NULL",
  "a range reaches as far as its numbers were handed out": `SELECT badge.* FROM badge
    JOIN application ON application.id = badge.application_id WHERE badge.number > application.last_number`,
  "a number that somebody has is not free": "SELECT badge.* FROM badge JOIN freed_number USING (number)",
  "an event is given up after all its attempts":
    "SELECT * FROM webhook_event WHERE state = 'exhausted' AND attempts <> 14",
  "a blocked user has no live badge": `SELECT badge.* FROM blocked_user JOIN badge
    ON badge.application_id = blocked_user.application_id AND badge.user_id = blocked_user.user_id
    AND badge.ordinal IS NOT NULL AND badge.state IN ('active', 'suspended')`,
};

/** What must be true when nothing is under way and nothing is due. */
export function checkAtRest(world: World): void {
  const { d1, verdict, plan, replica } = world;
  for (const [promise, sql] of Object.entries(NOTHING_LEFT)) {
    const left = d1.look(sql);
    verdict.expect(left.length === 0, promise, left);
  }
  for (const application of plan.applications) checkApplication(world, application);
  replica.checkAtRest();
}

/** How often the log is replayed. */
const REPLAY_CHANCE = 0.2;

/** Every number that was handed out is somebody's or free again, and D1 has what the allocator has. */
function checkApplication(world: World, { id, numbersAtFirst }: ApplicationPlan): void {
  const { verdict, objects, d1 } = world;
  const home = d1.of(id);
  const [counted] = home.look(
    `SELECT sequence, entry, readable_from, refused,
      (SELECT coalesce(sum(value ->> 'used'), 0) FROM json_each(application_head.range_segments)) AS used,
      (SELECT coalesce(sum(value ->> 'size'), 0) FROM json_each(application_head.range_segments)) AS size,
      (SELECT count(*) FROM badge WHERE application_id = ?1) AS owned,
      (SELECT count(*) FROM freed_number WHERE application_id = ?1) AS freed
    FROM application_head WHERE application_id = ?1`,
    id,
  );
  const burned = world.replica.countBurned(id);
  const skipped = Number(counted?.used) - Number(counted?.owned) - Number(counted?.freed) - burned;
  // Callers that do not know yet that the range grew skip numbers beyond it.
  const isExact = skipped === 0 || (skipped > 0 && skipped <= Number(counted?.size) - numbersAtFirst);
  verdict.expect(isExact, "no number is lost, and none is handed out twice", id, counted);
  const isOpen = counted?.readable_from === 0 && counted.refused === "[]";
  verdict.expect(isOpen, "nobody is kept from reading in the end", id, counted);
  const object = objects.get(id);
  if (!object) return;
  compare(world, id, object.sqlite);
  checkLog(world, id, object.sqlite);
  const erasures = object.sqlite.run("SELECT * FROM erasure").rows;
  verdict.expect(erasures.length === 0, "an erasure comes to an end", id, erasures);
  if (world.replayDice.chance(REPLAY_CHANCE)) checkReplay(world, id, object.sqlite);
}

/** D1's rows, of all four tables with all columns, and its head are the allocator's. */
function compare({ d1, verdict }: World, id: ApplicationId, allocator: Sqlite): void {
  const [last] = allocator.run("SELECT * FROM entry ORDER BY sequence DESC LIMIT 1").rows;
  // It was called, but D1 never responded to it.
  if (!last) return;
  for (const table of OWNED_TABLES) {
    const names = allocator.raw(`SELECT * FROM ${table} LIMIT 0`).columns.toSorted();
    const select = `SELECT ${names.join()} FROM ${table}`;
    const order = `ORDER BY ${KEYS[table]?.at(-1)}`;
    const own = allocator.run(`${select} ${order}`).rows;
    const theirs = d1.of(id).look(`${select} WHERE application_id = ? ${order}`, id);
    const isSame = JSON.stringify(own) === JSON.stringify(theirs);
    verdict.expect(isSame, "D1's rows are the allocator's", table, own, "in D1", theirs);
  }
  const head = d1.headOf(id);
  const isAt = head?.sequence === last.sequence && head?.entry === last.id;
  verdict.expect(isAt, "D1 is at the allocator's last entry", id, head, last);
  const counters = Object.entries(getTableColumns(applicationHead)).filter(([name]) => name in counterColumns);
  for (const [, { name }] of counters) {
    verdict.expect(head?.[name] === last[name], "D1's counters are the allocator's", id, name, head, last);
  }
  checkStatistics(verdict, id, allocator, String(head?.statistics));
}

/**
 * D1's history has the log's rows, and no script command is in the log twice. A user who was erased after a row appears under the
 * alias. After a republication so may a user who was erased before it, because a republication repeats erasures.
 */
function checkLog({ d1, verdict, erased }: World, id: ApplicationId, allocator: Sqlite): void {
  const rows = d1.of(id).look("SELECT id, action, badge, user_id FROM history WHERE application_id = ?", id);
  const there = new Map(rows.map((row) => [row.id, row]));
  const aliases = new Map<string, string>();
  const commands = new Set<string>();
  const entries = allocator
    .run("SELECT changes FROM entry ORDER BY sequence DESC")
    .rows.map(({ changes }) => fromStored(JSON.parse(String(changes))));
  const allErasures = entries.flatMap(({ erasures }) => erasures);
  for (const { history, erasures, results } of entries) {
    for (const { id, action, badge, userId } of history) {
      const expected = { id, action, badge, user_id: userId === null ? null : (aliases.get(userId) ?? userId) };
      const row = { ...there.get(id) };
      const isAlias = allErasures.some((one) => one.userId === userId && one.alias === row.user_id);
      const isSame = isDeepStrictEqual(row, isAlias ? { ...expected, user_id: row.user_id } : expected);
      verdict.expect(isSame, "D1's history is the log's", expected, "in D1", row);
    }
    for (const erasure of erasures.filter(({ isDone }) => !isDone)) {
      aliases.set(erasure.userId, erasure.alias);
      erased.checkLogged(id, erasure);
    }
    for (const { id: command } of results) {
      verdict.expect(!commands.has(command), "a command of the script is carried out once", command);
      commands.add(command);
    }
  }
}

const countEach = (state: string, states: readonly string[]) =>
  `json_array(${states.map((name) => `count(*) FILTER (WHERE ${state} = '${name}')`).join()})`;
const SEEN_STATE = "iif(ended_at IS NOT NULL AND state IN ('active', 'suspended'), 'expired', state)";
/** As D1 keeps the statistics, without the new badges of a day. */
const STATISTICS = `SELECT json_array(
  json((SELECT ${countEach(SEEN_STATE, ["active", "suspended", "revoked", "expired", "replaced"])} FROM badge WHERE ordinal IS NOT NULL)),
  json((SELECT ${countEach("state", ["pending", "claimed", "revoked", "expired"])} FROM invitation)),
  json_array((SELECT count(*) FROM badge WHERE superseded_at IS NOT NULL), (SELECT count(*) FROM freed_number))
) AS counted`;

/** What was counted with each change is what there is (contract section 19). */
function checkStatistics(verdict: Verdict, id: ApplicationId, allocator: Sqlite, text: string): void {
  const [badges, invitations, others]: number[][] = JSON.parse(text);
  const told = JSON.stringify([badges, invitations, others?.slice(0, 2)]);
  const counted = allocator.run(STATISTICS).rows[0]?.counted;
  verdict.expect(told === counted, "the statistics count what there is", id, counted, "told", told);
}
