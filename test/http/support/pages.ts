import { expect } from "vitest";
import { z } from "zod";
import type { TestApplication } from "../../support/application.ts";
import { callServer } from "../../support/http.ts";

const anyPage = z.record(z.string(), z.array(z.record(z.string(), z.unknown())));

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
