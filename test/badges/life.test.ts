import { decodeJwt } from "jose";
import { describe, expect, it } from "vitest";
import { createApplication } from "../support/application.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../support/clock.ts";
import { callServer, outcome, requestBadge } from "../support/http.ts";
import { claim, invite, listedNumbers, requestInvitation } from "../support/invitations.ts";
import { sweep } from "../support/sweep.ts";
import { getBadge, issueTo, setEnd, signOn, takeStep, withBadge } from "./life-support.ts";

useStandingClock();

/** What login and sign of a device say. */
async function deviceOutcomes(application: { id: string }, udid: string, userId = "alice"): Promise<string[]> {
  return [outcome(await requestBadge(application, udid, { userId })), outcome(await signOn(application, udid))];
}

// What is unknown to any application, and another's badges: test/http/errors/order.test.ts.
describe("the calls of contract section 12 refuse in the contract's order", () => {
  it("404 comes first for every number that is not a badge of the application", async () => {
    const { application, number: own } = await withBadge();
    const { number: reserved } = await invite(application);
    const taken = [Number(own), reserved];
    const free = [0, 1, 2].map((place) => application.firstNumber + place).find((number) => !taken.includes(number));
    const malformed = ["nonsense", "0", `0${own}`, "-1", "1.5", "99999999999999999999", `${own}x`];
    for (const number of [...malformed, String(reserved), String(free)]) {
      const answers = [await getBadge(application, number), await setEnd(application, number, null)];
      expect([number, ...answers.map(outcome)]).toEqual([number, "404 UNKNOWN_BADGE", "404 UNKNOWN_BADGE"]);
    }
  });

  it("PATCH /v1/badges/{id} is checked in the order 400, 422, 404, 409", async () => {
    const { application, number: id } = await withBadge();
    await takeStep(application, id, "revoke");
    const ask = async (number: string, body: unknown) =>
      outcome(await callServer(application, "PATCH", `/v1/badges/${number}`, body));
    expect(await ask("nonsense", "{")).toBe("400 INVALID_JSON");
    expect(await ask("nonsense", { expiresAt: "tomorrow", reason: [] })).toBe("400 INVALID_JSON");
    expect(await ask("nonsense", {})).toBe("422 UNDEFINED_EXPIRESAT");
    for (const expiresAt of [1, "tomorrow"]) {
      expect(await ask("nonsense", { expiresAt })).toBe("422 INVALID_EXPIRESAT");
    }
    expect(await ask("nonsense", { expiresAt: null })).toBe("404 UNKNOWN_BADGE");
    expect(await ask(id, { expiresAt: "tomorrow" })).toBe("422 INVALID_EXPIRESAT");
    expect(await ask(id, { expiresAt: null })).toBe("409 ENDED_BADGE");
  });
});

describe("device calls on a badge that is not active (contract section 12)", () => {
  it("device calls get 403 EXPIRED_BADGE from a badge's end on; a later end restores its state", async () => {
    const { application, number: id } = await withBadge();
    await setEnd(application, id, ahead(HOUR));
    moveClock(HOUR - 1);
    expect(await deviceOutcomes(application, "phone")).toEqual(["200", "200"]);
    moveClock(1);
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 EXPIRED_BADGE", "403 EXPIRED_BADGE"]);
    await sweep();
    expect((await getBadge(application, id)).body.state).toBe("expired");
    expect((await setEnd(application, id, ahead(1))).body.state).toBe("active");
    expect(await deviceOutcomes(application, "phone")).toEqual(["200", "200"]);
    await takeStep(application, id, "suspend");
    moveClock(1);
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 EXPIRED_BADGE", "403 EXPIRED_BADGE"]);
    expect((await setEnd(application, id, null)).body.state).toBe("suspended");
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 SUSPENDED_BADGE", "403 SUSPENDED_BADGE"]);
    const ended = await setEnd(application, id, "1970-01-01T00:00:00Z");
    expect(ended).toMatchObject({ status: 200, body: { state: "expired", expiresAt: "1970-01-01T00:00:00.000Z" } });
  });

  it("a signature ends with the signature lifetime or the badge, whichever is earlier, rounded down", async () => {
    const application = await createApplication({ signatureLifetimeSeconds: 60 });
    const forever = await createApplication();
    const endsOf = async ({ id }: { id: string }) => {
      const { body } = await signOn({ id }, "phone");
      const { exp, iat } = decodeJwt(String(body.signature));
      return exp === undefined ? undefined : exp - Number(iat);
    };
    const number = await issueTo(application, "phone", "alice");
    expect(await endsOf(application)).toBe(60);
    const second = Math.floor(Date.now() / SECOND) * SECOND;
    await setEnd(application, number, new Date(second + 30_999).toISOString());
    expect(await endsOf(application)).toBe(30);
    await setEnd(application, number, new Date(second + 61_000).toISOString());
    expect(await endsOf(application)).toBe(60);
    const other = await issueTo(forever, "phone", "alice");
    expect(await endsOf(forever)).toBeUndefined();
    await setEnd(forever, other, new Date(second + DAY + 500).toISOString());
    expect(await endsOf(forever)).toBe(86_400);
  });
});

