import { describe, expect, it } from "vitest";
import { invitationTokenOf, newInvitationToken } from "../../src/shared/identifiers.ts";
import { createApplication } from "../support/application.ts";
import { byEffort } from "../support/effort.ts";
import { homeDatabase } from "../support/home.ts";
import { requestBadge, serverHeaders } from "../support/http.ts";
import { fc } from "../support/random.ts";
import { everythingStored } from "../support/stored.ts";
import { CREATOR, claim, invite, listedNumbers, outcome, requestInvitation, revoke } from "./support/calls.ts";
import { ahead, DAY, HOUR, moveClock, SECOND, useStandingClock } from "./support/clock.ts";
import { useQuietLog } from "./support/log.ts";
import { RECORDED_EVENTS, readRows } from "./support/storage.ts";

useQuietLog();
useStandingClock();

describe("creating an invitation (contract section 5)", () => {
  it("responds 201 with the token, the reserved number and expiresAt, and nothing else", async () => {
    const application = await createApplication();
    const expiresAt = ahead(HOUR);
    const { status, body } = await requestInvitation(application, { expiresAt });
    expect(status).toBe(201);
    expect(body).toEqual({ id: expect.any(String), badgeId: expect.stringMatching(/^[1-9]\d*$/), expiresAt });
    expect(Number(body.badgeId)).toBeGreaterThanOrEqual(application.firstNumber);
    expect(Number(body.badgeId)).toBeLessThanOrEqual(application.lastNumber);
  });

  it("reserves a number of its own for each, which is no badge yet: not listed, no event", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const invitations = [await invite(application), await invite(application), await invite(application)];
    expect(new Set(invitations.map(({ number }) => number)).size).toBe(3);
    expect(await listedNumbers(application)).toEqual([]);
    expect((await readRows(application)).events).toEqual([]);
  });

  it("echoes expiresAt exactly as sent, whatever its offset and fraction", async () => {
    const application = await createApplication();
    const moment = fc.record({
      afterSeconds: fc.integer({ min: 1, max: 364 * 24 * 3600 }),
      offsetMinutes: fc.integer({ min: -14 * 60, max: 14 * 60 }),
      fraction: fc.stringMatching(/^\d{0,9}$/),
    });
    const write = ({ afterSeconds, offsetMinutes, fraction }: Moment): string => {
      const local = new Date(Date.now() + (afterSeconds + offsetMinutes * 60) * SECOND).toISOString().slice(0, 19);
      const minutes = Math.abs(offsetMinutes);
      const pad = (value: number) => String(value).padStart(2, "0");
      const zone = `${offsetMinutes < 0 ? "-" : "+"}${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`;
      return `${local}${fraction === "" ? "" : `.${fraction}`}${offsetMinutes === 0 ? "Z" : zone}`;
    };
    const property = fc.asyncProperty(moment, async (parts) => {
      // One second is the least, so that a fraction cut off leaves it ahead.
      const expiresAt = write({ ...parts, afterSeconds: parts.afterSeconds + 1 });
      expect(await requestInvitation(application, { expiresAt })).toMatchObject({ status: 201, body: { expiresAt } });
    });
    // The platform lets one creator make sixty a minute.
    await fc.assert(property, { numRuns: byEffort(20, 50) });
  });

  it.each([
    ["without a zone", () => ahead(HOUR).replace("Z", "")],
    ["with a zone that does not exist", () => ahead(HOUR).replace("Z", "+24:00")],
    ["in words", () => "tomorrow"],
    ["a date only", () => ahead(2 * DAY).slice(0, 10)],
    ["a day that does not exist", () => "2027-02-29T12:00:00Z"],
    ["a time that does not exist", () => ahead(2 * DAY).replace(/T\d\d/, "T25")],
    ["with space around it", () => ` ${ahead(HOUR)} `],
    ["past", () => ahead(-SECOND)],
    ["past by its offset", () => ahead(HOUR).replace("Z", "+02:00")],
    ["a number", () => Date.now() + HOUR],
    ["a list", () => [ahead(HOUR)]],
    ["an object", () => ({ at: ahead(HOUR) })],
    ["a truth value", () => true],
  ])("refuses an expiresAt that is %s, and reserves nothing", async (_, expiresAt) => {
    const application = await createApplication();
    expect(outcome(await requestInvitation(application, { expiresAt: expiresAt() }))).toBe("422 INVALID_EXPIRESAT");
    expect(await readRows(application)).toEqual({ badges: [], invitations: [], events: [] });
  });

  it("takes a time that is a millisecond ahead up to one 365 days ahead, and none beside", async () => {
    const application = await createApplication();
    const at = async (milliseconds: number) =>
      outcome(await requestInvitation(application, { expiresAt: ahead(milliseconds) }));
    expect(await at(0)).toBe("422 INVALID_EXPIRESAT");
    expect(await at(1)).toBe("201");
    expect(await at(365 * DAY)).toBe("201");
    expect(await at(365 * DAY + 1)).toBe("422 INVALID_EXPIRESAT");
  });

  it.each([
    ["absent", {}],
    ["null", { expiresAt: null }],
    ["empty", { expiresAt: "" }],
    ["blank", { expiresAt: " \t" }],
    ["absent with the body", undefined],
  ])("responds UNDEFINED_EXPIRESAT when it is %s", async (_, body) => {
    const application = await createApplication();
    expect(outcome(await requestInvitation(application, body))).toBe("422 UNDEFINED_EXPIRESAT");
  });

  it("checks application, secret, udid and body in the order of the contract", async () => {
    const application = await createApplication();
    const send = async (headers: Record<string, string>, body: unknown = "not JSON") =>
      outcome(await requestInvitation(application, body, headers));
    const wrong = { applicationsecret: "bdss_wrong" };
    expect(await send({ applicationid: "", ...wrong, udid: "" })).toBe("401 INVALID_APPLICATIONID");
    expect(await send({ applicationid: "app_00000000000000000000", ...wrong })).toBe("401 INVALID_APPLICATIONID");
    expect(await send({ ...wrong, udid: "" })).toBe("401 INVALID_CREDENTIALS");
    expect(await send({ udid: " " })).toBe("422 UNDEFINED_UDID");
    expect(await send({})).toBe("400 INVALID_JSON");
    expect(await send({ udid: "u".repeat(256) }, {})).toBe("422 UNDEFINED_EXPIRESAT");
    expect(await send({ udid: "u".repeat(256) }, { expiresAt: "soon" })).toBe("422 INVALID_UDID");
    expect(await send({}, { expiresAt: "soon" })).toBe("422 INVALID_EXPIRESAT");
  });

  it("refuses a disabled application", async () => {
    const application = await createApplication({ disabledAt: Date.now() });
    const answer = await requestInvitation(application, { expiresAt: ahead(HOUR) }, serverHeaders(application));
    expect(outcome(answer)).toBe("401 INVALID_APPLICATIONID");
  });
});

