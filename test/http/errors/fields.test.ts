import { afterEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { call, callServer, requestBadge, serverHeaders, sign } from "../../support/http.ts";
import { ascii, outcome } from "../support/draft.ts";
import { hoursAhead } from "../support/invitations.ts";

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

  it("metadata is not listed if none was sent: absent, null, empty and blank count as missing", async () => {
    for (const nothing of [undefined, null, "", " \t"]) {
      const application = await createApplication();
      const { body } = await request(application, nothing);
      expect(await listed(application)).toEqual([{ id: body.badgeId, userId: "user" }]);
    }
  });

  it("metadata has the four known fields, unknown ones are dropped, and missing ones are not stored", async () => {
    const application = await createApplication();
    const known = { deviceModel: "Phone 7", os: "iOS", osVersion: "19.1", sdkVersion: "2.0.0" };
    await request(application, { ...known, model: "x", nested: { os: "y" }, constructor: "z" });
    expect(await metadataOf(application)).toEqual(known);
    // A later request's metadata replaces all of it, and a request without any leaves it.
    await request(application, { os: "iOS", osVersion: null, deviceModel: "", sdkVersion: " \n" });
    for (const nothing of [undefined, null, ""]) await request(application, nothing);
    expect(await metadataOf(application)).toEqual({ os: "iOS" });
  });

  it("metadata is stored as it was sent, up to 256 characters a field and 1,024 bytes together", async () => {
    const longest = "x".repeat(256);
    for (const metadata of [
      { deviceModel: longest, os: longest, osVersion: longest, sdkVersion: longest },
      { deviceModel: EMOJI.repeat(256) },
      { os: EMOJI.repeat(128), sdkVersion: "\u00e9".repeat(256) },
      { deviceModel: EMOJI, os: " \u00e9 'quoted' \u0080 ", osVersion: "__proto__", sdkVersion: "0" },
    ]) {
      const application = await createApplication();
      expect((await request(application, metadata)).status).toBe(201);
      expect(ascii(await metadataOf(application))).toBe(ascii(metadata));
    }
  });

  it("metadata is refused when it is not an object of such strings", async () => {
    const application = await createApplication();
    const notObjects = ["text", 17, true, false, [], [{ os: "iOS" }]];
    const notStrings = [17, true, [], {}, ["iOS"]].map((os) => ({ os }));
    const texts = ["x".repeat(257), EMOJI.repeat(257), "\ud800", ...CONTROL_CHARACTERS.map((one) => `a${one}b`)];
    const tooLong = ["deviceModel", "os", "osVersion"].map((field) => ({ [field]: "x".repeat(257) }));
    const badStrings = [...tooLong, ...texts.map((sdkVersion) => ({ sdkVersion }))];
    for (const metadata of [...notObjects, ...notStrings, ...badStrings]) {
      expect(outcome(await request(application, metadata))).toBe("422 INVALID_METADATA");
    }
    expect(await listed(application)).toEqual([]);
  });

  it("metadata is refused when its fields have more than 1,024 bytes of UTF-8 together", async () => {
    const application = await createApplication();
    for (const metadata of [
      { deviceModel: EMOJI.repeat(256), os: "x" },
      { os: EMOJI.repeat(128), osVersion: "\u20ac".repeat(171) },
      { deviceModel: EMOJI.repeat(256), os: EMOJI.repeat(256), osVersion: EMOJI.repeat(256), sdkVersion: "x" },
    ]) {
      expect(outcome(await request(application, metadata))).toBe("422 INVALID_METADATA");
    }
    expect(await listed(application)).toEqual([]);
  });
});

