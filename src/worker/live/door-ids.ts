import type { ApplicationId } from "../../shared/identifiers.ts";
import type { Database } from "../storage/database.ts";
import { listDoorIds } from "../storage/door-secrets.ts";

/**
 * Which doors of an application have a secret, read at once for all of them. To look each door up in each of its calls would be
 * thousands of questions to D1 at once after every change of status.
 */
export class DoorIds {
  readonly #applicationId: ApplicationId;
  readonly #openDatabase: () => Database;
  #read: { ids: Promise<Set<string>>; at: number } | undefined;

  constructor(applicationId: ApplicationId, openDatabase: () => Database) {
    this.#applicationId = applicationId;
    this.#openDatabase = openDatabase;
  }

  /**
   * Those that have no secret.
   *
   * @param doors `since`: when they have called, milliseconds
   * @param readSince what was read before is not used, milliseconds
   * @throws Unavailable
   */
  async findRetired(doors: readonly { id: string; since: number }[], readSince: number): Promise<Set<string>> {
    const ids = await this.#idsSince(readSince);
    const missing = doors.filter(({ id }) => !ids.has(id));
    if (missing.length === 0) return new Set();
    // Their secrets may be newer than what was read.
    const newer = await this.#idsSince(Math.max(...missing.map(({ since }) => since)));
    return new Set(missing.flatMap(({ id }) => (newer.has(id) ? [] : [id])));
  }

  #idsSince(time: number): Promise<Set<string>> {
    const now = Date.now();
    if (this.#read && this.#read.at >= time && this.#read.at <= now) return this.#read.ids;
    const read = { ids: listDoorIds(this.#openDatabase(), this.#applicationId), at: now };
    this.#read = read;
    read.ids.catch(() => {
      if (this.#read === read) this.#read = undefined;
    });
    return read.ids;
  }
}
