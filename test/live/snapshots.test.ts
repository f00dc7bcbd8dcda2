import { expect, it } from "vitest";
import { Snapshots } from "../../src/worker/live/snapshots.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { standIn } from "../long-runs/stand-in.ts";
import { createApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";

it("callers share a running read of D1, unless they need earlier changes or a change was reported since it began (contract section 26)", async () => {
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
