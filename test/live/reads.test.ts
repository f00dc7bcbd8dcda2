import { describe, expect, it } from "vitest";
import { DoorIds } from "../../src/worker/live/door-ids.ts";
import { Snapshots } from "../../src/worker/live/snapshots.ts";
import { Unavailable } from "../../src/worker/platform.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { standIn } from "../long-runs/stand-in.ts";
import { createApplication } from "../support/application.ts";
import { aroundD1 } from "../support/d1.ts";
import { LOST } from "../support/faults.ts";
import { homeDatabase } from "../support/home.ts";

describe("what the object of connected doors reads (contract section 26)", () => {
  it("the list of doors is read again after a failed read", async () => {
    const { id } = await createApplication();
    let isAway = true;
    const d1 = aroundD1(homeDatabase(), (_, send) => (isAway ? Promise.reject(LOST) : send()));
    const doors = new DoorIds(id, () => new Database(d1));
    const retired = () => doors.findRetired([{ id: "unknown", since: 0 }], 0);
    await expect(retired()).rejects.toBeInstanceOf(Unavailable);
    isAway = false;
    expect(await retired()).toEqual(new Set(["unknown"]));
  });

  it("callers share a running read of D1, unless they need earlier changes or a change was reported since it began", async () => {
    const { id } = await createApplication();
    const kv = standIn<SyncKvStorage>("an object's storage", { get: () => undefined, put: () => {} });
    const snapshots = new Snapshots(kv, id, () => new Database(homeDatabase()));
    const [first, same, earlier] = [snapshots.read(1), snapshots.read(5), snapshots.read(0)];
    snapshots.outdate();
    const newer = snapshots.read(5);
    expect(await same).toBe(await first);
    expect(await earlier).not.toBe(await first);
    expect(await newer).not.toBe(await earlier);
  });
});
