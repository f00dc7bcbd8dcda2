import { expect, it } from "vitest";
import { DoorIds } from "../../src/worker/live/door-ids.ts";
import { Unavailable } from "../../src/worker/platform.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { createApplication } from "../support/application.ts";
import { aroundD1 } from "../support/d1.ts";
import { LOST } from "../support/faults.ts";
import { homeDatabase } from "../support/home.ts";

it("the list of doors is read again after a failed read (contract section 26)", async () => {
  const { id } = await createApplication();
  let isAway = true;
  const d1 = aroundD1(homeDatabase(), (_, send) => (isAway ? Promise.reject(LOST) : send()));
  const doors = new DoorIds(id, () => new Database(d1));
  const retired = () => doors.findRetired([{ id: "unknown", since: 0 }], 0);
  await expect(retired()).rejects.toBeInstanceOf(Unavailable);
  isAway = false;
  expect(await retired()).toEqual(new Set(["unknown"]));
});
