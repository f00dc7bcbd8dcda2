import { describe, expect, it } from "vitest";
import { csvOf } from "../../src/console/parts/csv.ts";

/** What a spreadsheet makes of a line that it splits at this sign: its cells, without their quotes. */
function cellsOf(line: string, separator: string): string[] {
  const cells = [""];
  let isQuoted = false;
  for (let place = 0; place < line.length; place++) {
    const [character, cell] = [line[place] ?? "", cells.length - 1];
    if (isQuoted && character === '"' && line[place + 1] === '"') {
      cells[cell] += '"';
      place++;
    } else if (character === '"' && (isQuoted || cells[cell] === "")) {
      isQuoted = !isQuoted;
    } else if (character === separator && !isQuoted) {
      cells.push("");
    } else {
      cells[cell] += character;
    }
  }
  return cells;
}

const FORMULA = /^["'\s]*[=+\-@\uff1d\uff0b\uff0d\uff20]/;

describe("a CSV file of the console (contract section 24): no cell is a formula", () => {
  it.each([
    ...["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", '"=1"', "\u200b=1"],
    ...["\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)"],
    ...["a;=1", 'a;"=1', "a; =1", "a;\uff1d1", 'a;""=1', "a,=1", 'a,"=1', "a\t=1", "a\n=1", "a;b;=1", ";;=1", "a|=1"],
  ])("no cell is a formula when a spreadsheet splits lines at commas, semicolons or tabs: %j", (text) => {
    for (const rows of [[[text]], [["first", text, "last"]], [[text, text]]]) {
      const csv = csvOf(["A"], rows).replace("\ufeff", "");
      for (const separator of [",", ";", "\t"]) {
        const cells = csv.split(/\r\n|[\r\n]/).flatMap((line) => cellsOf(line, separator));
        for (const cell of cells) {
          const isText = cell.startsWith("'");
          expect(isText ? "text" : cell, `${JSON.stringify(csv)} at ${separator}`).not.toMatch(FORMULA);
        }
      }
    }
  });

  it("a CSV file has other texts unchanged", () => {
    const texts = ["alice", "a-b", "1;2", 'say "hi"', "a = b", "x@example.com", "\u5c71\uff0d\u5ddd", "3,5"];
    const [, line = ""] = csvOf(["A"], [texts]).split("\r\n");
    expect(cellsOf(line, ",")).toEqual(texts);
  });
});
