import { beforeEach, describe, expect, it } from "vitest";
import { showBadge } from "../../src/admin/badge/show.ts";
import { wantedNumbers } from "../../src/admin/number-range/range-options.ts";
import { deviceId, invitationDigest } from "../../src/shared/identifiers.ts";
import { badge, invitation, signingKey } from "../../src/shared/schema.ts";
import { clearHomes } from "./support/homes.ts";
import { localHomes } from "./support/script.ts";

const { homes, database, register, admin, create, json, refusal } = await localHomes();

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

describe("badge show (contract sections 10, 12 and 20)", () => {
  const DEVICE = deviceId.parse("device-digest");
  const END = { expiresAt: "2027-01-01T00:00:00+01:00", expiresAtTime: 1 };

  it("badge show prints an issued badge, and the present state of any other number", async () => {
    const { applicationId } = await create("--first", "100", "--last", "199");
    const [key] = await database.run((orm) => orm.select().from(signingKey));
    const issued = (number: number) => ({
      ...{ number, applicationId, device: DEVICE, userId: `user-${number}`, signingKeyId: key?.id ?? 0 },
      ...{ eventId: `evt_${number}`, ordinal: number, loginSequence: number, issuedAt: 1000 },
    });
    const reserved = invitationDigest.parse("digest-of-a-token");
    const rows: (typeof badge.$inferInsert)[] = [
      { ...issued(100), metadata: JSON.stringify({ deviceModel: "iPhone 17", os: "iOS", osVersion: "26.1" }) },
      { number: 110, applicationId, invitation: reserved },
      { ...issued(120), state: "replaced", supersededAt: 2000, endedAt: 2000, change: 121, changedAt: 2000 },
      { ...issued(122), state: "revoked", change: 123, changedAt: 4000, endedAt: 4000 },
      { ...issued(123), state: "suspended", expiresAt: 5000, change: 124, changedAt: 5000 },
    ];
    const invited = { applicationId, number: 110, creatorDevice: DEVICE, createdAt: 1, ...END };
    await database.run((orm) =>
      orm.batch([
        orm.insert(invitation).values({ digest: reserved, state: "pending", ...invited }),
        ...rows.map((row) => orm.insert(badge).values(row)),
      ]),
    );
    expect(await showBadge(database, 100)).toEqual({
      ...{ number: "100", state: "active", applicationId, userId: "user-100", name: null },
      metadata: { deviceModel: "iPhone 17", os: "iOS", osVersion: "26.1" },
      ...{ issuedAt: "1970-01-01T00:00:01.000Z", changedAt: "1970-01-01T00:00:01.000Z" },
      ...{ startsAt: null, expiresAt: null, supersededAt: null, keyThumbprint: null, rebindUntil: null },
      ...{ keyId: key?.kid, eventId: "evt_100", invitation: null },
      cards: ["h10301", "h10302", "h10304", "corporate1000", "corporate1000_48"].map((format) =>
        expect.objectContaining({ format, cardNumber: 100 }),
      ),
    });
    for (const [number, expected] of [
      [110, { state: "reserved", userId: null, invitation: { state: "pending", expiresAt: END.expiresAt } }],
      [120, { state: "replaced", supersededAt: "1970-01-01T00:00:02.000Z" }],
      [122, { state: "revoked", changedAt: "1970-01-01T00:00:04.000Z" }],
      [123, { state: "expired", expiresAt: "1970-01-01T00:00:05.000Z" }],
      [199, { state: "free" }],
      [200, { state: "outside", applicationId: null }],
    ] as const) {
      const shown = await showBadge(database, number);
      expect(shown).toMatchObject({ applicationId, ...expected });
      // Neither the device nor an invitation's token.
      expect(JSON.stringify(shown)).not.toContain("digest");
    }
  });

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
