/**
 * Platform bindings that ask the platform once and then give the same result again: what is left of a call is the CPU
 * time of the Worker's own isolate. A call with other values than the first one's is a mistake of the benchmark.
 */

interface Bindings {
  DB: D1Database;
  DEVICE_LIMIT: RateLimit;
  CLIENT_IP_LIMIT: RateLimit;
}

export function memoised<Env extends Bindings>(env: Env): Env {
  return {
    ...env,
    DB: memoisedD1(env.DB),
    DEVICE_LIMIT: memoisedLimit(env.DEVICE_LIMIT),
    CLIENT_IP_LIMIT: memoisedLimit(env.CLIENT_IP_LIMIT),
  };
}

function memoisedLimit(limit: RateLimit): RateLimit {
  const outcome = once(() => limit.limit({ key: "own-cost" }));
  return { limit: outcome };
}

function memoisedD1(d1: D1Database): D1Database {
  const statements = new Map<string, D1PreparedStatement>();
  const prepare = (sql: string) => {
    const known = statements.get(sql);
    if (known) return known;
    const statement = memoisedStatement(d1.prepare(sql));
    statements.set(sql, statement);
    return statement;
  };
  return new Proxy(d1, {
    get: (_, method) => (method === "prepare" ? prepare : refuse(method)),
  });
}

/** Bound with the same values each time, so one bound statement does for all calls. */
function memoisedStatement(statement: D1PreparedStatement): D1PreparedStatement {
  let bound: { values: unknown[]; statement: D1PreparedStatement } | undefined;
  return new Proxy(statement, {
    get: (_, method) => (method === "bind" ? bind : refuse(method)),
  });

  function bind(...values: unknown[]): D1PreparedStatement {
    bound ??= { values, statement: memoisedResults(statement.bind(...values)) };
    const first = bound.values;
    if (!values.every((value, index) => value === first[index])) {
      throw new Error("memoised statements are bound with the same values each time");
    }
    return bound.statement;
  }
}

function memoisedResults(statement: D1PreparedStatement): D1PreparedStatement {
  const methods = {
    all: once(() => statement.all()),
    first: once(() => statement.first()),
    raw: once(() => statement.raw()),
  };
  return new Proxy(statement, {
    get: (_, method) => (method === "all" || method === "first" || method === "raw" ? methods[method] : refuse(method)),
  });
}

/** Each call gives a new promise, as the platform does. */
function once<Result>(ask: () => Promise<Result>): () => Promise<Result> {
  let known: { result: Result } | undefined;
  return async () => {
    known ??= { result: await ask() };
    return known.result;
  };
}

function refuse(method: string | symbol): never {
  throw new Error(`the measured calls do not use ${String(method)}`);
}
