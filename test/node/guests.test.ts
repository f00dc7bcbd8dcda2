import { describe, expect, it } from "vitest";
import { readGuests } from "../../src/console/visitors/guests.ts";
import { readListTime } from "../../src/console/visitors/list-times.ts";

/** A Friday, in the zone of the machine. */
const NOW = new Date(2027, 0, 15, 8, 30);
const at = (day: number, hour: number, minute = 0, month = 0) => new Date(2027, month, day, hour, minute).toISOString();
const COMMON = { startsAt: null, expiresAt: at(15, 18) };
const read = (text: string) => readGuests(text, COMMON, NOW);
const ANN = { name: "Ann Lee", host: "Tom Berg", userId: "", ...COMMON };

describe("a pasted list of visitors (contract section 24)", () => {
  it.each([
    ["tabs", "Name\tHost\nAnn Lee\tTom Berg\n"],
    ["semicolons", "Name;Host\r\nAnn Lee;Tom Berg\r\n\r\n"],
    ["commas", "Name, Host\nAnn Lee, Tom Berg"],
    ["columns in another order", "Host\tName\nTom Berg\tAnn Lee"],
    ["German headers", "Besucher\tGastgeber\nAnn Lee\tTom Berg"],
    ["quotes", '"Name","Host"\n"Ann Lee","Tom Berg"'],
  ])("a pasted list is read with %s", (_name, text) => {
    expect(read(text)).toEqual({ guests: [ANN], problem: null });
  });

  it("a pasted list may have only names, without a header, and separators and quotes in quoted cells (RFC 4180)", () => {
    expect(read("Ann Lee\nBob Ray").guests?.map(({ name }) => name)).toEqual(["Ann Lee", "Bob Ray"]);
    expect(read("Ann\n".repeat(100)).guests).toHaveLength(100);
    const { guests } = read('name,host,user\n"Lee, Ann","Tom ""T"" Berg",ann\nBob "Bo" Ray,Tom,');
    expect(guests).toEqual([
      { ...COMMON, name: "Lee, Ann", host: 'Tom "T" Berg', userId: "ann" },
      { ...COMMON, name: 'Bob "Bo" Ray', host: "Tom", userId: "" },
    ]);
  });

  it("a visitor has the times of the list's columns, or else those of the form", () => {
    const { guests } = read(
      "Name;Von;Bis\nAnn;16.01.2027 9:00;16.01.2027 17:30\nBob;;\nCy;10:00;2 pm\nDi;2027-02-01;2027-02-02",
    );
    expect(guests?.map(({ startsAt, expiresAt }) => [startsAt, expiresAt])).toEqual([
      [at(16, 9), at(16, 17, 30)],
      [null, COMMON.expiresAt],
      [at(15, 10), at(15, 14)],
      [at(1, 0, 0, 1), at(3, 0, 0, 1)],
    ]);
  });

  it.each([
    ["a column that is not known, by its name", "Name\tFirma\nAnn\tACME", "The column “Firma” is not known."],
    ["a column that stands there twice", "Name\tGast\nAnn\tBob", "Two columns are the same: name."],
    ["columns without names of visitors", "User\tHost\nann\tTom", "no column with the visitors' names"],
    ["several columns that nothing names", "Ann Lee\tTom Berg", "The first line must name the columns"],
    ["a visitor without a name", "Name\tHost\nAnn\tTom\n\tTom", "Visitor 2: there is no name."],
    ["a name that is too long", "a".repeat(101), "more than 100 characters"],
    ["a cell too many", "Name\tHost\nAnn\tTom\t9:00", "Visitor 1: the line has more cells"],
    ["a day that may be two", "Name\tFrom\nAnn\t1/2/2027", "“1/2/2027” can mean two days"],
    ["a time that is none", "Name\tUntil\nAnn\tsoon", "“soon” is not a time"],
    ["a day that is none", "Name\tUntil\nAnn\t31.02.2027", "There is no such time"],
    ["an end that has passed", "Name\tUntil\nAnn\t8:00", "Visitor 1: “until” has passed."],
    ["an end before its start", "Name\tFrom\tUntil\nAnn\t11:00\t10:00", "“until” is not after “from”"],
    ["nobody", "\n", "Paste at least one line."],
    ["a header alone", "Name\tHost", "Paste at least one visitor"],
    ["over a hundred", "Ann\n".repeat(101), "at most 100 at once"],
  ])("a pasted list is refused as a whole for %s", (_name, text, problem) => {
    expect(read(text)).toEqual({ guests: null, problem: expect.stringContaining(problem) });
  });
});

describe("a time of a pasted list", () => {
  it.each([
    ["2027-01-31 8:05", at(31, 8, 5)],
    ["2027-01-31T08:05:00", at(31, 8, 5)],
    ["31.1.2027, 8.05 Uhr", at(31, 8, 5)],
    ["8:05", at(15, 8, 5)],
    ["17", at(15, 17)],
    ["12 am", at(15, 0)],
    ["12:30 p.m.", at(15, 12, 30)],
  ])("the time %s is read in the user's zone", (text, expected) => {
    const time = readListTime(text, NOW, false);
    expect(time.ok && time.at.toISOString()).toBe(expected);
  });

  it.each(["25:00", "24:30", "8:60", "13 pm", "2027-13-01", "tomorrow", "2027-01-31T08:05Z"])(
    "%s is not accepted as a time",
    (text) => {
      expect(readListTime(text, NOW, false).ok).toBe(false);
    },
  );
});
