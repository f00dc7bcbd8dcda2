import { describe, expect, it, vi } from "vitest";
import { Live } from "../../src/worker/live/live.ts";
import { reconcile } from "../allocator/support.ts";
import { issueTo, takeStep } from "../badges/life-support.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { loseStorage, wake } from "../support/allocator.ts";
import { restore, takeSnapshot } from "../support/restoration.ts";
import { until } from "../support/until.ts";
import {
  addDoor,
  changeOf,
  deltaOf,
  endLive,
  heldCalls,
  listen,
  ringLive,
  untilHeld,
  withHeldDoor,
  withLists,
} from "./support.ts";

useQuietLog();

describe("doors and `reconcile --republish` (contract sections 21 and 26)", () => {
  it("doors are told at once that they need the lists, and are then held again", async () => {
    const { application, have, door, held } = await withHeldDoor();
    // Nobody rings the alarm that compares twice a minute.
    expect(await reconcile(application, { republish: true })).toMatchObject({ state: "in-sync", republished: true });
    const told = deltaOf(await held);
    expect(told).toMatchObject({ since: have + 1, change: have + 1, entries: [] });
    const next = listen(door, `have=${told.change}`);
    await untilHeld(application, 1);
    await ringLive(application);
    expect(await heldCalls(application)).toBe(1);
    await endLive(application);
    await next;
  });

  it("doors are told with their first call that they need the lists, whatever lists they have", async () => {
    const application = await withLists();
    const number = await issueTo(application, "phone", "alice");
    await takeStep(application, number, "suspend");
    const have = await changeOf(application);
    await reconcile(application, { republish: true });
    // No door of this application has ever called.
    const door = await addDoor(application, "North");
    const told = { since: have + 1, change: have + 1, entries: [] };
    expect(deltaOf(await listen(door, `have=${have}`))).toMatchObject(told);
    expect(deltaOf(await listen(door))).toMatchObject(told);
    await takeStep(application, number, "resume");
    expect(deltaOf(await listen(door, `have=${have + 1}`)).entries).toHaveLength(1);
  });

  it("doors are also told that they need the lists when the allocator has lost its storage", async () => {
    const application = await withLists();
    const number = await issueTo(application, "phone", "alice");
    await takeStep(application, number, "suspend");
    const have = await changeOf(application);
    await loseStorage(application);
    await wake(application);
    const door = await addDoor(application, "North");
    expect(deltaOf(await listen(door, `have=${have}`))).toMatchObject({ since: have + 1, entries: [] });
  });
});

describe("doors and a restored D1 (contract sections 21 and 26)", () => {
  it("doors are held while a restored D1 is behind, and have every change again when it has caught up", async () => {
    const application = await withLists();
    const door = await addDoor(application, "North");
    const [one, two] = [await issueTo(application, "phone", "alice"), await issueTo(application, "other", "bob")];
    const earlier = await changeOf(application);
    const snapshot = await takeSnapshot(application);
    await takeStep(application, one, "suspend");
    const first = deltaOf(await listen(door, `have=${earlier}`));
    expect(first.entries).toHaveLength(1);
    await takeStep(application, two, "revoke");
    await restore(application, snapshot);
    // The door's call has found D1 behind; the object reads D1 again when it has caught up.
    const alarm = vi.spyOn(Live.prototype, "alarm").mockResolvedValue();
    const held = listen(door, `have=${first.change}`);
    await until(() => expect(alarm).toHaveBeenCalled());
    await wake(application, true);
    alarm.mockRestore();
    await ringLive(application);
    const { since, change, entries } = deltaOf(await held);
    expect({ since, change, entries: entries.length }).toEqual({
      since: first.change,
      change: first.change + 1,
      entries: 1,
    });
    const last = deltaOf(await listen(door, `have=${earlier}`));
    expect(last).toMatchObject({ since: earlier, change: first.change + 1 });
    expect(last.entries.map(([, , status]) => status).sort()).toEqual([1, 2]);
  });
});
