import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { deflateSync } from "node:zlib";
import * as z from "zod";
import { createPermutation } from "../../../src/worker/allocator/permutation.ts";
import { compress, packEntries } from "../../../src/worker/badges/status-entries.ts";
import { Dice } from "../dice.ts";
import { migrationFiles } from "../migrations.ts";

const ENTRIES = 2 ** 17;

/** Not a path that TypeScript follows: types of the Worker's platform and of Node do not go together. */
const QUERY = join(import.meta.dirname, "../../../src/worker/storage/status-lists.ts");

const queryModule = z.object({
  SELECT_INACTIVE: z.string(),
  inactiveRow: z.custom<z.ZodType<[{ ended: number[]; paused: number[] }]>>((value) => value instanceof z.ZodType),
});

/** What the lists of one application cost. Bytes are of all its lists; milliseconds are of one list, the median. */
export interface StatusListFigures {
  badges: number;
  endedPercent: number;
  lists: number;
  /** Most rows that D1 reads for one list, besides those of the last position. */
  rowsRead: number;
  /** Compressed as the service does it, before base64. */
  bytes: number;
  /** The same by zlib's highest level. */
  bytesOfLevel9: number;
  queryMilliseconds: number;
  /** Indexes and bits, in an isolate that has not built this list before. */
  packMilliseconds: number;
  compressMilliseconds: number;
}

/**
 * Builds every list of an application by the service's own query and code, on the real tables in a local SQLite. Of the
 * badges only those that have ended are inserted: the index has no others. A quarter of them is suspended.
 */
export async function measureStatusLists(badges: number, endedPercent: number): Promise<StatusListFigures> {
  const db = new DatabaseSync(":memory:");
  for (const file of migrationFiles()) db.exec(readFileSync(file, "utf8"));
  const insert = db.prepare(
    `INSERT INTO badge (number, application_id, device, user_id, signing_key_id, event_id, position, turn, state, ended_at)
     VALUES (?1, 'app', ?1, ?1, 1, ?1, ?1, 1, ?2, ?3)`,
  );
  const { SELECT_INACTIVE, inactiveRow } = queryModule.parse(await import(QUERY));
  const select = db.prepare(SELECT_INACTIVE);
  const dice = new Dice(1);
  const lists = Math.floor(badges / ENTRIES) + 1;
  const sum = { bytes: 0, bytesOfLevel9: 0 };
  const taken: Record<"query" | "pack" | "compress", number[]> = { query: [], pack: [], compress: [] };
  let rowsRead = 0;
  for (let list = 0; list < lists; list++) {
    const first = list * ENTRIES;
    db.exec("DELETE FROM badge; BEGIN");
    for (let position = Math.max(1, first); position < first + ENTRIES && position <= badges; position++) {
      if (!dice.chance(endedPercent / 100)) continue;
      if (dice.chance(0.25)) insert.run(position, "suspended", null);
      else insert.run(position, "revoked", 1);
    }
    db.exec("COMMIT");
    const times = [performance.now()];
    const [inactive] = inactiveRow.parse([select.get("app", first, first + ENTRIES, Date.now())]);
    times.push(performance.now());
    const bytes = packEntries(inactive, createPermutation(new Uint8Array(32).fill(list), ENTRIES));
    times.push(performance.now());
    const compressed = await compress(bytes);
    times.push(performance.now());
    const [start = 0, queried = 0, packed = 0, end = 0] = times;
    taken.query.push(queried - start);
    taken.pack.push(packed - queried);
    taken.compress.push(end - packed);
    sum.bytes += compressed.byteLength;
    sum.bytesOfLevel9 += deflateSync(bytes, { level: 9 }).byteLength;
    rowsRead = Math.max(rowsRead, inactive.ended.length + inactive.paused.length);
  }
  db.close();
  return {
    ...{ badges, endedPercent, lists, rowsRead, bytes: sum.bytes, bytesOfLevel9: sum.bytesOfLevel9 },
    queryMilliseconds: median(taken.query),
    packMilliseconds: median(taken.pack),
    compressMilliseconds: median(taken.compress),
  };
}

/** The table of docs/performance.md. */
export async function statusListTable(): Promise<string> {
  const lines = ["| badges | ended | lists | rows read | bytes, all lists | level 9 | query | indexes | zlib |"];
  lines.push(`|${" ---: |".repeat(9)}`);
  for (const badges of [1_000_000, 10_000_000]) {
    for (const endedPercent of [0.01, 1, 10]) {
      const each = await measureStatusLists(badges, endedPercent);
      const times = [each.queryMilliseconds, each.packMilliseconds, each.compressMilliseconds];
      const counts = [each.lists, each.rowsRead, each.bytes, each.bytesOfLevel9];
      const cells = [
        format(badges),
        `${endedPercent} %`,
        ...counts.map(format),
        ...times.map((ms) => `${ms.toFixed(1)} ms`),
      ];
      lines.push(`| ${cells.join(" | ")} |`);
    }
  }
  return lines.join("\n");
}

const median = (values: number[]): number => values.toSorted((one, other) => one - other)[values.length >> 1] ?? 0;

const format = (number: number): string => number.toLocaleString("en");
