import * as z from "zod";
import type { Database } from "./database.ts";

/**
 * D1's clock row. The sweep increments its sequence number every minute, and one Durable Object remembers the highest
 * number it has seen. If D1's number is not ahead of that, D1 was restored to an older state.
 */

const TICK = `
  INSERT INTO clock (id, sequence, ticked_at) VALUES (1, 1, ?1)
  ON CONFLICT (id) DO UPDATE SET sequence = sequence + 1, ticked_at = ?1
  RETURNING sequence`;

const sequenceRows = z.tuple([z.object({ sequence: z.number() })]);

/** @returns the new sequence number */
export async function tickClock(db: Database, now: number): Promise<number> {
  const { results } = await db.run((_, d1) => d1.prepare(TICK).bind(now).all());
  return sequenceRows.parse(results)[0].sequence;
}

/** Expires every cursor of every application's feed. */
export async function renewAllEpochs(db: Database): Promise<void> {
  await db.run((_, d1) => d1.prepare("UPDATE application SET feed_epoch = lower(hex(randomblob(16)))").run());
}
