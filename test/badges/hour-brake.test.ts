import { describe, expect, it } from "vitest";
import { outcome } from "../http/support/draft.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { createApplication } from "../support/application.ts";
import { callServer, requestBadge } from "../support/http.ts";

const log = useQuietLog();

describe("an application that has used up its new badges of the hour (contract section 7)", () => {
  it("an application that has used up the hour's new badges is logged once, by the first call that gets 429", async () => {
    const application = await createApplication({ newBadgesPerHour: 1 });
    const lines = () => log.lines().filter(({ event }) => event === "new-badges-limited");
    expect(outcome(await requestBadge(application, "one", { userId: "ada" }))).toBe("201");
    const unknown = { userId: "ada", invitationToken: "inv_unknown" };
    expect(outcome(await requestBadge(application, "one", unknown))).toBe("404 UNKNOWN_INVITATION");
    // Another refusal is none of the limit.
    expect(lines()).toEqual([]);
    for (const udid of ["two", "three"]) {
      expect(outcome(await requestBadge(application, udid, { userId: "ada" }))).toBe("429 RATE_LIMITED");
    }
    expect(lines()).toMatchObject([{ level: "warn", application: application.id, newBadgesPerHour: 1 }]);
  });

  it("new badges requested with the application's secret are neither limited by the hour nor counted", async () => {
    const application = await createApplication({ newBadgesPerHour: 1 });
    const byServer = async (udid: string) =>
      outcome(await callServer(application, "POST", "/v1/badge", { userId: "ada" }, { udid }));
    const byPhone = async (udid: string) => outcome(await requestBadge(application, udid, { userId: "ada" }));
    const outcomes = [await byServer("one"), await byServer("two"), await byPhone("three"), await byPhone("four")];
    expect([...outcomes, await byServer("five")]).toEqual(["201", "201", "201", "429 RATE_LIMITED", "201"]);
  });
});