describe("userId (contract sections 2 and 7)", () => {
  it("a userId may have 255 characters and 512 bytes of UTF-8, and is stored as it was sent", async () => {
    const application = await createApplication();
    const accents = "a\u0301 \u00e1";
    const longest = ["u".repeat(255), "\u00e9".repeat(255), EMOJI.repeat(128), `${"\u20ac".repeat(170)}\u00e9`];
    const userIds = [...longest, " padded ", "0", accents, "__proto__", "...", "../badges"];
    for (const userId of userIds) expect((await requestBadge(application, "phone", { userId })).status).toBe(201);
    const kept = z.array(z.looseObject({ userId: z.string() })).parse(await listed(application));
    expect(kept.map(({ userId }) => ascii(userId))).toEqual(userIds.map(ascii));
  });

  it("a userId is refused when it is longer, not a string, a text that cannot be stored, or one that a path cannot contain", async () => {
    const application = await createApplication();
    const tooLong = ["u".repeat(256), `${EMOJI.repeat(128)}u`, "\u20ac".repeat(171), EMOJI.repeat(255)];
    const strings = [".", "..", ...tooLong, "\ud83d", "\ude00\ud83d"];
    const controlled = CONTROL_CHARACTERS.map((one) => `a${one}b`);
    for (const userId of [...strings, ...controlled, 0, 17, 1e308, true, false, [], ["user"], {}, { id: "user" }]) {
      expect(outcome(await requestBadge(application, "phone", { userId }))).toBe("422 INVALID_USERID");
    }
    expect(await listed(application)).toEqual([]);
  });

  it("a userId has the same limits in a path and in an invitation", async () => {
    const application = await createApplication();
    const [headers, tooLong] = [serverHeaders(application), `${EMOJI.repeat(128)}u`];
    for (const step of ["block", "unblock", "erase"]) {
      const path = `/v1/users/${encodeURIComponent(tooLong)}/${step}`;
      expect(outcome(await call("PATCH", path, { headers }))).toBe("422 INVALID_USERID");
    }
    const body = { expiresAt: hoursAhead(1), userId: tooLong };
    const invited = await call("POST", "/v1/invitation", { headers: { ...headers, udid: "terminal" }, body });
    expect(outcome(invited)).toBe("422 INVALID_USERID");
  });
});

describe("udid (contract sections 2 and 7)", () => {
  it("a udid may have 255 printable ASCII characters", async () => {
    const application = await createApplication();
    const printable = Array.from({ length: 95 }, (_, place) => String.fromCharCode(32 + place)).join("");
    for (const udid of ["u", "u".repeat(255), `x${printable}x`]) {
      expect((await requestBadge(application, udid, { userId: "user" })).status).toBe(201);
      expect((await sign(application, udid, { base64: "aGVsbG8=" })).status).toBe(200);
    }
  });

  it("a udid is refused when it is longer or has any other character, once the body's fields are there", async () => {
    const application = await createApplication();
    for (const udid of ["u".repeat(256), "a\u0001", "a\u007fb", "a\tb", "d\u00e9vice", EMOJI]) {
      expect(outcome(await requestBadge(application, udid, {}))).toBe("422 UNDEFINED_USERID");
      expect(outcome(await requestBadge(application, udid, { userId: 17 }))).toBe("422 INVALID_UDID");
      expect(outcome(await sign(application, udid, {}))).toBe("422 UNDEFINED_BASE64");
      expect(outcome(await sign(application, udid, { base64: "aGVsbG8=" }))).toBe("422 INVALID_UDID");
    }
  });
});

