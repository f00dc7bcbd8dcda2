import { afterEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { issueTo, setEnd } from "../../badges/life-support.ts";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { call, callServer, outcome, requestBadge, sign } from "../../support/http.ts";
import { ascii } from "../support/draft.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** C0 and DEL. */
const CONTROL_CHARACTERS = [...Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)), "\u007f"];
const EMOJI = "\u{1f600}";

async function listed(application: TestApplication): Promise<unknown> {
  return (await callServer(application, "GET", "/v1/badges")).body.badges;
}

describe("metadata (contract sections 1, 2 and 7)", () => {
  const request = (application: TestApplication, metadata: unknown) =>
    requestBadge(application, "phone", { userId: "user", metadata });

  async function metadataOf(application: TestApplication): Promise<unknown> {
    const [badge] = z.tuple([z.looseObject({ metadata: z.unknown() })]).parse(await listed(application));
    return badge.metadata;
  }

  it("metadata has the four known fields, unknown ones are dropped, and missing ones are not stored", async () => {
    const application = await createApplication();
    const { body } = await request(application, " \t");
    for (const nothing of [undefined, null, ""]) await request(application, nothing);
    expect(await listed(application)).toEqual([{ id: body.badgeId, userId: "user" }]);
    const known = { deviceModel: "Phone 7", os: "iOS", osVersion: "19.1", sdkVersion: "2.0.0" };
    await request(application, { ...known, model: "x", nested: { os: "y" }, constructor: "z" });
    expect(await metadataOf(application)).toEqual(known);
    // A later request's metadata replaces all of it, and a request without any leaves it.
    await request(application, { os: "iOS", osVersion: null, deviceModel: "", sdkVersion: " \n" });
    for (const nothing of [undefined, null, ""]) await request(application, nothing);
    expect(await metadataOf(application)).toEqual({ os: "iOS" });
  });

  it("metadata is stored as it was sent, up to 256 characters a field and 1,024 bytes together", async () => {
    const application = await createApplication();
    const longest = "x".repeat(256);
    for (const metadata of [
      { deviceModel: longest, os: longest, osVersion: longest, sdkVersion: longest },
      { os: EMOJI.repeat(128), sdkVersion: "\u00e9".repeat(256) },
      { deviceModel: EMOJI.repeat(256) },
      { deviceModel: EMOJI, os: " \u00e9 'quoted' \u0080 ", osVersion: "__proto__", sdkVersion: "0" },
    ]) {
      expect((await request(application, metadata)).status).toBeLessThan(300);
      expect(ascii(await metadataOf(application))).toBe(ascii(metadata));
    }
  });

  it("metadata is refused when it is not an object of such strings, or has more than 1,024 bytes of UTF-8 together", async () => {
    const application = await createApplication();
    const notObjects = ["text", 17, true, false, [], [{ os: "iOS" }]];
    const texts = ["x".repeat(257), EMOJI.repeat(257), "\ud800", ...CONTROL_CHARACTERS.map((one) => `a${one}b`)];
    const notSuchStrings = [17, true, [], {}, ["iOS"], ...texts].map((os) => ({ os }));
    const tooLong = ["deviceModel", "osVersion", "sdkVersion"].map((field) => ({ [field]: "x".repeat(257) }));
    const tooMany = [
      { deviceModel: EMOJI.repeat(256), os: "x" },
      { os: EMOJI.repeat(128), osVersion: "\u20ac".repeat(171) },
    ];
    for (const metadata of [...notObjects, ...notSuchStrings, ...tooLong, ...tooMany]) {
      expect(outcome(await request(application, metadata))).toBe("422 INVALID_METADATA");
    }
    expect(await listed(application)).toEqual([]);
  });
});

