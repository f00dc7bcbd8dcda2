import { runBare } from "./bill.ts";

/** A statement with what is bound to it. */
export interface Statement {
  sql: string;
  parameters: readonly unknown[];
}

/** What a test does around one round trip: count it, keep it, fail instead of it or after it. */
export type AroundTrip = <Result>(statements: readonly Statement[], send: () => Promise<Result>) => Promise<Result>;

/** The same D1, with every round trip going through `around`, those of its sessions too. */
export function aroundD1(d1: D1Database, around: AroundTrip): D1Database {
  const originals = new WeakMap<D1PreparedStatement, { original: D1PreparedStatement; statement: Statement }>();

  function wrap(original: D1PreparedStatement, statement: Statement): D1PreparedStatement {
    const wrapped = new Proxy(original, {
      get(target, method) {
        switch (method) {
          case "bind":
            return (...parameters: unknown[]) => wrap(target.bind(...parameters), { ...statement, parameters });
          case "all":
          case "run":
            return () => around([statement], () => target[method]());
          case "raw":
            return () => around([statement], () => runBare(target, statement.sql));
          default:
            throw new Error(`the service does not call ${String(method)} of a statement`);
        }
      },
    });
    originals.set(wrapped, { original, statement });
    return wrapped;
  }

  function unwrap(wrapped: D1PreparedStatement) {
    const known = originals.get(wrapped);
    if (!known) throw new Error("a batch takes statements of its own database");
    return known;
  }

  function wrapMember(target: D1Database | D1DatabaseSession, method: string | symbol): unknown {
    switch (method) {
      case "prepare":
        return (sql: string) => wrap(target.prepare(sql), { sql, parameters: [] });
      case "batch":
        return (batch: D1PreparedStatement[]) => {
          const parts = batch.map(unwrap);
          return around(
            parts.map(({ statement }) => statement),
            () => target.batch(parts.map(({ original }) => original)),
          );
        };
      default:
        throw new Error(`the service does not call ${String(method)} of D1`);
    }
  }

  const wrapSession = (session: D1DatabaseSession) =>
    new Proxy(session, {
      get: (target, method) => (method === "getBookmark" ? () => target.getBookmark() : wrapMember(target, method)),
    });

  return new Proxy(d1, {
    get: (target, method) =>
      method === "withSession"
        ? (constraintOrBookmark: string) => wrapSession(target.withSession(constraintOrBookmark))
        : wrapMember(target, method),
  });
}

/** The same D1, which counts the round trips to it. */
export function countedD1(original: D1Database): { d1: D1Database; trips: number } {
  const d1 = aroundD1(original, (_, send) => {
    counted.trips++;
    return send();
  });
  const counted = { d1, trips: 0 };
  return counted;
}
