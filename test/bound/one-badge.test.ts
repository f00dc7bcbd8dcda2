import { describe, expect, it } from "vitest";
import { deviceId } from "../../src/shared/identifiers.ts";
import { NO_BADGE_YET } from "../../src/shared/storage/high-water.ts";
import { type NewBadge, writeBadges } from "../../src/worker/storage/badge-writes.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { badgeRows } from "../support/rows.ts";

const newBadge = ({ firstNumber }: TestApplication, place: number, keyThumbprint: string | null): NewBadge => ({
  kind: "issue",
  number: firstNumber + place,
  device: deviceId.parse("phone"),
  userId: "alice",
  metadata: null,
  signingKeyId: 1,
  eventId: `evt_${place}`,
  payload: "{}",
  issuedAt: 1000,
  keyThumbprint,
});

describe("a user device has one badge, bound or not (contract sections 1 and 15)", () => {
  it.each([
    [null, "key"],
    ["key", null],
    ["key", "another key"],
    [null, null],
  ])("also if an object of an older state leases another number: first %j, then %j", async (first, second) => {
    const application = await createApplication();
    const db = new Database(homeDatabase());
    const write = (badges: NewBadge[]) => writeBadges(db, application.id, badges, NO_BADGE_YET);
    expect((await write([newBadge(application, 0, first)])).results).toMatchObject([{ kind: "written" }]);
    expect((await write([newBadge(application, 1, second)])).results).toEqual([
      { kind: "existing", number: application.firstNumber, leasedNumberTaken: false },
    ]);
    expect(await badgeRows(application)).toMatchObject([{ keyThumbprint: first }]);
  });
});