it("a userId has at most 255 characters and 512 bytes of UTF-8, can be named in a path, and is stored as it was sent (contract sections 2 and 7)", async () => {
  const application = await createApplication();
  const longest = ["u".repeat(255), "\u00e9".repeat(255), EMOJI.repeat(128), `${"\u20ac".repeat(170)}\u00e9`];
  const userIds = [...longest, " padded ", "0", "a\u0301 \u00e1", "__proto__", "...", "../badges"];
  for (const userId of userIds) expect((await requestBadge(application, "phone", { userId })).status).toBe(201);
  const tooLong = ["u".repeat(256), `${EMOJI.repeat(128)}u`, "\u20ac".repeat(171)];
  const texts = [".", "..", ...tooLong, "\ud83d", "\ude00\ud83d", ...CONTROL_CHARACTERS.map((one) => `a${one}b`)];
  for (const userId of [...texts, 0, 17, 1e308, true, false, [], ["user"], {}]) {
    expect(outcome(await requestBadge(application, "tablet", { userId }))).toBe("422 INVALID_USERID");
  }
  const kept = z.array(z.looseObject({ userId: z.string() })).parse(await listed(application));
  expect(kept.map(({ userId }) => ascii(userId))).toEqual(userIds.map(ascii));
});

it("a udid has at most 255 printable ASCII characters (contract sections 2 and 7)", async () => {
  const application = await createApplication();
  const printable = Array.from({ length: 95 }, (_, place) => String.fromCharCode(32 + place)).join("");
  for (const udid of ["u", "u".repeat(255), `x${printable}x`]) {
    expect((await requestBadge(application, udid, { userId: "user" })).status).toBe(201);
    expect((await sign(application, udid, { base64: "aGVsbG8=" })).status).toBe(200);
  }
  for (const udid of ["u".repeat(256), "a\u0001", "a\u007fb", "a\tb", "d\u00e9vice", EMOJI]) {
    expect(outcome(await requestBadge(application, udid, { userId: "user" }))).toBe("422 INVALID_UDID");
    expect(outcome(await sign(application, udid, { base64: "aGVsbG8=" }))).toBe("422 INVALID_UDID");
  }
});

it("base64 is standard base64 with padding, of 4,096 bytes at most, and refused in every other form (contract section 3)", async () => {
  const application = await createApplication();
  const base64Of = (bytes: number) => btoa("\xff".repeat(bytes));
  // As many as may sign at once: each may call 60 times a minute.
  const phones = ["one", "two"];
  for (const phone of phones) await requestBadge(application, phone, { userId: "user" });
  const canonical = ["AA==", "AAA=", "AAAA", "+/+/", "/w==", "//8=", "aGVsbG8="];
  const unpadded = ["AA", "AAA", "A", "AAAAA", "AA=", "AAAA=", "AAAA==", "A===", "====", "=", "AA==AA==", "=AAA"];
  const otherAlphabets = ["-_-_", "AA-_", "AA.=", "\u0410AAA", "AA%3D", "data:;base64,AAAA", "AA\0\0"];
  const whitespace = [" AAAA", "AAAA\n", "AA AA", "AAAA\r\nAAAA", "AA  ", "AA\t\t", "AA\f="];
  // Bits that belong to no byte are set (RFC 4648 section 3.5): "aGVsbG8=" is the canonical form of the first.
  const stray = ["aGVsbG9=", "aGVsbG+=", "AB==", "//==", "AAB=", "AA/="];
  const refused = [...unpadded, ...otherAlphabets, ...whitespace, ...stray, ...[4097, 4098, 4099].map(base64Of)];
  for (const [bodies, expected] of [
    [[...canonical, ...[1, 2, 3, 4094, 4095, 4096].map(base64Of)], "200"],
    [[...refused, 17, [], ["AAAA"], {}, true], "422 INVALID_BASE64"],
  ] as const) {
    for (const [place, base64] of bodies.entries()) {
      const answer = await sign(application, phones[place % 2] ?? "", { base64 });
      expect(outcome(answer), ascii(base64).slice(0, 40)).toBe(expected);
    }
  }
});

