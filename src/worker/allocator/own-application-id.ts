import { type ApplicationId, applicationId } from "../../shared/identifiers.ts";
import { firstRow } from "./sql.ts";

/**
 * ID of the application that an object belongs to. It is the object's name, but the runtime does not know the name of an
 * instance that was started by object ID or by an old alarm (Durable Objects: DurableObjectId, `name`). So callers pass it,
 * and the object stores it.
 */
export class OwnApplicationId {
  readonly #sql: SqlStorage;
  #known: ApplicationId | undefined;

  /** @param name of the object, if the runtime knows it */
  constructor(sql: SqlStorage, name: string | undefined) {
    this.#sql = sql;
    const stored = firstRow(sql, "SELECT application_id FROM application")?.application_id;
    this.#known = applicationId.optional().parse(stored);
    this.learn(applicationId.optional().parse(name));
  }

  /** @throws Error when the object belongs to another application */
  learn(id: ApplicationId | undefined): void {
    if (id === undefined || id === this.#known) return;
    if (this.#known !== undefined) throw new Error("the object belongs to another application");
    this.#sql.exec("INSERT INTO application (id, application_id) VALUES (1, ?)", id);
    this.#known = id;
  }

  /** @throws Error before the first `learn` */
  get value(): ApplicationId {
    if (this.#known === undefined) throw new Error("the object does not know its application");
    return this.#known;
  }

  /** For the log, and for choosing the home; null: never learned. */
  get valueIfKnown(): ApplicationId | null {
    return this.#known ?? null;
  }
}
