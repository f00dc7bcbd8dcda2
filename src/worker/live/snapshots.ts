import * as z from "zod";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { INITIAL_HEAD } from "../../shared/initial-head.ts";
import { LIVE_COMPARE_MILLISECONDS } from "../../shared/limits/live-limits.ts";
import { STATUS_LIST_ENTRIES } from "../../shared/limits/status-list-limits.ts";
import { happenedWithin } from "../../shared/time.ts";
import type { Database } from "../storage/database.ts";
import { readStatusChanges } from "../storage/status-changes.ts";
import type { Snapshot } from "./door-delta.ts";

const epochRow = z.object({ epoch: z.string(), floor: z.number() });

/** A running read of D1. */
interface Reading {
  after: number;
  round: number;
  result: Promise<Snapshot>;
}

/** D1's changes of status, read once for all listeners. */
export class Snapshots {
  readonly #kv: SyncKvStorage;
  readonly #applicationId: ApplicationId;
  readonly #openDatabase: () => Database;
  #newest: { snapshot: Snapshot; round: number } | undefined;
  #reading: Reading | undefined;
  /** Incremented by `outdate`, because a read that began before it may lack the change. */
  #round = 0;

  constructor(kv: SyncKvStorage, applicationId: ApplicationId, openDatabase: () => Database) {
    this.#kv = kv;
    this.#applicationId = applicationId;
    this.#openDatabase = openDatabase;
  }

  /** Makes the next `read` query D1, because D1 may have a new change. */
  outdate(): void {
    this.#round++;
  }

  /**
   * D1's changes, read after the last `outdate` and at most `LIVE_COMPARE_MILLISECONDS` ago.
   *
   * @param after the caller needs the changes after this one
   * @throws Unavailable
   */
  read(after: number): Promise<Snapshot> {
    const newest = this.#newest;
    const isUsable =
      newest?.round === this.#round &&
      newest.snapshot.after <= after &&
      happenedWithin(newest.snapshot.readAt, Date.now(), LIVE_COMPARE_MILLISECONDS);
    if (newest && isUsable) return Promise.resolve(newest.snapshot);
    const reading = this.#reading;
    if (reading && reading.round === this.#round && reading.after <= after) return reading.result;
    return this.#begin(after);
  }

  #begin(after: number): Promise<Snapshot> {
    const round = this.#round;
    const readAt = Date.now();
    const lists = Math.floor((this.#newest?.snapshot.lastOrdinal ?? 0) / STATUS_LIST_ENTRIES) + 1;
    const result = readStatusChanges(this.#openDatabase(), this.#applicationId, after, lists).then((found) => {
      const snapshot = { ...found, after, readAt, floor: this.#floorOf(found) };
      this.#newest = { snapshot, round };
      return snapshot;
    });
    const reading = { after, round, result };
    this.#reading = reading;
    const end = () => {
      if (this.#reading === reading) this.#reading = undefined;
    };
    result.then(end, end);
    return result;
  }

  /**
   * The floor of this epoch: D1's last change when the object first saw the epoch, or 0 in the application's first epoch.
   * A door that has never called may have lists of an earlier epoch.
   */
  #floorOf({ epoch, lastChange }: { epoch: string; lastChange: number }): number {
    const known = epochRow.optional().parse(this.#kv.get("epoch"));
    if (known?.epoch === epoch) return known.floor;
    const floor = known === undefined && epoch === INITIAL_HEAD.epoch ? 0 : lastChange;
    this.#kv.put("epoch", { epoch, floor });
    return floor;
  }
}
