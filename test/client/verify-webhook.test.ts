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

const signed = (secrets: readonly string[], body = CREATED, timestampSeconds = NOW_SECONDS) =>
  signedAsService({ eventId: EVENT_ID, timestampSeconds, body, secrets });

describe("a genuine webhook is accepted (contract section 8)", () => {
  it("a genuine webhook is accepted with its event, as text or as raw bytes", async () => {
    const bytes = utf8(CREATED);
    for (const body of [CREATED, bytes, bytes.buffer, utf8(`--${CREATED}--`).subarray(2, -2)]) {
      const result = await verifyWebhook({ headers: await signed(["s"]), body, secrets: "s", now });
      expect(result).toEqual({ ok: true, eventId: EVENT_ID, kind: "badge:created", event: EVENT });
    }
  });

  it("a genuine webhook is accepted with the headers of fetch, and with those of node:http", async () => {
    const sent = await signed(["s"]);
    const lowerCase = Object.fromEntries(Object.entries(sent).map(([name, value]) => [name.toLowerCase(), value]));
    for (const headers of [new Headers(sent), sent, { ...lowerCase, host: "example.com", "set-cookie": ["a", "b"] }]) {
      expect(await verifyWebhook({ headers, body: CREATED, secrets: "s", now })).toMatchObject({ ok: true });
    }
  });

  it("while two secrets are valid, a genuine webhook is accepted before and after the promotion of the new one", async () => {
    for (const live of [["old", "new"], ["new", "old"], ["old"], ["new"]]) {
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

  it("a webhook that is signed with another secret, or that lacks a header, is refused", async () => {
    expect(await check({}, CREATED, ["t", "u"])).toBe("wrong-signature");
    for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature", "Signature"]) {
      expect(await check({ [name]: undefined }), name).toBe("missing-header");
    }
  });

  it("a webhook with a changed ID or time is refused", async () => {
    expect(await check({ "webhook-id": "evt_other" })).toBe("wrong-signature");
    expect(await check({ "webhook-timestamp": String(NOW_SECONDS + 1) })).toBe("wrong-signature");
    for (const timestamp of ["", "soon", "1e9", "-1", "1800000000.5", " 1800000000"]) {
      expect(await check({ "webhook-timestamp": timestamp }), timestamp).toBe("malformed-timestamp");
    }
  });

  it("a webhook with only one of the two signatures valid is refused", async () => {
    const other = await signed(["t"]);
    expect(await check({ "webhook-signature": other["webhook-signature"] })).toBe("wrong-signature");
    expect(await check({ Signature: other.Signature })).toBe("wrong-signature");
    for (const junk of ["", "v1,", "v1", "v2,AAAA", "v1,?", "v1a,AAAA"]) {
      expect(await check({ "webhook-signature": junk })).toBe("wrong-signature");
    }
    for (const junk of ["", "?", "AAAA"]) expect(await check({ Signature: junk })).toBe("wrong-signature");
  });

  it("at most eight signatures of a webhook are checked", async () => {
    const genuine = (await signed(["s"]))["webhook-signature"];
    expect(await check({ "webhook-signature": `${"v1,AAAA ".repeat(7)}${genuine}` })).toBe("accepted");
    expect(await check({ "webhook-signature": `${"v1,AAAA ".repeat(8)}${genuine}` })).toBe("wrong-signature");
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
    [{ id: "7", userId: "a" }, ["badge:created"]],
    [
      { id: "7", userId: "a", state: "revoked", change: 1 },
      ["badge:suspended", "badge:resumed", "badge:revoked", "badge:expired", "badge:replaced"],
    ],
    [{ id: "7", expiresAt: "2026-01-01T00:00:00.000Z" }, ["invitation:revoked", "invitation:expired"]],
  ])("a genuine webhook is refused if its event lacks one of the fields of %o", async (data, names) => {
    const verify = async (body: string) =>
      verifyWebhook({ headers: await signed(["s"], body), body, secrets: "s", now });
    for (const event of names) {
      const whole = { ...EVENT, event, data };
      expect(await verify(JSON.stringify(whole))).toEqual({ ok: true, eventId: EVENT_ID, kind: event, event: whole });
      const broken = [
        ...Object.keys(data).flatMap((name) =>
          [undefined, null, true].map((value) => ({ ...whole, data: { ...data, [name]: value } })),
        ),
        { ...whole, createdAt: undefined },
        { ...whole, data: undefined },
        { ...whole, id: 7 },
      ];
      for (const body of [...broken.map((one) => JSON.stringify(one)), "hello"]) {
        expect(await verify(body), body).toEqual({ ok: false, reason: "malformed-event" });
      }
    }
  });
});

it("a caller's mistake throws a RangeError", async () => {
  const webhook = { headers: await signed(["s"]), body: CREATED, secrets: "s", now };
  for (const mistake of [
    { secrets: [] },
    JSON.parse('{"secrets":null}'),
    { secrets: ["s", ""] },
    { now: Number.NaN },
    { toleranceSeconds: Number.NaN },
    { toleranceSeconds: -1 },
  ]) {
    const call = verifyWebhook({ ...webhook, ...mistake });
    await expect(call, JSON.stringify(mistake)).rejects.toThrow(RangeError);
  }
});
