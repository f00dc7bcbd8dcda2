import { describe, expect, it } from "vitest";
import { DUE_CHUNK_ROWS } from "../../src/shared/limits.ts";
import { createApplication } from "../support/application.ts";
import { runSql } from "../support/home.ts";
import { badgeRows } from "../support/rows.ts";
import { crowded, wake } from "./support.ts";

describe("badges that expire at one moment (contract section 12)", () => {
  it("are recorded by one call of the clock, many chunks of maximal metadata too, each with a change number", async () => {
    const application = await crowded(2 * DUE_CHUNK_ROWS + 100);
    await runSql("UPDATE badge SET expires_at = 1000 WHERE application_id = ?1", application.id);
    await wake(application);
    const rows = await badgeRows(application);
    expect(rows.filter(({ endedAt }) => endedAt === null)).toEqual([]);
    expect(new Set(rows.map(({ change }) => change)).size).toBe(rows.length);
    expect(rows).toHaveLength(2 * DUE_CHUNK_ROWS + 100);
  });
});

describe("invitations that end at one moment (contract section 5)", () => {
  it("are recorded by one call of the clock, however many more than a chunk there are", async () => {
    const { id, firstNumber } = await createApplication();
    const count = 2 * DUE_CHUNK_ROWS + 100;
    const places = "WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?3)";
    const number = "7000000000 + ?2 + n";
    // In the opposite order of the rows.
    const digest = "printf('%064d', ?2 + ?3 - n)";
    await runSql(
      `INSERT INTO invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time, created_at)
       ${places} SELECT ${digest}, ?1, ${number}, 'pending', 'creator', '1970-01-01T00:00:01Z', 1000, 1 FROM place`,
      ...[id, firstNumber, count],
    );
    await runSql(
      `INSERT INTO badge (number, application_id, invitation) ${places} SELECT ${number}, ?1, ${digest} FROM place`,
      ...[id, firstNumber, count],
    );
    await wake({ id });
    const states = "SELECT state, count(*) AS n FROM invitation WHERE application_id = ?1 GROUP BY 1";
    expect((await runSql(states, id)).results).toEqual([{ state: "expired", n: count }]);
    expect(await badgeRows({ id })).toEqual([]);
  });
});
