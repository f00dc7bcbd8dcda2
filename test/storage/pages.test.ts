import { expect, it, vi } from "vitest";
import { z } from "zod";
import { BADGE_CURSOR } from "../../src/worker/badges/list.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { runSql } from "../support/home.ts";
import { serverHeaders } from "../support/http.ts";
import { Meter } from "../support/meter.ts";

const BADGES = 20_000;
const USERS = 4;
const PER_PAGE = 10;

const pageBody = z.object({ badges: z.array(z.object({ id: z.string() })) });

/** Badges of a few users in turn, at the ordinals from 1 on. */
async function fill({ id, firstNumber }: TestApplication): Promise<void> {
  await runSql(
    `WITH RECURSIVE place (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n + 1 < ?3)
     INSERT INTO badge (number, application_id, device, user_id, signing_key_id, event_id, ordinal, login_sequence)
     SELECT ?2 + n, ?1, 'device-' || n, 'user-' || CAST(n % ?4 AS INTEGER), 1, 'evt_' || n, n + 1, 1 FROM place`,
    id,
    firstNumber,
    BADGES,
    USERS,
  );
}

it.each([
  { path: "/v1/badges", step: 1 },
  { path: "/v1/users/user-0/badges", step: USERS },
])("$path reads as many rows for a late page as for the first (contract section 4)", async ({ path, step }) => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  const application = await createApplication({ size: BADGES });
  await fill(application);
  const meter = new Meter(application);
  const cost = (ordinal: number) =>
    meter.measure(async () => {
      const url = `https://badges.example${path}?per_page=${PER_PAGE}&cursor=${BADGE_CURSOR.encode(ordinal)}`;
      const { status, body } = await meter.request(new Request(url, { headers: serverHeaders(application) }));
      expect(status).toBe(200);
      expect(pageBody.parse(body).badges.map(({ id }) => Number(id) - application.firstNumber)).toEqual(
        Array.from({ length: PER_PAGE }, (_, place) => ordinal + place * step),
      );
    });
  await cost(0);
  const early = await cost(0);
  // One row more than the page shows tells whether another page follows.
  expect(early).toMatchObject({ d1RoundTrips: 1, d1RowsRead: PER_PAGE + 1 });
  for (const ordinal of [BADGES / 2, BADGES - 100 * USERS]) expect(await cost(ordinal)).toEqual(early);
});
