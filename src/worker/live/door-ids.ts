import type { ApplicationId } from "../../shared/identifiers.ts";
import type { Database } from "../storage/database.ts";
import { listDoorIds } from "../storage/door-secrets.ts";

/**
 * Finds which doors of an application have a secret, with one read for all doors. Looking up each door in each of its
 * calls would send D1 thousands of queries at once after every change of status.
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
   * Finds the doors whose secrets were retired.
   *
   * @param doors `id`: of the secret; `since`: time of the door's call, milliseconds
   * @param readSince a read before this time is not reused, milliseconds
   * @returns IDs of retired secrets
   * @throws Unavailable
   */
  async findRetired(doors: readonly { id: string; since: number }[], readSince: number): Promise<Set<string>> {
    const ids = await this.#idsSince(readSince);
    const missing = doors.filter(({ id }) => !ids.has(id));
    if (missing.length === 0) return new Set();
    // Their secrets may be newer than the read.
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
