import { applyD1Migrations } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { onTestFinished } from "vitest";
import { aroundD1 } from "./d1.ts";
import { homeDatabase } from "./home.ts";

/** What the calls of a device read. */
const TABLES = ["application_head", "badge", "invitation", "blocked_user", "heartbeat"] as const;

/** What becomes of a query that a copy may respond to: it does, it fails or hangs, or there is none and the primary responds. */
type Behaviour = "responds" | "fails" | "hangs" | "is missing";

/**
 * D1 far away, with one copy of it near the caller: a real database that is as new as the last `catchUp`. What is asked for
 * with a newer bookmark than that waits for the next one, as D1 has it (D1: Sessions API).
 */
export class FarD1 {
  primaryTrips = 0;
  /** Calls that the copy got, also those that it did not respond to. */
  copyTrips = 0;
  behaviour: Behaviour = "responds";
  readonly binding: D1Database;
  /** The primary's bookmark when the copy caught up. */
  #bookmark = "";
  /** The test that made it has ended: nothing waits any more, which the next test would see. */
  #isOver = false;

  private constructor() {
    const primary = aroundD1(homeDatabase(), (_, send) => {
      this.primaryTrips++;
      return send();
    });
    this.binding = new Proxy(primary, {
      get: (target, method) => {
        if (method !== "withSession") return Reflect.get(target, method);
        return (constraint: string) =>
          constraint === "first-primary" || this.behaviour === "is missing"
            ? target.withSession(constraint)
            : this.#nearSession(constraint);
      },
    });
  }

  /** For the running test. The copy has caught up. */
  static async create(): Promise<FarD1> {
    await applyD1Migrations(env.TEST_COPY, env.TEST_MIGRATIONS);
    const d1 = new FarD1();
    onTestFinished(() => {
      d1.#isOver = true;
    });
    await d1.catchUp();
    return d1;
  }

  async catchUp(): Promise<void> {
    const session = homeDatabase().withSession("first-primary");
    // What is read afterwards is at least as new.
    await session.prepare("SELECT 1").all();
    const tables = await Promise.all(
      TABLES.map(async (table) => ({ table, ...(await homeDatabase().prepare(`SELECT * FROM ${table}`).all()) })),
    );
    await env.TEST_COPY.batch(
      tables.flatMap(({ table, results }) => [
        env.TEST_COPY.prepare(`DELETE FROM ${table}`),
        ...results.map((row) =>
          env.TEST_COPY.prepare(
            `INSERT INTO ${table} (${Object.keys(row)}) VALUES (${Object.keys(row).map(() => "?")})`,
          ).bind(...Object.values(row)),
        ),
      ]),
    );
    this.#bookmark = session.getBookmark() ?? "";
  }

  #nearSession(constraint: string): D1DatabaseSession {
    const wanted = constraint === "first-unconstrained" ? "" : constraint;
    let seen: string | null = null;
    const ask = async (statement: D1PreparedStatement) => {
      this.copyTrips++;
      if (this.behaviour === "fails") throw new Error("D1_ERROR: the copy is out of order");
      const isWaiting = () => this.behaviour === "hangs" || this.#bookmark < wanted;
      while (isWaiting() && !this.#isOver) await scheduler.wait(5);
      if (isWaiting()) throw new Error("D1_ERROR: the copy was shut down");
      const { meta, ...result } = await statement.all();
      seen = this.#bookmark > wanted ? this.#bookmark : wanted;
      return { ...result, meta: { ...meta, served_by_primary: false } };
    };
    const prepare = (sql: string) => ({
      bind: (...parameters: unknown[]) => ({ all: () => ask(env.TEST_COPY.prepare(sql).bind(...parameters)) }),
    });
    return new Proxy(env.TEST_COPY.withSession(), {
      get: (_, method) => {
        if (method === "prepare") return prepare;
        if (method === "getBookmark") return () => seen;
        throw new Error(`the service does not call ${String(method)} of a session near the caller`);
      },
    });
  }
}
