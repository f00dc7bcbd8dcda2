import { firstRow } from "./sql.ts";

/**
 * ID of the application that an object belongs to. It is the object's name, but the runtime does not know the name of an
 * instance that was started by object ID or by an old alarm (Durable Objects: DurableObjectId, `name`). So callers pass it,
 * and the object stores it.
 */
export class OwnApplicationId {
  readonly #sql: SqlStorage;
  #known: string | undefined;

  /** @param name of the object, if the runtime knows it */
  constructor(sql: SqlStorage, name: string | undefined) {
    this.#sql = sql;
    const stored = firstRow(sql, "SELECT application_id FROM application")?.application_id;
    if (typeof stored === "string") this.#known = stored;
    this.learn(name);
  }

  /** @throws Error when the object belongs to another application */
  learn(applicationId: string | undefined): void {
    if (applicationId === undefined || applicationId === this.#known) return;
    if (this.#known !== undefined) throw new Error("the object belongs to another application");
    this.#sql.exec("INSERT INTO application (id, application_id) VALUES (1, ?)", applicationId);
    this.#known = applicationId;
  }

  /** @throws Error before the first `learn` */
  get value(): string {
    if (this.#known === undefined) throw new Error("the object does not know its application");
    return this.#known;
  }

  /** For the log. */
  get valueIfKnown(): string | null {
    return this.#known ?? null;
  }
}
