import { standIn } from "../../stand-in.ts";
import { isEntry, type Result, type Statement } from "./d1.ts";
import { requireProcess } from "./process.ts";
import type { Value } from "./sqlite.ts";

const LOST = "Network connection lost.";

/** A home's D1 as the service sees it, in whatever process the service runs: outside of sessions, the primary. */
export const d1Binding = (home: number): D1Database =>
  standIn<D1Database>("D1", {
    ...statementsBy(async (statements) => (await send(home, statements, null)).results),
    withSession: (first: string) => openSession(home, first === "first-primary" ? null : (positionOf(first) ?? 0)),
  });

/** Its first query goes to the primary if `bookmark` is null; each later one goes to what is as new as the one before it. */
function openSession(home: number, bookmark: number | null): D1DatabaseSession {
  let latest = bookmark;
  const statements = statementsBy(async (sent) => {
    const { results, bookmark: reached } = await send(home, sent, latest);
    latest = Math.max(latest ?? 0, reached);
    return results;
  });
  const getBookmark = () => (latest === null ? null : bookmarkOf(latest));
  return standIn<D1DatabaseSession>("a D1 session", { ...statements, getBookmark });
}

const bookmarkOf = (position: number): string =>
  `${position.toString(16).padStart(8, "0")}-00000000-00000000-${"0".repeat(32)}`;

/** @returns null for what D1 does not take as a bookmark */
export function positionOf(bookmark: string): number | null {
  const [, position] = /^([0-9a-f]{8})-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{32}$/.exec(bookmark) ?? [];
  return position === undefined ? null : Number.parseInt(position, 16);
}

type Send = (statements: readonly Statement[]) => Promise<Result[]>;

const statementsBy = (send: Send) => ({
  prepare: (sql: string) => prepare({ sql }, send),
  batch: async (statements: readonly Statement[]) => {
    if (statements.length === 0) throw new Error("D1_ERROR: No SQL statements detected.");
    return send(statements);
  },
});

function prepare(statement: Statement, send: Send) {
  const all = async () => (await send([statement]))[0];
  const bind = (...parameters: Value[]): Statement => prepare({ ...statement, parameters }, send);
  return {
    ...statement,
    bind,
    all,
    run: all,
    raw: async () => (await all())?.results.map((row) => Object.values(row)),
  };
}

function send(home: number, statements: readonly Statement[], bookmark: number | null) {
  const process = requireProcess();
  const { wire, d1, serviceDice, timeline, replica, plan } = process.world;
  const sender = isEntry(statements) && plan.applications.find(({ id }) => statements[0]?.parameters?.includes(id));
  // What a superseded instance sends may come as late as what it sent before.
  const sentAt = Math.min(timeline.now, process.supersededAt);
  const executed = wire.call({
    part: "d1",
    what: `D1 of home ${home}: ${statements.map(({ sql }) => nameOf(sql)).join(", ")}`,
    effect: () => d1.at(home).executeNear(statements, bookmark, timeline.now - sentAt),
    // The last one must not be tried again at once.
    error: () => new Error(serviceDice.oneOf([LOST, LOST, LOST, "D1 DB is overloaded."])),
  });
  if (sender) void executed.then(replica.noteSent(sender.id), () => {});
  return executed;
}

/** Verb and table, for the trace. */
const nameOf = (sql: string): string =>
  /(\w+)(?:.*?(?:INTO|UPDATE|FROM)\s+"?(\w+))?/is.exec(sql)?.slice(1).join(" ") ?? "";