describe("expiresAt (contract section 5)", () => {
  const NOW = "2030-06-15T12:00:00.000Z";

  async function answersAt(texts: readonly unknown[]): Promise<string[]> {
    vi.setSystemTime(NOW);
    const { id } = await createApplication();
    const answers: string[] = [];
    for (const [place, expiresAt] of texts.entries()) {
      const headers = { applicationid: id, udid: `device ${place % 10}` };
      const answer = await call("POST", "/v1/invitation", { headers, body: { expiresAt } });
      const echoed = answer.body.expiresAt === expiresAt ? " echoed" : "";
      answers.push(`${String(expiresAt)}: ${outcome(answer)}${echoed}`);
    }
    return answers;
  }

  it("expiresAt is ISO 8601 with a zone, and returned exactly as it was sent", async () => {
    const inSeconds = ["2030-06-15T12:00:00.001Z", "2030-06-15T12:00:01Z", "2030-12-31T23:59:59.999999999Z"];
    const inZones = ["2030-06-15T14:00:00.5+01:30", "2030-06-15T05:00:01-07:00"];
    // As Java writes a full minute.
    const inMinutes = ["2030-06-15T12:01Z", "2030-06-15T14:01+02:00"];
    const latest = ["2031-06-15T12:00:00.000Z", "2031-06-15T13:00:00+01:00"];
    const of40Characters = `2030-12-31T23:59:59.${"9".repeat(19)}Z`;
    const accepted = [...inSeconds, ...inZones, ...inMinutes, ...latest, of40Characters];
    expect(await answersAt(accepted)).toEqual(accepted.map((text) => `${text}: 201 echoed`));
  });

  it("expiresAt is refused without a zone, in other forms, for a date that does not exist, when it is not in the future, and more than 365 days ahead", async () => {
    const withoutZone = ["2030-07-01T12:00:00", "2030-07-01", "2030-07-01T12:00", "2030-07-01T12:00:00.000"];
    const otherForms = ["1909137600", "Mon, 01 Jul 2030 12:00:00 GMT", "tomorrow"];
    const nearForms = ["2030-07-01 12:00:00Z", "2030-07-01T12Z"];
    const noSuchDate = ["2030-02-30T12:00Z", "2031-02-29T00:00:00Z", "2030-13-01T12:00:00Z"];
    const noSuchTime = ["2030-07-01T24:00Z", "2030-07-01T24:00:01Z"];
    const padded = [" 2030-07-01T12:00:00Z", "2030-07-01T12:00:00Z\n", "+002030-07-01T12:00:00Z"];
    const noStrings = [1909137600, 1909137600000, true, [], ["2030-07-01T12:00:00Z"], {}];
    const tooLong = [20, 16_000].map((digits) => `2030-12-31T23:59:59.${"9".repeat(digits)}Z`);
    const past = [NOW, "2030-06-15T11:59:59.999Z", "2030-06-15T13:00:00+01:00", "1970-01-01T00:00:00Z"];
    const far = ["2031-06-15T12:00:00.001Z", "2031-06-15T12:00:00-00:01", "9999-12-31T23:59:59Z"];
    const inTime = [tooLong, withoutZone, otherForms, nearForms, noSuchDate, noSuchTime, padded, noStrings];
    const refused = [...inTime, past, far].flat();
    expect(await answersAt(refused)).toEqual(refused.map((text) => `${String(text)}: 422 INVALID_EXPIRESAT`));
  });
});

it("a date-time is of the years 1970 to 9999, as it is written and in UTC (contract section 7)", async () => {
  const application = await createApplication();
  const badge = await issueTo(application, "phone", "user");
  const first = ["1970-01-01T00:00:00Z", "1970-01-01T00:00Z"];
  const last = ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59+01:00"];
  for (const time of [...first, ...last]) expect(outcome(await setEnd(application, badge, time)), time).toBe("200");
  const later = ["9999-12-31T23:30:00-01:00", "9999-12-31T23:30-01:00"];
  const before = ["0000-01-01T00:00:00+01:00", "1969-12-31T23:59:59.999Z"];
  const before1970 = [...before, "1970-01-01T00:59:59+01:00", "1969-12-31T23:30:00-01:00"];
  for (const time of [...later, ...before1970])
    expect(outcome(await setEnd(application, badge, time)), time).toBe("422 INVALID_EXPIRESAT");
});