describe("badgeExpiresAt of an invitation (contract section 12)", () => {
  it("badgeExpiresAt is returned as sent, is the end of the claimed badge, and ends an invitation that would last longer", async () => {
    const application = await createApplication();
    const badgeExpiresAt = ahead(MINUTE).replace("Z", "+00:00");
    const times = { expiresAt: ahead(HOUR), badgeExpiresAt };
    const one = await requestInvitation(application, times);
    const other = await requestInvitation(application, times);
    expect(one).toMatchObject({ status: 201, body: { badgeExpiresAt } });
    moveClock(MINUTE - 1);
    expect((await claim(application, "phone", "alice", one.body.id)).status).toBe(201);
    const badge = { state: "active", expiresAt: ahead(1) };
    expect((await getBadge(application, String(one.body.badgeId))).body).toMatchObject(badge);
    moveClock(1);
    expect(outcome(await claim(application, "phone", "bob", other.body.id))).toBe("410 EXPIRED_INVITATION");
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 EXPIRED_BADGE", "403 EXPIRED_BADGE"]);
  });

  it("badgeExpiresAt must be in the future, at most 3,650 days ahead: otherwise 422 INVALID_BADGEEXPIRESAT", async () => {
    const application = await createApplication();
    const ask = async (badgeExpiresAt: unknown, expiresAt: unknown = ahead(HOUR)) =>
      outcome(await requestInvitation(application, { expiresAt, badgeExpiresAt }));
    expect(await ask(ahead(3650 * DAY))).toBe("201");
    for (const wrong of [ahead(3650 * DAY + 1), ahead(0), "soon", 5]) {
      expect(await ask(wrong)).toBe("422 INVALID_BADGEEXPIRESAT");
    }
    expect(await ask(null)).toBe("201");
    // The formats of both come before the times of both.
    expect(await ask("soon", ahead(-1))).toBe("422 INVALID_BADGEEXPIRESAT");
    expect(await ask(ahead(-1), "soon")).toBe("422 INVALID_EXPIRESAT");
    expect(await ask(ahead(-1), ahead(-1))).toBe("422 INVALID_EXPIRESAT");
  });
});

it("lists contain active and suspended badges: `state` only if suspended, `expiresAt` only if there is an end, and none that the clock has ended (contract sections 4 and 12)", async () => {
  const application = await createApplication();
  const numbers: string[] = [];
  for (let place = 0; place < 5; place++) numbers.push(await issueTo(application, `phone-${place}`, "alice"));
  const [plain = "", suspended = "", ending = "", revoked = "", replaced = ""] = numbers;
  await takeStep(application, suspended, "suspend");
  const expiresAt = ahead(HOUR);
  await setEnd(application, ending, expiresAt);
  await takeStep(application, revoked, "revoke");
  const { token, number } = await invite(application);
  await claim(application, "phone-4", "alice", token);
  const shown = [
    { id: plain, userId: "alice" },
    { id: suspended, userId: "alice", state: "suspended" },
    { id: ending, userId: "alice", expiresAt },
    { id: String(number), userId: "alice" },
  ];
  for (const path of ["/v1/badges", "/v1/users/alice/badges"]) {
    expect((await callServer(application, "GET", path)).body).toEqual({ badges: shown });
  }
  expect((await getBadge(application, replaced)).body.state).toBe("replaced");
  moveClock(HOUR);
  const left = [plain, suspended, String(number)].map(Number);
  expect(await listedNumbers(application)).toEqual(left);
  await sweep();
  expect(await listedNumbers(application)).toEqual(left);
  await setEnd(application, ending, null);
  expect(await listedNumbers(application)).toEqual([plain, suspended, ending, String(number)].map(Number));
});
