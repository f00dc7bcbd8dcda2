import { standIn } from "../../stand-in.ts";

/**
 * Platform bindings that ask the platform once and then give the same result again: what is left of a call is the CPU
 * time of the Worker's own isolate. A call with other values than the first one's is a mistake of the benchmark.
 */

export interface Bindings {
  DB: D1Database;
  DEVICE_LIMIT: RateLimit;
  CLIENT_IP_LIMIT: RateLimit;
}

export function memoised<Env extends Bindings>(env: Env): Env {
  const statements = new Map<string, D1PreparedStatement>();
  const prepare = (sql: string) => {
    const statement = statements.get(sql) ?? memoisedStatement(env.DB.prepare(sql));
    statements.set(sql, statement);
    return statement;
  };
  const limit = (binding: RateLimit): RateLimit => ({ limit: once(() => binding.limit({ key: "own-cost" })) });
  return {
    ...env,
    DB: standIn<D1Database>("the memoised D1", { prepare }),
    DEVICE_LIMIT: limit(env.DEVICE_LIMIT),
    CLIENT_IP_LIMIT: limit(env.CLIENT_IP_LIMIT),
  };
}

/** Bound with the same values each time, so one bound statement does for all calls. */
function memoisedStatement(statement: D1PreparedStatement): D1PreparedStatement {
  let bound: { values: unknown[]; statement: D1PreparedStatement } | undefined;
  const bind = (...values: unknown[]): D1PreparedStatement => {
    bound ??= { values, statement: memoisedResults(statement.bind(...values)) };
    const first = bound.values;
    if (values.every((value, index) => value === first[index])) return bound.statement;
    throw new Error("memoised statements are bound with the same values each time");
  };
  return standIn<D1PreparedStatement>("a memoised statement", { bind });
}

const memoisedResults = (statement: D1PreparedStatement): D1PreparedStatement =>
  standIn<D1PreparedStatement>("a memoised bound statement", {
    all: once(() => statement.all()),
    first: once(() => statement.first()),
    raw: once(() => statement.raw()),
  });

/** Each call gives a new promise, as the platform does. */
function once<Result>(ask: () => Promise<Result>): () => Promise<Result> {
  let known: { result: Result } | undefined;
  return async () => {
    known ??= { result: await ask() };
    return known.result;
  };
}
