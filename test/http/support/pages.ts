import { expect } from "vitest";
import { z } from "zod";
import { takeOver } from "../../support/allocator.ts";
import type { TestApplication } from "../../support/application.ts";
import { homeDatabase } from "../../support/home.ts";
import { callServer, requestBadge } from "../../support/http.ts";
import { countBadges } from "../../support/rows.ts";

const anyPage = z.record(z.string(), z.array(z.record(z.string(), z.unknown())));
const listed = z.array(z.strictObject({ id: z.string(), userId: z.string(), metadata: z.unknown().optional() }));

interface AnyPage {
  items: Record<string, unknown>[];
  /** The cursor of the next page, or null when there is none. */
  next: string | null;
}

/** A page of any list, as the application's server sees it. */
export async function listPage(application: TestApplication, path: string): Promise<AnyPage> {
  const { status, body, headers } = await callServer(application, "GET", path);
  expect(status, JSON.stringify(body)).toBe(200);
  const [items = []] = Object.values(anyPage.parse(body));
  return { items, next: headers.get("pagination-cursor") };
}

/** All pages of any list, each of `perPage` items. */
export async function follow(application: TestApplication, path: string, perPage = 2): Promise<AnyPage["items"][]> {
  const found: AnyPage["items"][] = [];
  for (let next: string | null = ""; next !== null; ) {
    const query = `per_page=${perPage}${next === "" ? "" : `&cursor=${next}`}`;
    const one = await listPage(application, `${path}${path.includes("?") ? "&" : "?"}${query}`);
    found.push(one.items);
    next = one.next;
  }
  return found;
}

export interface Page {
  badges: z.infer<typeof listed>;
  next: string | null;
}

/** @param query with its question mark */
export async function page(application: TestApplication, query = "", path = "/v1/badges"): Promise<Page> {
  const { items, next } = await listPage(application, `${path}${query}`);
  return { badges: listed.parse(items), next };
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
export async function insert(application: TestApplication, userIds: readonly string[]): Promise<void> {
  const d1 = homeDatabase();
  const { id, firstNumber } = application;
  const badges = d1.prepare(
    `INSERT INTO badge (number, application_id, device, user_id, ordinal, login_sequence, change)
     SELECT ?3 + key, ?2, 'device ' || key, value, key + 1, 1, key + 1 FROM json_each(?1)`,
  );
  const head = countBadges(application, userIds.length);
  await d1.batch([badges.bind(JSON.stringify(userIds), id, firstNumber), head]);
  await takeOver(application);
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
