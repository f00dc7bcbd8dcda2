import { describe, expect, it, vi } from "vitest";
import { createApplication } from "../support/application.ts";
import { requestBadge } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";

describe("the name of a device in storage (contract section 9)", () => {
  it("a device's name in storage is 128 bits without the udid, the same for a udid, and another in another application", async () => {
    vi.spyOn(console, "log").mockImplementation(() => {});
    const [first, second] = [await createApplication(), await createApplication()];
    for (const userId of ["alice", "bob"]) await requestBadge(first, "phone", { userId });
    await requestBadge(first, "tablet", { userId: "alice" });
    await requestBadge(second, "phone", { userId: "alice" });
    const rows = [...(await badgeRows(first)), ...(await badgeRows(second))];
    const names = rows.map(({ device }) => device ?? "");
    // Base64url of 16 bytes: with fewer, two devices of a large application would share badges some day.
    for (const name of names) expect(name).toMatch(/^[\w-]{22}$/);
    expect(names).toHaveLength(4);
    expect(new Set(names).size).toBe(3);
    expect(JSON.stringify(rows)).not.toContain("phone");
  });
});
