import { expect } from "vitest";
import { z } from "zod";
import { callDirectly } from "../invitations/support/direct.ts";
import type { TestApplication } from "../support/application.ts";
import { serverHeaders } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";

const page = z.object({
  changes: z.array(z.looseObject({ id: z.string(), change: z.number(), changedAt: z.string() })),
  more: z.boolean(),
});

export type Change = z.infer<typeof page>["changes"][number];

/** What an application's server keeps by following GET /v1/changes (contract section 13). */
export class Follower {
  readonly #application: TestApplication;
  readonly #perPage: number;
  readonly copy = new Map<string, Change>();
  cursor: string | null = null;
  /** How often a cursor had expired, so that everything was read again. */
  restarts = 0;
  #lastChange = 0;

  constructor(application: TestApplication, perPage = 100) {
    this.#application = application;
    this.#perPage = perPage;
  }

  /** Reads one page. @returns it, or null when the cursor has expired */
  async read(): Promise<z.infer<typeof page> | null> {
    const cursor = this.cursor === null ? "" : `&cursor=${this.cursor}`;
    const headers = serverHeaders(this.#application);
    const answer = await callDirectly("GET", `/v1/changes?per_page=${this.#perPage}${cursor}`, { headers });
    if (answer.status === 410) {
      expect(answer.body).toEqual({ error: "EXPIRED_CURSOR" });
      this.#startAgain();
      return null;
    }
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    const { changes, more } = page.parse(answer.body);
    expect(changes.length).toBeLessThanOrEqual(this.#perPage);
    for (const change of changes) {
      // Nothing twice, nothing out of order.
      expect(change.change).toBeGreaterThan(this.#lastChange);
      this.#lastChange = change.change;
      this.copy.set(change.id, change);
    }
    this.cursor = answer.headers.get("pagination-cursor");
    expect(this.cursor).toMatch(/^[\w-]+$/);
    return { changes, more };
  }

  /** Reads until nothing more follows. @returns what it read since the last restart */
  async follow(): Promise<Change[]> {
    let read: Change[] = [];
    for (;;) {
      const found = await this.read();
      if (found === null) read = [];
      else read.push(...found.changes);
      if (found?.more === false) return read;
    }
  }

  /** The copy is what GET /v1/badges/{id} says of every badge that was ever issued. */
  async expectExact(): Promise<void> {
    const issued = (await badgeRows(this.#application)).filter(({ ordinal }) => ordinal !== null);
    const numbers = issued.map(({ number }) => String(number));
    expect([...this.copy.keys()].sort()).toEqual(numbers.sort());
    for (const number of numbers) {
      const headers = serverHeaders(this.#application);
      const { body } = await callDirectly("GET", `/v1/badges/${number}`, { headers });
      const { change: _, ...badge } = this.copy.get(number) ?? { change: 0 };
      expect(badge).toEqual(body);
    }
  }

  #startAgain(): void {
    this.copy.clear();
    this.cursor = null;
    this.#lastChange = 0;
    this.restarts++;
  }
}
