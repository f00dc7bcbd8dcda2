import { describe, expect, it, onTestFinished, vi } from "vitest";
import { outcome } from "../http/support/draft.ts";
import { createApplication } from "../support/application.ts";
import { requestBadge } from "../support/http.ts";
import { linesOf } from "../support/log-lines.ts";

describe("an application that has used up its new badges of the hour (contract section 7)", () => {
  it("an application that has used up the hour's new badges is logged once, by the first call that gets 429", async () => {
    const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
    onTestFinished(() => void vi.restoreAllMocks());
    const application = await createApplication({ newBadgesPerHour: 1 });
    const lines = () => linesOf(warned).filter((line) => line.application === application.id);
    expect(outcome(await requestBadge(application, "one", { userId: "ada" }))).toBe("201");
    const unknown = { userId: "ada", invitationToken: "inv_unknown" };
    expect(outcome(await requestBadge(application, "one", unknown))).toBe("404 UNKNOWN_INVITATION");
    // Another refusal is none of the limit.
    expect(lines()).toEqual([]);
    for (const udid of ["two", "three"]) {
      expect(outcome(await requestBadge(application, udid, { userId: "ada" }))).toBe("429 RATE_LIMITED");
    }
    expect(lines()).toMatchObject([{ level: "warn", event: "new-badges-limited", newBadgesPerHour: 1 }]);
  });
});