describe("base64 (contract section 3)", () => {
  const base64Of = (bytes: number) => btoa("\xff".repeat(bytes));

  it("base64 is standard base64 with padding, of 4,096 bytes at most", async () => {
    const application = await createApplication();
    await requestBadge(application, "phone", { userId: "user" });
    const canonical = ["AA==", "AAA=", "AAAA", "+/+/", "/w==", "//8=", "aGVsbG8="];
    const granted = [...canonical, ...[1, 2, 3, 4094, 4095, 4096].map(base64Of)];
    for (const base64 of granted) expect(outcome(await sign(application, "phone", { base64 }))).toBe("200");
  });

  it("base64 is refused in every other form", async () => {
    const application = await createApplication();
    await requestBadge(application, "phone", { userId: "user" });
    const unpadded = ["AA", "AAA", "A", "AAAAA", "AA=", "AAAA=", "AAAA==", "A===", "====", "=", "AA==AA==", "=AAA"];
    const otherAlphabets = ["-_-_", "AA-_", "AA.=", "A,==", "\u0410AAA", "AAA\u3000", "AA%3D", "data:;base64,AAAA"];
    const whitespace = [" AAAA", "AAAA ", "AAAA\n", "AA AA", "AAAA\r\nAAAA", "AA  ", "AAAA    ", "AA\t\t", "AA\f="];
    // Bits that belong to no byte are set (RFC 4648 section 3.5): "aGVsbG8=" is the canonical form of the first.
    const stray = ["aGVsbG9=", "aGVsbG+=", "AB==", "AP==", "//==", "AAB=", "AAD=", "AA/="];
    const tooLong = [4097, 4098, 4099, 8000].map(base64Of);
    const notStrings = [17, [], ["AAAA"], {}, true];
    const texts = [...unpadded, ...otherAlphabets, ...whitespace, ...stray, ...tooLong, "AA\0\0"];
    for (const base64 of [...texts, ...notStrings]) {
      const answer = outcome(await sign(application, "phone", { base64 }));
      expect(answer, ascii(base64).slice(0, 40)).toBe("422 INVALID_BASE64");
    }
  });
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
    const accepted = [
      "2030-06-15T12:00:00.001Z",
      "2030-06-15T12:00:01Z",
      "2030-06-15T14:00:00.5+01:30",
      "2030-06-15T05:00:01-07:00",
      // As Java writes a full minute.
      "2030-06-15T12:01Z",
      "2030-06-15T14:01+02:00",
      "2030-12-31T23:59:59.999999999Z",
      "2031-06-15T12:00:00.000Z",
      "2031-06-15T13:00:00+01:00",
      // 40 characters.
      `2030-12-31T23:59:59.${"9".repeat(19)}Z`,
    ];
    expect(await answersAt(accepted)).toEqual(accepted.map((text) => `${text}: 201 echoed`));
  });

  it("expiresAt is refused without a zone, in other forms, and for a date that does not exist", async () => {
    const withoutZone = ["2030-07-01T12:00:00", "2030-07-01", "2030-07-01T12:00", "2030-07-01T12:00:00.000"];
    const otherForms = [
      "1909137600",
      "Mon, 01 Jul 2030 12:00:00 GMT",
      "tomorrow",
      "P1D",
      "2030-07-01 12:00:00Z",
      "2030-07-01T12Z",
    ];
    const noSuchTime = [
      "2030-02-30T12:00Z",
      "2030-07-01T24:00Z",
      "2030-02-30T12:00:00Z",
      "2030-13-01T12:00:00Z",
      "2030-07-01T24:00:01Z",
      "2031-02-29T00:00:00Z",
    ];
    const padded = [" 2030-07-01T12:00:00Z", "2030-07-01T12:00:00Z\n", "+002030-07-01T12:00:00Z"];
    const noStrings = [1909137600, 1909137600000, true, [], ["2030-07-01T12:00:00Z"], {}];
    const tooLong = [
      `2030-12-31T23:59:59.${"9".repeat(20)}Z`,
      `2030-12-31T23:59:59.${"9".repeat(15)}+01:00`,
      `2030-12-31T23:59:59.${"9".repeat(16_000)}Z`,
    ];
    const refused = [...tooLong, ...withoutZone, ...otherForms, ...noSuchTime, ...padded, ...noStrings];
    expect(await answersAt(refused)).toEqual(refused.map((text) => `${String(text)}: 422 INVALID_EXPIRESAT`));
  });

  it("expiresAt is refused when it is not in the future, or more than 365 days ahead", async () => {
    const past = [NOW, "2030-06-15T11:59:59.999Z", "2030-06-15T13:00:00+01:00", "1970-01-01T00:00:00Z"];
    const far = ["2031-06-15T12:00:00.001Z", "2031-06-15T12:00:00-00:01", "9999-12-31T23:59:59Z"];
    const refused = [...past, ...far];
    expect(await answersAt(refused)).toEqual(refused.map((text) => `${text}: 422 INVALID_EXPIRESAT`));
  });
});

describe("a date-time (contract section 7)", () => {
  it("a date-time is of the years 1970 to 9999, as it is written and in UTC", async () => {
    const application = await createApplication();
    const headers = serverHeaders(application);
    const { body } = await requestBadge(application, "phone", { userId: "user" });
    const setEnd = async (expiresAt: string) =>
      outcome(await call("PATCH", `/v1/badges/${body.badgeId}`, { headers, body: { expiresAt } }));
    for (const time of [
      "1970-01-01T00:00:00Z",
      "1970-01-01T00:00Z",
      "9999-12-31T23:59:59.999Z",
      "9999-12-31T23:59:59+01:00",
    ]) {
      expect(await setEnd(time), time).toBe("200");
    }
    for (const time of [
      "9999-12-31T23:30:00-01:00",
      "9999-12-31T23:30-01:00",
      "0000-01-01T00:00:00+01:00",
      "0001-01-01T00:00:00Z",
      "1969-12-31T23:59:59.999Z",
      "1970-01-01T00:59:59+01:00",
      "1969-12-31T23:30:00-01:00",
    ]) {
      expect(await setEnd(time), time).toBe("422 INVALID_EXPIRESAT");
    }
  });
});
