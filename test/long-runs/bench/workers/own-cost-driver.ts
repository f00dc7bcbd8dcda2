import { standIn } from "../../stand-in.ts";

/** As a local D1 has it after its first query. */
const BOOKMARK = `00000000-00000001-00000000-${"0".repeat(32)}`;

type Fetch = (request: Request, env: Env, execution: ExecutionContext) => Promise<Response> | Response;

/**
 * A Worker that calls another one in its own isolate, as often as the header `repeat` says, so that nothing of the runtime's
 * is between the calls: no connection, no D1, no object. It gives the last response; all before it had its status and its
 * length. A request without the header goes to that Worker as it comes, with the real bindings.
 */
export function driverOf(fetch: Fetch): { fetch: Fetch } {
  // Made once an isolate, as the platform's own bindings are: statements are kept by them.
  let bindings: Env | undefined;
  return {
    async fetch(request, env, execution) {
      const { host: _, connection: __, repeat, ...headers } = Object.fromEntries(request.headers);
      if (repeat === undefined) return fetch(request, env, execution);
      const text = await request.text();
      const call = { method: request.method, headers, ...(text !== "" && { body: text }) };
      bindings ??= memoised(env);
      // Making a log line is the Worker's work; writing it is the platform's.
      console.log = () => {};
      let [status, body] = [0, new ArrayBuffer(0)];
      for (let count = 0; count < Number(repeat); count++) {
        const response = await fetch(new Request(request.url, call), bindings, execution);
        const length = body.byteLength;
        body = await response.arrayBuffer();
        const isSame = response.status === status && body.byteLength === length;
        if (count > 0 && !isSame) throw new Error(`call ${count} was answered ${response.status}, others ${status}`);
        status = response.status;
      }
      return new Response(body, { status });
    },
  };
}

/** Bindings that ask the platform once and then give the same result again. */
function memoised(env: Env): Env {
  const statements = new Map<string, D1PreparedStatement>();
  const prepare = (sql: string) => {
    const statement = statements.get(sql) ?? memoisedStatement(env.DB.prepare(sql));
    statements.set(sql, statement);
    return statement;
  };
  const limit = (binding: RateLimit): RateLimit => ({ limit: once(() => binding.limit({ key: "own-cost" })) });
  const session = standIn<D1DatabaseSession>("a session of the memoised D1", { prepare, getBookmark: () => BOOKMARK });
  return {
    ...env,
    DB: standIn<D1Database>("the memoised D1", { prepare, withSession: () => session }),
    DEVICE_LIMIT: limit(env.DEVICE_LIMIT),
    CLIENT_IP_LIMIT: limit(env.CLIENT_IP_LIMIT),
  };
}

/** Bound with the same values each time, so one bound statement does for all calls; others are a mistake of the benchmark. */
function memoisedStatement(statement: D1PreparedStatement): D1PreparedStatement {
  let first: { values: unknown[]; bound: D1PreparedStatement } | undefined;
  const bind = (...values: unknown[]): D1PreparedStatement => {
    first ??= { values, bound: memoisedResults(statement.bind(...values)) };
    const known = first.values;
    if (values.every((value, index) => value === known[index])) return first.bound;
    throw new Error("memoised statements are bound with the same values each time");
  };
  return standIn<D1PreparedStatement>("a memoised statement", { bind });
}

const memoisedResults = (statement: D1PreparedStatement): D1PreparedStatement =>
  standIn<D1PreparedStatement>("a memoised bound statement", {
    all: once(() => statement.all()),
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
