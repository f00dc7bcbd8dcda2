import { afterEach, describe, expect, it, vi } from "vitest";
import { issueTo, takeStep } from "../badges/life-support.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import type { TestApplication } from "../support/application.ts";
import { runSql } from "../support/home.ts";
import { addDoor, deltaOf, listen, outcomeOf, ringLive, untilHeld, withBadge, withHeldDoor } from "./support.ts";

useQuietLog();

afterEach(() => {
  vi.useRealTimers();
});

const retireDoor = ({ id }: TestApplication, name: string) =>
  runSql("DELETE FROM door_secret WHERE application_id = ?1 AND name = ?2", id, name);

const pass = (milliseconds: number) =>
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + milliseconds, shouldAdvanceTime: true });

describe("a door's secret that was retired (contract section 26)", () => {
  it("a retired door's held call ends within half a minute, and its secret no longer authenticates", async () => {
    const { application, have, door, held } = await withHeldDoor();
    await retireDoor(application, "North");
    await ringLive(application);
    expect(outcomeOf(await held)).toBe("401 INVALID_CREDENTIALS");
    expect(outcomeOf(await listen(door, `have=${have}`))).toBe("401 INVALID_CREDENTIALS");
  });

  it("a retired door's secret stops authenticating within half a minute, also where an isolate has seen it", async () => {
    const { application, number, have } = await withBadge();
    const [north, south] = [await addDoor(application, "North"), await addDoor(application, "South")];
    const held = [listen(north, `have=${have}`), listen(south, `have=${have}`)];
    await untilHeld(application, 2);
    await retireDoor(application, "North");
    await takeStep(application, number, "suspend");
    const [first, second] = (await Promise.all(held)).map(deltaOf);
    expect(first?.entries).toEqual(second?.entries);
    pass(30_000);
    expect(outcomeOf(await listen(north, `have=${first?.change}`))).toBe("401 INVALID_CREDENTIALS");
    expect(outcomeOf(await listen(north, `have=${first?.change}`))).toBe("401 INVALID_CREDENTIALS");
    const next = listen(south, `have=${second?.change}`);
    await untilHeld(application, 1);
    await takeStep(application, number, "resume");
    await ringLive(application);
    expect(deltaOf(await next).entries).toHaveLength(1);
  });

  it("a door's retired secret is not taken for the one that it got since, nor is a secret newer than what the object has read", async () => {
    const { application, have, held } = await withHeldDoor();
    await retireDoor(application, "North");
    const renewed = listen(await addDoor(application, "North"), `have=${have}`);
    await untilHeld(application, 2);
    await ringLive(application);
    expect(outcomeOf(await held)).toBe("401 INVALID_CREDENTIALS");
    await untilHeld(application, 1);
    await takeStep(application, await issueTo(application, "other", "bob"), "suspend");
    expect(deltaOf(await renewed).entries).toHaveLength(1);
  });
});
