import { describe, expect, it } from "vitest";
import { rotationText, signingKeyTable } from "../../src/admin/key/commands.ts";
import { applicationId } from "../../src/shared/identifiers.ts";

const NEWEST = "n".repeat(43);
const OVERTAKEN = "o".repeat(43);
const CURRENT = "c".repeat(43);

describe("the output of key rotate and key list (contract section 10)", () => {
  it.each([
    { isUrgent: false, doors: "By then every cached copy of the key set has it." },
    {
      isUrgent: true,
      doors: "Doors whose copy of the key set is older refuse those signatures until they fetch it again",
    },
  ])(
    "from when new badges are signed with the new key, to the second and in UTC: urgent $isUrgent",
    ({ isUrgent, doors }) => {
      const rotated = {
        applicationId: applicationId.parse("app_1"),
        keyId: NEWEST,
        signsFrom: "2026-11-22T00:20:05.000Z",
      };
      const text = rotationText(rotated, isUrgent);
      expect(text).toContain(`Published key ${NEWEST} of app_1.`);
      expect(text).toContain(`New badges are signed with it from 2026-11-22 00:20:05Z on. ${doors}`);
    },
  );

  it("shows which key signs now and which does next, with times, in 80 columns", () => {
    const createdAt = "2026-11-22T00:10:05.000Z";
    const keys = [
      { keyId: NEWEST, current: false, badges: 0, createdAt, signsFrom: "2026-11-22T00:20:05.000Z" },
      { keyId: OVERTAKEN, current: false, badges: 0, createdAt, signsFrom: null },
      { keyId: CURRENT, current: true, badges: 999_999, createdAt, signsFrom: "2026-10-01T08:00:00.000Z" },
      { keyId: "p", current: false, badges: 1, createdAt, signsFrom: "2025-10-01T08:00:00.000Z" },
    ];
    const lines = signingKeyTable(keys).split("\n").slice(1);
    expect(lines.map((line) => line.replaceAll(/ {2,}/g, "  "))).toEqual([
      `${NEWEST}  2026-11-22 00:20:05Z  next  0`,
      `${OVERTAKEN}  -  0`,
      `${CURRENT}  2026-10-01 08:00:00Z  now  999,999`,
      "p  2025-10-01 08:00:00Z  1",
    ]);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });
});
