import { expect } from "vitest";
import { z } from "zod";
import type { TestApplication } from "../../support/application.ts";
import { homeDatabase } from "../../support/home.ts";
import { call, requestBadge, serverHeaders } from "../../support/http.ts";

const listAnswer = z.strictObject({
  badges: z.array(z.strictObject({ id: z.string(), userId: z.string(), metadata: z.unknown().optional() })),
});

type Listed = z.infer<typeof listAnswer>["badges"][number];

export interface Page {
  badges: Listed[];
  /** The cursor of the next page, or null when there is none. */
  next: string | null;
}

/** @param query with its question mark */
export async function page(application: TestApplication, query = "", path = "/v1/badges"): Promise<Page> {
  const answer = await call("GET", `${path}${query}`, { headers: serverHeaders(application) });
  expect(answer.status).toBe(200);
  const { badges } = listAnswer.parse(answer.body);
  return { badges, next: answer.headers.get("pagination-cursor") };
}

export const ofUser = (userId: string) => `/v1/users/${encodeURIComponent(userId)}/badges`;

export async function issue(application: TestApplication, udid: string, userId: string): Promise<string> {
  const { status, body } = await requestBadge(application, udid, { userId });
  expect(status).toBe(201);
  return String(body.badgeId);
}

/**
 * Badges as the service writes them, without the time that issuing takes: one for each of these users, in this order. They are
 * the first of the application; the next that it issues comes after them.
 */
export async function insert({ id, firstNumber }: TestApplication, userIds: readonly string[]): Promise<void> {
  const d1 = homeDatabase();
  const badges = d1.prepare(
    `INSERT INTO badge (number, application_id, device, user_id, position, turn)
     SELECT ?3 + key, ?2, 'device ' || key, value, key + 1, 1 FROM json_each(?1)`,
  );
  const position = d1.prepare("UPDATE position SET last_position = ?1 WHERE application_id = ?2");
  await d1.batch([badges.bind(JSON.stringify(userIds), id, firstNumber), position.bind(userIds.length, id)]);
}

export const users = (count: number) => Array.from({ length: count }, (_, place) => `user ${place}`);

export const ids = ({ badges }: Page) => badges.map(({ id }) => id);

/** All pages one after the other. */
export async function* pages(
  application: TestApplication,
  perPage: () => number,
  path = "/v1/badges",
): AsyncGenerator<Page> {
  let found: Page | null = null;
  do {
    const cursor: string = found?.next ? `&cursor=${found.next}` : "";
    found = await page(application, `?per_page=${perPage()}${cursor}`, path);
    yield found;
  } while (found.next !== null);
}
