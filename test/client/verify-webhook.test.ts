import { describe, expect, it } from "vitest";
import { ServerClient, verifyWebhook } from "../../src/client/index.ts";
import { BASE_URL, signedAsService, utf8 } from "./support.ts";

const NOW_SECONDS = 1_800_000_000;
const now = NOW_SECONDS * 1000;
const EVENT_ID = "evt_01k5gqz3v0abcdefghjkmnpqrs";
const EVENT = {
  id: EVENT_ID,
  event: "badge:created",
  createdAt: "2027-01-15T08:00:00.000Z",
  data: { id: "1000000007", userId: "älice ✓", metadata: { deviceModel: "Pixel 9", os: "Android" } },
};
const CREATED = JSON.stringify(EVENT);

const REVOKED = { id: "7", userId: "a", state: "revoked" };

const signed = (secrets: readonly string[], body = CREATED, timestampSeconds = NOW_SECONDS) =>
  signedAsService({ eventId: EVENT_ID, timestampSeconds, body, secrets });

describe("a genuine webhook is accepted (contract section 8)", () => {
  it("a genuine webhook is accepted with its event, typed", async () => {
    const result = await verifyWebhook({ headers: await signed(["s"]), body: CREATED, secrets: "s", now });
    expect(result).toEqual({ ok: true, eventId: EVENT_ID, kind: "badge:created", event: EVENT });
  });

  it.each([
    ["text", (text: string) => text],
    ["bytes", (text: string) => utf8(text)],
    ["an ArrayBuffer", (text: string) => utf8(text).buffer],
    ["part of a larger buffer", (text: string) => utf8(`--${text}--`).subarray(2, -2)],
  ])("a genuine webhook is accepted as %s", async (_name, form) => {
    const result = await verifyWebhook({ headers: await signed(["s"]), body: form(CREATED), secrets: "s", now });
    expect(result).toMatchObject({ ok: true, event: EVENT });
  });

  it("a genuine webhook is accepted with the headers of fetch, and with those of node:http", async () => {
    const sent = await signed(["s"]);
    const lowerCase = Object.fromEntries(Object.entries(sent).map(([name, value]) => [name.toLowerCase(), value]));
    for (const headers of [new Headers(sent), sent, { ...lowerCase, host: "example.com", "set-cookie": ["a", "b"] }]) {
      expect(await verifyWebhook({ headers, body: CREATED, secrets: "s", now })).toMatchObject({ ok: true });
    }
  });

  it("a genuine webhook is accepted with the fields that a claimed invitation adds", async () => {
    const data = { id: "8", userId: "v", invitationId: "inv_1", replacedBadgeId: "7" };
    const body = JSON.stringify({ ...EVENT, data });
    const result = await verifyWebhook({ headers: await signed(["s"], body), body, secrets: "s", now });
    expect(result).toMatchObject({ ok: true, event: { data } });
  });

  it("while two secrets are valid, a genuine webhook is accepted before and after the promotion of the new one", async () => {
    for (const live of [
      ["old", "new"],
      ["new", "old"],
    ]) {
      const headers = await signed(live);
      expect(await verifyWebhook({ headers, body: CREATED, secrets: ["old", "new"], now })).toMatchObject({ ok: true });
    }
    for (const live of [["old"], ["new"]]) {
      const headers = await signed(live);
      expect(await verifyWebhook({ headers, body: CREATED, secrets: ["new", "old"], now })).toMatchObject({ ok: true });
    }
  });

  it("a genuine webhook of another kind is accepted, without an event to handle", async () => {
    const body = JSON.stringify({
      id: EVENT_ID,
      event: "webhook:test",
      createdAt: "2027-01-15T08:00:00.000Z",
      data: {},
    });
    const result = await verifyWebhook({ headers: await signed(["s"], body), body, secrets: "s", now });
    expect(result).toEqual({ ok: true, eventId: EVENT_ID, kind: "webhook:test", event: null });
  });

  it("a genuine webhook is accepted up to five minutes early or late, or within the caller's tolerance", async () => {
    const check = async (seconds: number, toleranceSeconds?: number) => {
      const headers = await signed(["s"], CREATED, NOW_SECONDS + seconds);
      const tolerance = toleranceSeconds === undefined ? {} : { toleranceSeconds };
      const result = await verifyWebhook({ headers, body: CREATED, secrets: "s", now, ...tolerance });
      return result.ok ? "accepted" : result.reason;
    };
    expect(await check(-300)).toBe("accepted");
    expect(await check(300)).toBe("accepted");
    expect(await check(-301)).toBe("stale-timestamp");
    expect(await check(301)).toBe("stale-timestamp");
    expect(await check(-301, 301)).toBe("accepted");
    expect(await check(-1, 0)).toBe("stale-timestamp");
  });

  it("the server client accepts a genuine webhook with its own secret by default", async () => {
    const client = new ServerClient({ baseUrl: BASE_URL, applicationId: "app", applicationSecret: "s" });
    const webhook = { headers: await signed(["s"]), body: CREATED, now };
    expect(await client.verifyWebhook(webhook)).toMatchObject({ ok: true, event: EVENT });
    expect(await client.verifyWebhook({ ...webhook, secrets: ["t"] })).toMatchObject({ ok: false });
  });
});

