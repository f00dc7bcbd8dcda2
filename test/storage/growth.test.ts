import { describe, expect, it } from "vitest";
import { useQuietLog } from "../invitations/support/log.ts";
import { createApplication } from "../support/application.ts";
import { callServer, requestBadge } from "../support/http.ts";
import { everythingStored } from "../support/stored.ts";

useQuietLog();

const FIELDS = ["deviceModel", "os", "osVersion", "sdkVersion"];

describe("metadata (contract section 7)", () => {
  it("metadata is stored with its badge alone: no row grows with those of other badges, however many they are", async () => {
    const application = await createApplication();
    const largestRow = async () =>
      Math.max(...Object.values(await everythingStored([application])).flatMap((rows) => rows.map(sizeOf)));
    const logIn = (udid: string) => {
      const metadata = Object.fromEntries(FIELDS.map((field) => [field, `${udid} `.padEnd(256, field)]));
      return requestBadge(application, udid, { userId: "alice", metadata });
    };
    for (let place = 0; place < 3; place++) expect((await logIn(`first ${place}`)).status).toBe(201);
    const before = await largestRow();
    for (let place = 0; place < 20; place++) expect((await logIn(`phone ${place}`)).status).toBe(201);
    const { body } = await callServer(application, "GET", "/v1/stats");
    expect(body).toMatchObject({ badgesByState: { active: 23 }, sampled: 23 });
    // Counters may have another digit.
    expect(await largestRow()).toBeLessThan(before + 50);
  });
});

const sizeOf = (row: unknown): number => JSON.stringify(row).length;
