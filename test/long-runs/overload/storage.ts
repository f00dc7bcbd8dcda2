import { z } from "zod";
import type { SideDatabase } from "../bench/side.ts";
import type { Application } from "./phones.ts";
import type { Findings } from "./thread.ts";

const ROWS_AT_ONCE = 10_000;

const rows = z.array(z.object({ number: z.number(), user_id: z.string() }));
const counted = z.object({ count: z.number() });

/** What D1 has of a run's phones. */
export interface Stored {
  badges: number;
  events: number;
  /** Badges whose phone was never told. */
  untold: number;
  /** What contradicts the answers, in words. */
  contradictions: string[];
}

/** Holds D1 against what phones were answered: each has exactly one badge, with that number, and one event. */
export async function compareStored(
  database: SideDatabase,
  { id }: Application,
  { answered }: Findings,
): Promise<Stored> {
  const numbers = new Map<string, number[]>();
  for await (const { number, user_id: userId } of phonesBadges(database, id)) {
    numbers.set(userId, [...(numbers.get(userId) ?? []), number]);
  }
  const several = [...numbers].filter(([, own]) => own.length > 1);
  const different = answered.filter(([userId, badgeId]) => String(numbers.get(userId)) !== badgeId);
  const badges = [...numbers.values()].reduce((sum, own) => sum + own.length, 0);
  const events = await countEvents(database, id);
  return {
    badges,
    events,
    untold: numbers.size - answered.length + different.filter(([userId]) => !numbers.has(userId)).length,
    contradictions: [
      ...several.map(([userId, own]) => `${userId} has several badges: ${own}`),
      ...different.map(([userId, badgeId]) => `${userId} was answered ${badgeId}, D1 has ${numbers.get(userId)}`),
      ...(events === badges ? [] : [`${badges} badges have ${events} events`]),
    ],
  };
}

async function* phonesBadges({ prepare }: SideDatabase, id: string) {
  const select = `SELECT number, user_id FROM badge
    WHERE application_id = ?1 AND user_id LIKE 'phone-%' AND number > ?2 ORDER BY number LIMIT ?3`;
  for (let after = 0; ; ) {
    const { results } = await prepare(select).bind(id, after, ROWS_AT_ONCE).all();
    const page = rows.parse(results);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < ROWS_AT_ONCE) return;
    after = last.number;
  }
}

async function countEvents({ prepare }: SideDatabase, id: string): Promise<number> {
  const select = "SELECT count(*) AS count FROM webhook_event WHERE application_id = ?1";
  return counted.parse(await prepare(select).bind(id).first()).count;
}
