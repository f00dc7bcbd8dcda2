import { describe, expect, it } from "vitest";
import { barLines, shorten, tableLines } from "../../src/admin/command-line/output.ts";

describe("the output of the administration script (contract section 10)", () => {
  it("counts are aligned also after characters that are two columns wide, or none", () => {
    const lines = barLines([
      { label: "iPhone 17", count: 3 },
      { label: "携帯電話 📱", count: 2 },
      { label: "Cafe\u0301", count: 1 },
    ]).split("\n");
    // In columns: five of the characters of the second label take two each, one of the third takes none.
    expect(lines.map((line) => line.length)).toEqual([42, 42 - 5 + 1, 42 + 1]);
  });

  it("texts are shortened to columns, not to characters, and no character is cut in two", () => {
    expect(shorten("abcdef", 5)).toBe("abcd…");
    expect(shorten("携帯電話", 5)).toBe("携帯…");
    expect(shorten("携帯電話", 8)).toBe("携帯電話");
    expect(shorten("📱📱", 3)).toBe("📱…");
  });

  it("the columns of a table are aligned", () => {
    expect(
      tableLines(
        ["A", "B"],
        [
          ["携帯", 1],
          ["x", 10],
        ],
        "none",
      )
        .split("\n")
        .slice(1),
    ).toEqual(["携帯   1", "x     10"]);
  });
});
