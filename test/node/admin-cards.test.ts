import { beforeEach, describe, expect, it } from "vitest";
import { createApplication } from "../../src/admin/application/create.ts";
import { type RangeOptions, wantedNumbers } from "../../src/admin/number-range/range-options.ts";
import { clearHomes } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

const { homes, register, submit, admin, create, json, refusal } = await localHomes();

beforeEach(() => clearHomes(homes, register));

const createWords = (options: string) => ["application", "create", "--name", "App", ...options.split(" ")];

describe("application create --format (contract section 20)", () => {
  it.each([
    [{ format: "h10301", facility: 123 }, 8_060_929, 8_126_463],
    [{ format: "h10301", facility: 0 }, 1, 65_535],
    [{ format: "h10301", facility: 255 }, 16_711_681, 16_777_215],
    [{ format: "h10304", facility: 22_602 }, 11_849_957_377, 11_850_481_663],
    [{ format: "h10304", facility: 65_535 }, 34_359_214_081, 34_359_738_367],
    [{ format: "corporate1000", company: 1337 }, 1_401_946_113, 1_402_994_687],
    [{ format: "corporate1000", company: 4095 }, 4_293_918_721, 4_294_967_295],
    [{ format: "h10301", facility: 9, first: 590_000, last: 590_009 }, 590_000, 590_009],
    [{ format: "h10301", facility: 10, first: 655_370 }, 655_370, 720_895],
    [{ format: "h10301", facility: 11, last: 720_900 }, 720_897, 720_900],
    [{ format: "h10302", first: 1, last: 34_359_738_367 }, 1, 34_359_738_367],
  ] as const)("%o gives %i to %i: card number 0 is not used", (options, first, last) => {
    expect(wantedNumbers(options)).toEqual({ range: { first, last } });
  });

  it("application create --format creates an application with the format's range", async () => {
    const range = { firstNumber: 1_401_946_113, lastNumber: 1_401_946_200 };
    expect(await create(..."--format corporate1000 --company 1337 --last 1401946200".split(" "))).toMatchObject(range);
  });

  it.each([
    ["--format h10301", "h10301 needs --facility, from 0 to 255."],
    ["--format h10304", "h10304 needs --facility, from 0 to 65535."],
    ["--format corporate1000", "corporate1000 needs --company, from 0 to 4095."],
    [
      "--format h10301 --company 1",
      "h10301 has no company code: leave out --company, or choose --format corporate1000.",
    ],
    ["--format h10301 --facility 1 --company 1", "h10301 has no company code"],
    ["--format corporate1000 --company 1 --facility 1", "corporate1000 has no facility code: leave out --facility"],
    ["--format h10302 --facility 1", "h10302 has no facility code: leave out --facility"],
    ["--facility 1", "--facility needs a card format: add --format h10301 or h10304."],
    ["--company 1 --first 1 --last 2", "--company needs a card format: add --format corporate1000."],
    ["--format h10301 --facility 256", "h10301 has no facility 256: give --facility from 0 to 255."],
    ["--format h10304 --facility 65536", "h10304 has no facility 65536: give --facility from 0 to 65535."],
    ["--format corporate1000 --company 4096", "corporate1000 has no company 4096: give --company from 0 to 4095."],
    ["--format h10301 --facility -1", '"-1" does not fit --facility. Give a whole number from 0'],
    ["--format h10301 --facility 1.5", '"1.5" does not fit --facility. Give a whole number from 0'],
    ["--format H10301 --facility 1", '"H10301" does not fit --format. Allowed choices are h10301, h10302, h10304'],
    ["--format corporate1000_48 --company 1", '"corporate1000_48" does not fit --format.'],
    [
      "--format h10301 --facility 1 --first 65536 --last 65600",
      "Numbers 65536-65600 are not all in h10301 of facility 1, which has 65537-131071.",
    ],
    ["--format h10301 --facility 1 --last 131072", "Numbers 65537-131072 are not all in h10301 of facility 1"],
    ["--format h10301 --facility 1 --last 60000", "Numbers 65537-60000 are not all in h10301 of facility 1"],
    ["--format h10301 --facility 1 --first 70000 --last 69999", "--first 70000 is above --last 69999: swap them."],
    ["--format h10302 --first 5", "A range needs both ends"],
    [
      "--format h10302 --first 34359738367 --last 34359738368",
      "Numbers 34359738367-34359738368 are not all in h10302, which has 1-34359738367.",
    ],
  ])("%s is refused: %s", async (options, line) => {
    expect(await refusal(...createWords(options))).toContain(line);
  });

  it("h10302 and no format take the next default block as long as one fits the 35 bits of H10302", async () => {
    const range = async (options: RangeOptions) => {
      const { firstNumber, lastNumber } = await createApplication(homes, submit, {
        name: "App",
        ...wantedNumbers(options),
      });
      return [firstNumber, lastNumber];
    };
    await range({ first: 1_000_000_000, last: 34_339_999_999 });
    expect(await range({ format: "h10302" })).toEqual([34_340_000_000, 34_349_999_999]);
    await expect(range({ format: "h10302" })).rejects.toThrow("No block of numbers up to 34359738367 is free");
    expect(await range({ first: 34_350_000_000, last: 34_359_738_367 })).toEqual([34_350_000_000, 34_359_738_367]);
    await expect(range({})).rejects.toThrow("No block of numbers up to 34359738367 is free");
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