describe("any other webhook is refused (contract section 8)", () => {
  const check = async (changes: Record<string, string | undefined>, body = CREATED, secrets = ["s"]) => {
    const headers: Record<string, string | undefined> = { ...(await signed(["s"])), ...changes };
    const result = await verifyWebhook({ headers, body, secrets, now });
    return result.ok ? "accepted" : result.reason;
  };

  it("a webhook with one changed character in the body is refused", async () => {
    expect(await check({}, CREATED.replace("1000000007", "1000000008"))).toBe("wrong-signature");
    expect(await check({}, `${CREATED} `)).toBe("wrong-signature");
    expect(await check({}, "")).toBe("wrong-signature");
  });

  it("a webhook signed with another secret is refused", async () => {
    expect(await check({}, CREATED, ["t"])).toBe("wrong-signature");
    expect(await check({}, CREATED, ["t", "u"])).toBe("wrong-signature");
  });

  it.each(["webhook-id", "webhook-timestamp", "webhook-signature", "Signature"])(
    "a webhook without %s is refused",
    async (name) => {
      expect(await check({ [name]: undefined })).toBe("missing-header");
    },
  );

  it("a webhook with a changed ID or time is refused", async () => {
    expect(await check({ "webhook-id": "evt_other" })).toBe("wrong-signature");
    expect(await check({ "webhook-timestamp": String(NOW_SECONDS + 1) })).toBe("wrong-signature");
  });

  it.each(["", "soon", "1e9", "-1", "1800000000.5", " 1800000000"])(
    "a webhook with the time %j is refused",
    async (timestamp) => {
      expect(await check({ "webhook-timestamp": timestamp })).toBe("malformed-timestamp");
    },
  );

  it("a webhook with only one of the two signatures valid is refused", async () => {
    const other = await signed(["t"]);
    expect(await check({ "webhook-signature": other["webhook-signature"] })).toBe("wrong-signature");
    expect(await check({ Signature: other.Signature })).toBe("wrong-signature");
    for (const junk of ["", "v1,", "v1", "v2,AAAA", "v1,?", "v1a,AAAA"]) {
      expect(await check({ "webhook-signature": junk })).toBe("wrong-signature");
    }
    for (const junk of ["", "?", "AAAA"]) expect(await check({ Signature: junk })).toBe("wrong-signature");
  });

  it("a webhook with a repeated header is refused", async () => {
    const sent = await signed(["s"]);
    const headers = { ...sent, Signature: undefined, signature: [sent.Signature ?? "", "AAAA"] };
    expect(await verifyWebhook({ headers, body: CREATED, secrets: "s", now })).toEqual({
      ok: false,
      reason: "missing-header",
    });
  });

  it.each([
    ["not JSON", "hello"],
    ["no event", JSON.stringify({ id: EVENT_ID })],
    ["no data", JSON.stringify({ id: EVENT_ID, event: "badge:created", createdAt: "x" })],
    ["a number where a text belongs", JSON.stringify({ ...EVENT, data: { ...EVENT.data, id: 7 } })],
    ["a change of a badge without its number", JSON.stringify({ ...EVENT, event: "badge:revoked", data: REVOKED })],
    [
      "an ended invitation without its time",
      JSON.stringify({ ...EVENT, event: "invitation:expired", data: { id: "7" } }),
    ],
  ])("genuine, but %s", async (_name, body) => {
    const result = await verifyWebhook({ headers: await signed(["s"], body), body, secrets: "s", now });
    expect(result).toEqual({ ok: false, reason: "malformed-event" });
  });
});

describe("a caller's mistake throws a RangeError", () => {
  it.each([
    ["no secret", { secrets: [] }],
    ["a secret that is not set", JSON.parse('{"secrets":null}')],
    ["an empty secret", { secrets: "" }],
    ["an empty secret beside another", { secrets: ["s", ""] }],
    ["no clock", { now: Number.NaN }],
    ["a tolerance that is not a number", { toleranceSeconds: Number.NaN }],
    ["a negative tolerance", { toleranceSeconds: -1 }],
  ])("%s", async (_name, mistake) => {
    const webhook = { headers: await signed(["s"]), body: CREATED, secrets: "s", now, ...mistake };
    await expect(verifyWebhook(webhook)).rejects.toThrow(RangeError);
  });
});
