import { beforeEach, describe, expect, it } from "vitest";
import { wantedNumbers } from "../../src/admin/number-range/range-options.ts";
import { clearHomes } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

const { homes, register, admin, create, json, refusal } = await localHomes();

beforeEach(() => clearHomes(homes, register));

const createWords = (options: string) => ["application", "create", "--name", "App", ...options.split(" ")];

describe("application create --format (contract section 20)", () => {
  it.each([
    [{ format: "h10301", facility: 123 }, 8_060_929, 8_126_463],
    [{ format: "h10301", facility: 0 }, 1, 65_535],
    [{ format: "h10304", facility: 65_535 }, 34_359_214_081, 34_359_738_367],
    [{ format: "corporate1000", company: 4095 }, 4_293_918_721, 4_294_967_295],
    [{ format: "h10301", facility: 11, last: 720_900 }, 720_897, 720_900],
  ] as const)("%o gives %i to %i: card number 0 is not used", (options, first, last) => {
    expect(wantedNumbers(options)).toEqual({ range: { first, last } });
    expect(wantedNumbers({ format: "h10302" })).toEqual({});
  });

  it.each([
    ["--format h10301", "h10301 needs --facility, from 0 to 255."],
    [
      "--format h10301 --company 1",
      "h10301 has no company code: leave out --company, or choose --format corporate1000.",
    ],
    ["--format corporate1000 --company 1 --facility 1", "corporate1000 has no facility code: leave out --facility"],
    ["--facility 1", "--facility needs a card format: add --format h10301 or h10304."],
    ["--format h10301 --facility 256", "h10301 has no facility 256: give --facility from 0 to 255."],
    ["--format h10301 --facility -1", '"-1" does not fit --facility. Give a whole number from 0'],
    ["--format H10301 --facility 1", '"H10301" does not fit --format. Allowed choices are h10301, h10302, h10304'],
    [
      "--format h10301 --facility 1 --first 65536 --last 65600",
      "Numbers 65536-65600 are not all in h10301 of facility 1, which has 65537-131071.",
    ],
    ["--format h10301 --facility 1 --first 70000 --last 69999", "--first 70000 is above --last 69999: swap them."],
    ["--format h10302 --first 5", "A range needs both ends"],
    [
      "--format h10302 --first 34359738367 --last 34359738368",
      "Numbers 34359738367-34359738368 are not all in h10302, which has 1-34359738367.",
    ],
  ])("%s is refused: %s", async (options, line) => {
    expect(await refusal(...createWords(options))).toContain(line);
  });

  it("an application shows the formats that its whole range fits, and its range may outgrow them", async () => {
    const { applicationId: id } = await create(..."--format h10301 --facility 31 --last 2031700".split(" "));
    const grownTo = (last: number) => json("application", "update", id, "--last", String(last));
    expect(await grownTo(2_097_151)).toMatchObject({ cardFormats: expect.arrayContaining(["h10301"]) });
    expect(await grownTo(2_097_152)).toMatchObject({ cardFormats: ["h10302", "corporate1000_48"] });
    const { stdout } = await admin("application", "show", id);
    expect(stdout).toMatch(/^ {2}Card formats +h10302, corporate1000_48$/m);
  });
});

describe("badge show (contract section 20)", () => {
  it("badge show prints a number's card encoding in each format that it fits", async () => {
    const frame = { bits: "0010110000100101000101011100101000000", hex: "0584A2B940" };
    const corporate = { format: "corporate1000_48", siteCode: 1412, cardNumber: 5_332_128, hex: "400584A2B941" };
    expect(await json("badge", "show", "11850046624")).toMatchObject({
      cards: [
        { format: "h10302", siteCode: null, cardNumber: 11_850_046_624, ...frame },
        { format: "h10304", siteCode: 22_602, cardNumber: 89_248, ...frame },
        corporate,
      ],
    });
  });

  it("badge show prints the encodings within 80 columns, or that the number fits no format", async () => {
    const page = async (number: string) => (await admin("badge", "show", number)).stdout;
    const fitting = await page("2031953");
    expect(fitting).toContain("  h10301, 26 bits: site code 31, card number 337\n");
    expect(fitting).toContain("  10001111100000001010100011\n");
    expect(fitting.split("\n").filter((line) => line.length > 80)).toEqual([]);
    expect(await page("9007199254740991")).toContain("The number fits no card format.\n");
  });
});
