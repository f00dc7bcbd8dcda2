import { expect, it } from "vitest";
import { Database } from "../../src/worker/storage/database.ts";
import { readCounts } from "../../src/worker/storage/statistics-counts.ts";
import { createApplication } from "../support/application.ts";
import { billOf } from "../support/bill.ts";
import { aroundD1 } from "../support/d1.ts";
import { homeDatabase, runSql } from "../support/home.ts";

const BADGES = 100_000;
const EVENTS = 100_000;

/** The first numbers from 0 on, as `place (n)`. */
const places = (count: number) =>
  `WITH RECURSIVE place (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n + 1 < ${count})`;

it("statistics read at most 60,000 rows of an application of any size (contract section 19)", async () => {
  const { id, firstNumber } = await createApplication({ size: BADGES, reuseAfterSeconds: 86_400 });
  await runSql(
    `${places(BADGES)} INSERT INTO badge (number, application_id, device, user_id, ordinal, login_sequence, issued_at, metadata, ended_at)
     SELECT ?2 + n, ?1, 'd' || n, 'u' || n, n + 1, 1, 1, json_object('os', 'OS ' || (n % 20)), iif(n % 7, NULL, 1000) FROM place`,
    id,
    firstNumber,
  );
  await runSql("UPDATE application_head SET last_ordinal = ?2 WHERE application_id = ?1", id, BADGES);
  // A fifth of each kind, and the newest 30 never tried.
  await runSql(
    `${places(EVENTS)} INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at, last_outcome)
     SELECT ?1, 'evt_' || printf('%026d', n), 'badge:created', '{}',
       CASE WHEN n >= ${EVENTS - 30} OR n % 5 = 0 THEN 'pending' WHEN n % 5 = 1 THEN 'held' WHEN n % 5 = 2 THEN 'exhausted' ELSE 'delivered' END,
       iif(n < ${EVENTS - 30} AND n % 5 = 0, 1, NULL), 1, iif(n < ${EVENTS - 30}, iif(n % 2, 'answered', 'timeout'), NULL) FROM place`,
    id,
  );
  for (const coolingDown of [0, 20_000]) {
    await runSql(
      `${places(coolingDown)} INSERT INTO freed_number (application_id, number, freed_at) SELECT ?1, 5 + n, ?2 FROM place WHERE ${coolingDown}`,
      id,
      Date.now(),
    );
    let rows = 0;
    const counting = aroundD1(homeDatabase(), async (statements, send) => {
      const result = await send();
      rows += (await billOf(statements, result)).rowsRead;
      return result;
    });
    const counts = await readCounts(new Database(counting), id, Date.now());
    expect(rows).toBeLessThanOrEqual(60_000);
    const limit = coolingDown === 0 ? 9975 : 7475;
    const events = (state: string) =>
      counts?.deliveries.filter((each) => each.state === state).reduce((sum, each) => sum + each.events, 0);
    expect([events("exhausted"), events("held")]).toEqual([limit, limit]);
    expect(events("pending")).toBe(limit + 30);
    expect(counts?.deliveries).toContainEqual({ state: "pending", outcome: null, events: 30 });
    expect(counts?.deliveries.map(({ outcome }) => outcome)).toContain("timeout");
    expect(counts?.metadata.reduce((sum, { badges }) => sum + badges, 0)).toBe(20_000);
    expect(counts?.application.coolingDown).toBe(coolingDown === 0 ? 0 : 10_000);
  }
});
