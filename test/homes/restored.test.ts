import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { sweep } from "../../src/worker/sweep.ts";
import { copyD1, Follower, restoreD1 } from "../badges/follower.ts";
import { issueTo, takeStep } from "../badges/life-support.ts";
import { createApplication } from "../support/application.ts";
import { contextOf } from "../support/context.ts";
import { testHome } from "../support/home.ts";

const MINUTE = 60_000;

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
});

afterEach(() => {
  vi.useRealTimers();
});

/** The sweep visits both homes, each with its own clock. */
async function passMinute(): Promise<void> {
  vi.setSystemTime(Date.now() + MINUTE);
  await sweep([contextOf(1), contextOf(2)]);
}

it("a restoration of one home expires the cursors of its applications, and of no other (contract sections 13 and 17)", async () => {
  const [restored, untouched] = [await createApplication(), await createApplication({ home: 3 - testHome() })];
  const numbers = [await issueTo(restored, "phone", "alice"), await issueTo(untouched, "phone", "alice")];
  // So its clock is ahead of the other one's.
  for (const _ of [1, 2, 3]) await sweep([contextOf(testHome())]);
  await passMinute();
  const copy = await copyD1();
  await passMinute();
  const followers = [new Follower(restored), new Follower(untouched)];
  for (const follower of followers) await follower.follow();
  await restoreD1(copy);
  await passMinute();
  await takeStep(restored, numbers[0] ?? "", "suspend");
  await takeStep(untouched, numbers[1] ?? "", "suspend");
  for (const follower of followers) await follower.follow();
  expect(followers.map(({ restarts }) => restarts)).toEqual([1, 0]);
  for (const follower of followers) await follower.expectExact();
});
