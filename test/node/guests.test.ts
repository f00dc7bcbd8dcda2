import { describe, expect, it } from "vitest";
import { readGuests } from "../../src/console/visitors/guests.ts";

const ANN = { name: "Ann Lee", host: "Tom Berg", userId: "" };

describe("a pasted list of visitors", () => {
  it.each([
    ["tabs", "Ann Lee\tTom Berg\n"],
    ["semicolons", "Ann Lee;Tom Berg\r\n\r\n"],
    ["commas", "Ann Lee, Tom Berg"],
    ["a header in another order", "Host\tName\nTom Berg\tAnn Lee"],
    ["quotes", '"Ann Lee","Tom Berg"'],
  ])("is read with %s", (_name, text) => {
    expect(readGuests(text)).toEqual({ guests: [ANN], problem: null });
  });

  it("may have separators and quotes in quoted cells (RFC 4180)", () => {
    const { guests } = readGuests('"Lee, Ann","Tom ""T"" Berg",ann\nBob "Bo" Ray,Tom');
    expect(guests).toEqual([
      { name: "Lee, Ann", host: 'Tom "T" Berg', userId: "ann" },
      { name: 'Bob "Bo" Ray', host: "Tom", userId: "" },
    ]);
  });

  it("says which visitor has no name, or too long a one", () => {
    expect(readGuests("Name\tHost\nAnn\tTom\n\tTom").problem).toBe("Visitor 2 has no name.");
    expect(readGuests("a".repeat(101)).problem).toContain("more than 100 characters");
    expect(readGuests("\n").problem).toBe("Paste at least one line.");
    expect(readGuests("Ann\n".repeat(101)).problem).toContain("at most 100 at once");
  });
});