describe("an application that requires its secret (contract section 5)", () => {
  it("invites and revokes with the secret only", async () => {
    const application = await createApplication({ requireSecret: true });
    const body = { expiresAt: ahead(HOUR) };
    expect(outcome(await requestInvitation(application, body))).toBe("401 INVALID_CREDENTIALS");
    const blank = { applicationsecret: " " };
    expect(outcome(await requestInvitation(application, body, blank))).toBe("401 INVALID_CREDENTIALS");
    const created = await requestInvitation(application, body, serverHeaders(application));
    expect(created.status).toBe(201);
    const token = String(created.body.id);
    const asDevice = { applicationid: application.id, udid: CREATOR };
    expect(outcome(await revoke(application, token, asDevice))).toBe("401 INVALID_CREDENTIALS");
    expect(outcome(await revoke(application, token))).toBe("200");
  });
});

describe("the invitation token (contract sections 5 and 9)", () => {
  it("is of a form that the platform's telemetry redacts from URLs", () => {
    for (let count = 0; count < 2000; count++) {
      expect(newInvitationToken()).toMatch(/^inv_(?=(.*[A-Z]){2})(?=(.*[a-z]){2})(?=(.*[0-9]){2})[\w-]{32}$/);
    }
    expect(invitationTokenOf(new Uint8Array(24))).toBeNull();
  });

  it("has 128 random bits or more", async () => {
    const application = await createApplication();
    const tokens: string[] = [];
    for (let count = 0; count < 40; count++) tokens.push((await invite(application)).token);
    const random = tokens.map((token) => token.replace(/^inv_/, ""));
    const letters = new Set(random.join(""));
    // Each character at its place takes many values, and there are enough of them.
    for (const place of Array.from({ length: 32 }).keys()) {
      expect(new Set(random.map((text) => text.charAt(place))).size).toBeGreaterThan(8);
    }
    expect(Math.log2(letters.size) * 32).toBeGreaterThanOrEqual(128);
    expect(new Set(tokens).size).toBe(tokens.length);
  });

  it("stands nowhere in D1 or in the object until it is claimed, and then in the event's payload alone", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const { token } = await invite(application);
    expect(await placesOf(token, application)).toEqual([]);
    expect(outcome(await claim(application, "device", "alice", token))).toBe("201");
    expect(await placesOf(token, application)).toEqual(["the object", "webhook_event.payload"]);
  });

  it("of a revoked or expired invitation is never stored at all", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const revoked = await invite(application);
    const expired = await invite(application, ahead(SECOND));
    await revoke(application, revoked.token);
    moveClock(SECOND);
    await claim(application, "device", "alice", revoked.token);
    await claim(application, "device", "alice", expired.token);
    expect(await placesOf(revoked.token, application)).toEqual([]);
    expect(await placesOf(expired.token, application)).toEqual([]);
  });
});

interface Moment {
  afterSeconds: number;
  offsetMinutes: number;
  fraction: string;
}

