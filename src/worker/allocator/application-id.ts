import { firstRow } from "./sql.ts";

/**
 * The application whose numbers an object has. The object's name says it, but the runtime does not know the name of an
 * instance that was started by its ID, or by an alarm that was set long ago (Durable Objects: DurableObjectId, `name`). So
 * callers pass it, and the object stores it.
 */
export class ApplicationId {
  readonly #sql: SqlStorage;
  #known: string | undefined;

  /** @param name of the object, where the runtime knows it */
  constructor(sql: SqlStorage, name: string | undefined) {
    this.#sql = sql;
    const stored = firstRow(sql, "SELECT application_id FROM application")?.application_id;
    if (typeof stored === "string") this.#known = stored;
    this.learn(name);
  }

  /** @throws Error when the object is another application's */
  learn(applicationId: string | undefined): void {
    if (applicationId === undefined || applicationId === this.#known) return;
    if (this.#known !== undefined) throw new Error("the object is another application's");
    this.#sql.exec("INSERT INTO application (id, application_id) VALUES (1, ?)", applicationId);
    this.#known = applicationId;
  }

  /** @throws Error when nobody has said it yet */
  get value(): string {
    if (this.#known === undefined) throw new Error("the object does not know its application");
    return this.#known;
  }

  /** For the log. */
  get valueIfKnown(): string | null {
    return this.#known ?? null;
  }
}
