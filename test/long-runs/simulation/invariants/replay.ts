import type { ApplicationId } from "../../../../src/shared/identifiers.ts";
import { fromStored } from "../../../../src/worker/allocator/log-entry.ts";
import { RenderedEntries } from "../../../../src/worker/allocator/replica/render.ts";
import { standIn } from "../../stand-in.ts";
import { makeHomeDatabase, OWNED_TABLES, type Statement } from "../platform/d1.ts";
import type { Sqlite, Value } from "../platform/sqlite.ts";
import type { World } from "../world.ts";
import { KEYS } from "./history.ts";

/** An empty D1, for all seeds. */
const empty = makeHomeDatabase();

/** Only collects what would be sent. */
const session = standIn<D1DatabaseSession>("a D1 session", {
  prepare: (sql: string) => ({ bind: (...parameters: Value[]): Statement => ({ sql, parameters }) }),
});

/**
 * The log alone, applied to an empty D1, gives the rows that D1 has (contract section 21). Nothing is said where the log does not go
 * back to the beginning.
 *
 * @param allocator the storage of an application's object
 */
export function checkReplay({ d1, verdict, planter }: World, id: ApplicationId, allocator: Sqlite): void {
  const entries = allocator.run("SELECT sequence, changes FROM entry ORDER BY sequence").rows;
  // Which number is refused depends on when its stranger came.
  if (entries[0]?.sequence !== 0 || planter.countOf(id) > 0) return;
  empty.clear();
  const head = d1.of(id).look("SELECT * FROM application_head WHERE application_id = ?", id)[0];
  const application = d1.of(id).look("SELECT * FROM application WHERE id = ?", id)[0];
  if (!head || !application) return;
  empty.insert("application", application);
  empty.insert("application_head", head);
  for (const { changes } of entries) {
    const parsed = fromStored(JSON.parse(String(changes)));
    const { statements } = new RenderedEntries(session, id, [{ changes: parsed, isResent: true }], {
      now: 0,
      hadUrl: false,
    });
    for (const { sql, parameters } of statements.map(asStatement)) empty.run(sql, parameters);
  }
  for (const table of OWNED_TABLES) {
    const select = `SELECT * FROM ${table} WHERE application_id = ? ORDER BY ${KEYS[table]?.at(-1)}`;
    const replayed = empty.run(select, [id]).rows;
    const there = d1.of(id).look(select, id);
    const isSame = JSON.stringify(replayed) === JSON.stringify(there);
    verdict.expect(isSame, "the log gives D1's rows", table, replayed, "instead of", there);
  }
}

function asStatement(prepared: object): Statement {
  const sql: unknown = Reflect.get(prepared, "sql");
  const parameters: unknown = Reflect.get(prepared, "parameters");
  if (typeof sql !== "string" || !Array.isArray(parameters)) throw new Error("not a statement of this session");
  return { sql, parameters };
}