/** Columns of D1, and the object's storage, that contain a text. */
async function placesOf(text: string, application: { id: string }): Promise<string[]> {
  const tables = await homeDatabase()
    .prepare(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB '_cf_*' AND name NOT GLOB 'sqlite_*'",
    )
    .all<{ name: string }>();
  const places = new Set<string>();
  for (const { name } of tables.results) {
    const { results } = await homeDatabase().prepare(`SELECT * FROM ${name}`).all();
    for (const row of results) {
      for (const [column, value] of Object.entries(row)) {
        if (String(value).includes(text)) places.add(`${name}.${column}`);
      }
    }
  }
  expect(tables.results.length).toBeGreaterThan(5);
  const kept = await everythingStored([application]);
  for (const [name, rows] of Object.entries(kept)) {
    if (name.endsWith(application.id) && JSON.stringify(rows).includes(text)) places.add("the object");
  }
  return [...places].sort();
}

describe("revoking an invitation (contract section 5)", () => {
  it("returns id, number, expiresAt and revokedAt to the server, the same in every response", async () => {
    const application = await createApplication();
    const expiresAt = ahead(HOUR).replace("Z", "000+00:00");
    const { body } = await requestInvitation(application, { expiresAt });
    const token = String(body.id);
    const first = await revoke(application, token);
    const revokedAt = new Date().toISOString();
    expect(first).toMatchObject({ status: 200 });
    expect(first.body).toEqual({ id: token, badgeId: body.badgeId, expiresAt, revokedAt });
    moveClock(2 * HOUR);
    expect(await revoke(application, token)).toMatchObject({ status: 200, body: first.body });
  });

  it("is also granted to the device that created it, and to no other device", async () => {
    const application = await createApplication();
    const { token } = await invite(application);
    const as = (udid: string) => ({ applicationid: application.id, udid });
    expect(outcome(await revoke(application, token, as("another")))).toBe("404 UNKNOWN_INVITATION");
    expect(outcome(await revoke(application, token, as(CREATOR.toUpperCase())))).toBe("404 UNKNOWN_INVITATION");
    expect(outcome(await revoke(application, token, as(CREATOR)))).toBe("200");
    expect(outcome(await revoke(application, token, as("another")))).toBe("404 UNKNOWN_INVITATION");
  });

  it("requires no udid from the server, and ignores one that it sends", async () => {
    const application = await createApplication();
    const { token } = await invite(application);
    expect(outcome(await revoke(application, token, { ...serverHeaders(application), udid: "another" }))).toBe("200");
  });

  it("authenticates like creating one", async () => {
    const application = await createApplication();
    const { token } = await invite(application);
    const send = async (headers: Record<string, string>) => outcome(await revoke(application, token, headers));
    const { applicationid } = serverHeaders(application);
    if (applicationid === undefined) throw new Error("a server names its application");
    expect(await send({ udid: CREATOR })).toBe("401 INVALID_APPLICATIONID");
    expect(await send({ applicationid: "unknown", udid: CREATOR })).toBe("401 INVALID_APPLICATIONID");
    expect(await send({ applicationid, udid: CREATOR, applicationsecret: "wrong" })).toBe("401 INVALID_CREDENTIALS");
    expect(await send({ applicationid })).toBe("401 INVALID_CREDENTIALS");
    expect(await send({ applicationid, udid: " " })).toBe("401 INVALID_CREDENTIALS");
  });

  it("responds 404 to an unknown token and to another application's, for its server and its devices", async () => {
    const application = await createApplication();
    const other = await createApplication();
    const { token } = await invite(application);
    expect(outcome(await revoke(application, `${token}x`))).toBe("404 UNKNOWN_INVITATION");
    expect(outcome(await revoke(application, "%"))).toBe("404 UNKNOWN_INVITATION");
    expect(outcome(await revoke(other, token))).toBe("404 UNKNOWN_INVITATION");
    const asDevice = { applicationid: other.id, udid: CREATOR };
    expect(outcome(await revoke(other, token, asDevice))).toBe("404 UNKNOWN_INVITATION");
    expect(outcome(await claim(application, "device", "alice", token))).toBe("201");
  });

  it("responds 409 once it is claimed, and does not change the badge", async () => {
    const application = await createApplication();
    const { token, number } = await invite(application);
    await claim(application, "device", "alice", token);
    expect(outcome(await revoke(application, token))).toBe("409 CLAIMED_INVITATION");
    moveClock(2 * HOUR);
    expect(outcome(await revoke(application, token))).toBe("409 CLAIMED_INVITATION");
    expect(await listedNumbers(application)).toEqual([number]);
  });

  it("responds 410 from the moment of expiry on, swept or not", async () => {
    const application = await createApplication();
    const { token } = await invite(application, ahead(SECOND));
    moveClock(SECOND);
    expect(outcome(await revoke(application, token))).toBe("410 EXPIRED_INVITATION");
    expect(outcome(await revoke(application, token))).toBe("410 EXPIRED_INVITATION");
  });

  it("makes the number available again (contract section 5)", async () => {
    const application = await createApplication({ size: 1 });
    const { token, number } = await invite(application);
    await revoke(application, token);
    const { body } = await requestBadge(application, "device", { userId: "alice" });
    expect(body.badgeId).toBe(String(number));
  });
});
