import { decodeJwt } from "jose";
import { describe, expect, it } from "vitest";
import { claim, invite, listedNumbers, outcome, requestInvitation } from "../invitations/support/calls.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { RECORDED_EVENTS, readRows } from "../invitations/support/storage.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callServer, requestBadge } from "../support/http.ts";
import { SUBSCRIBABLE } from "../support/subscribable.ts";
import { type BadgeStep, getBadge, issueTo, runSweep, setEnd, signOn, takeStep, withBadge } from "./life-support.ts";

useQuietLog();
useStandingClock();

const STEPS: readonly BadgeStep[] = ["suspend", "resume", "revoke"];

/** What login and sign of a device say. */
async function deviceOutcomes(application: { id: string }, udid: string, userId = "alice"): Promise<string[]> {
  return [outcome(await requestBadge(application, udid, { userId })), outcome(await signOn(application, udid))];
}

/** Changes that were made of a badge, and all events of the application. */
async function traces(application: TestApplication): Promise<unknown> {
  const { badges, events } = await readRows(application);
  return {
    changes: badges.map(({ number, change, changedAt }) => [number, change, changedAt]),
    events: events.map(({ event }) => event),
  };
}

const subscriber = () => createApplication({ ...RECORDED_EVENTS, events: SUBSCRIBABLE.join(",") });

describe("GET /v1/badges/{id} (contract section 12)", () => {
  it("a badge is shown with its metadata, and its end in UTC with milliseconds", async () => {
    const application = await createApplication();
    const { body } = await requestBadge(application, "phone", { userId: "alice", metadata: { os: "iOS" } });
    const id = String(body.badgeId);
    const times = { issuedAt: ahead(0), changedAt: ahead(0) };
    const badge = { id, userId: "alice", state: "active", metadata: { os: "iOS" }, ...times };
    const { status, headers } = await getBadge(application, id);
    expect([status, headers.get("etag")]).toEqual([200, '"1"']);
    expect((await getBadge(application, id)).body).toEqual(badge);
    const changed = await setEnd(application, id, "2040-01-02T03:04:05+01:00");
    expect(changed.status).toBe(200);
    expect(changed.body).toEqual({ ...badge, expiresAt: "2040-01-02T02:04:05.000Z" });
    expect((await getBadge(application, id)).body).toEqual(changed.body);
  });
});

describe("the calls of contract section 12 refuse in the contract's order", () => {
  it("404 comes first for every number that is not a badge of the application", async () => {
    const [application, other] = [await createApplication(), await createApplication()];
    const foreign = await issueTo(other, "phone", "alice");
    const own = await issueTo(application, "phone", "alice");
    const { number: reserved } = await invite(application);
    const free = [application.firstNumber, application.firstNumber + 1, application.firstNumber + 2].find(
      (number) => number !== Number(own) && number !== reserved,
    );
    const malformed = ["nonsense", "0", `0${own}`, "-1", "1.5", "9007199254740992", "99999999999999999999", `${own}x`];
    for (const number of [...malformed, foreign, String(reserved), String(free), "17"]) {
      const answers = [await getBadge(application, number), await setEnd(application, number, null)];
      for (const step of STEPS) answers.push(await takeStep(application, number, step));
      expect([number, ...answers.map(outcome)]).toEqual([number, ...Array(5).fill("404 UNKNOWN_BADGE")]);
    }
  });

  it("PATCH /v1/badges/{id} is checked in the order 400, 422, 404, 409", async () => {
    const { application, number: id } = await withBadge();
    await takeStep(application, id, "revoke");
    const ask = async (number: string, body: unknown) =>
      outcome(await callServer(application, "PATCH", `/v1/badges/${number}`, body));
    expect(await ask("nonsense", "{")).toBe("400 INVALID_JSON");
    expect(await ask("nonsense", "[]")).toBe("400 INVALID_JSON");
    for (const body of [{ reason: 1 }, { expiresAt: "tomorrow", reason: [] }]) {
      expect(await ask("nonsense", body)).toBe("400 INVALID_JSON");
    }
    for (const body of [{}, { expiresAt: "" }, { expiresAt: "  " }]) {
      expect(await ask("nonsense", body)).toBe("422 UNDEFINED_EXPIRESAT");
    }
    for (const expiresAt of [
      1,
      true,
      {},
      [],
      "tomorrow",
      "2040-01-02",
      "2040-01-02T03:04:05",
      "2040-13-02T03:04:05Z",
    ]) {
      expect(await ask("nonsense", { expiresAt })).toBe("422 INVALID_EXPIRESAT");
    }
    expect(await ask("nonsense", { expiresAt: null })).toBe("404 UNKNOWN_BADGE");
    expect(await ask(id, { expiresAt: "tomorrow" })).toBe("422 INVALID_EXPIRESAT");
    expect(await ask(id, { expiresAt: null })).toBe("409 ENDED_BADGE");
  });
});

describe("a call that changes nothing (contract section 12)", () => {
  it("a call that changes nothing gets the same 200 or a refusal, and causes neither a change nor an event (section 18)", async () => {
    const application = await subscriber();
    const id = await issueTo(application, "phone", "alice");
    const end = ahead(DAY);
    const calls = [
      () => takeStep(application, id, "resume"),
      () => takeStep(application, id, "suspend"),
      () => setEnd(application, id, end),
      () => takeStep(application, id, "revoke"),
    ];
    for (const send of calls) {
      const first = await send();
      expect(first.status).toBe(200);
      const after = await traces(application);
      moveClock(SECOND);
      const again = await send();
      expect([again.status, again.body]).toEqual([200, first.body]);
      expect(await traces(application)).toEqual(after);
    }
    expect((await takeStep(application, id, "resume")).status).toBe(409);
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 REVOKED_BADGE", "403 REVOKED_BADGE"]);
    expect(await traces(application)).toMatchObject({ events: ["badge:created", "badge:suspended", "badge:revoked"] });
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
    expect((await getBadge(application, id)).body.state).toBe("expired");
    await runSweep();
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 EXPIRED_BADGE", "403 EXPIRED_BADGE"]);
    expect((await setEnd(application, id, ahead(1))).body.state).toBe("active");
    expect(await deviceOutcomes(application, "phone")).toEqual(["200", "200"]);
    await takeStep(application, id, "suspend");
    moveClock(1);
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 EXPIRED_BADGE", "403 EXPIRED_BADGE"]);
    const { body } = await setEnd(application, id, null);
    expect(body).toMatchObject({ id, userId: "alice", state: "suspended" });
    expect(body).not.toHaveProperty("expiresAt");
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 SUSPENDED_BADGE", "403 SUSPENDED_BADGE"]);
    const ended = await setEnd(application, id, "1970-01-01T00:00:00Z");
    expect(ended).toMatchObject({ status: 200, body: { state: "expired", expiresAt: "1970-01-01T00:00:00.000Z" } });
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 EXPIRED_BADGE", "403 EXPIRED_BADGE"]);
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
  it("badgeExpiresAt is returned as sent, and is the end of the claimed badge", async () => {
    const application = await createApplication();
    const badgeExpiresAt = "2028-02-29T12:00:00.5+02:00";
    const answer = await requestInvitation(application, { expiresAt: ahead(HOUR), badgeExpiresAt });
    expect(answer).toMatchObject({ status: 201, body: { badgeExpiresAt } });
    expect((await claim(application, "phone", "alice", answer.body.id)).status).toBe(201);
    expect((await getBadge(application, String(answer.body.badgeId))).body).toMatchObject({
      state: "active",
      expiresAt: "2028-02-29T10:00:00.500Z",
    });
  });

  it("badgeExpiresAt ends the invitation if it is earlier than expiresAt: 410 EXPIRED_INVITATION", async () => {
    const application = await createApplication();
    const times = { expiresAt: ahead(HOUR), badgeExpiresAt: ahead(MINUTE) };
    const one = await requestInvitation(application, times);
    const other = await requestInvitation(application, times);
    moveClock(MINUTE - 1);
    expect((await claim(application, "phone", "alice", one.body.id)).status).toBe(201);
    moveClock(1);
    expect(outcome(await claim(application, "phone", "bob", other.body.id))).toBe("410 EXPIRED_INVITATION");
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 EXPIRED_BADGE", "403 EXPIRED_BADGE"]);
  });

  it("badgeExpiresAt must be in the future, at most 3,650 days ahead: otherwise 422 INVALID_BADGEEXPIRESAT", async () => {
    const application = await createApplication();
    const ask = async (badgeExpiresAt: unknown, expiresAt: unknown = ahead(HOUR)) =>
      outcome(await requestInvitation(application, { expiresAt, badgeExpiresAt }));
    expect(await ask(ahead(3650 * DAY))).toBe("201");
    for (const wrong of [ahead(3650 * DAY + 1), ahead(0), ahead(-1), "soon", 5, "2040-01-01T00:00:00"]) {
      expect(await ask(wrong)).toBe("422 INVALID_BADGEEXPIRESAT");
    }
    expect(await ask(null)).toBe("201");
    // It is stored as it was sent, so its length is limited as that of `expiresAt` is (section 7).
    const fraction = (digits: number) => ahead(HOUR).replace(/\.\d+Z$/, `.${"0".repeat(digits)}Z`);
    expect(fraction(19)).toHaveLength(40);
    expect(await ask(fraction(19))).toBe("201");
    expect(await ask(fraction(20))).toBe("422 INVALID_BADGEEXPIRESAT");
    // The formats of both come before the times of both.
    expect(await ask("soon", ahead(-1))).toBe("422 INVALID_BADGEEXPIRESAT");
    expect(await ask(ahead(-1), "soon")).toBe("422 INVALID_EXPIRESAT");
    expect(await ask(ahead(-1), ahead(-1))).toBe("422 INVALID_EXPIRESAT");
  });
});

describe("the lists of contract section 4 with the states of section 12", () => {
  it("lists contain active and suspended badges: `state` only if suspended, `expiresAt` only if there is an end", async () => {
    const application = await createApplication();
    const numbers: string[] = [];
    for (let place = 0; place < 6; place++) numbers.push(await issueTo(application, `phone-${place}`, "alice"));
    const [plain = "", suspended = "", ending = "", revoked = "", ended = "", replaced = ""] = numbers;
    await takeStep(application, suspended, "suspend");
    const expiresAt = ahead(HOUR);
    await setEnd(application, ending, expiresAt);
    await takeStep(application, revoked, "revoke");
    await setEnd(application, ended, ahead(MINUTE));
    const { token, number } = await invite(application);
    await claim(application, "phone-5", "alice", token);
    moveClock(MINUTE);
    await runSweep();
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
  });

  it("lists leave out a badge that the clock has ended, recorded or not, and have it at its old ordinal with a later end", async () => {
    const application = await createApplication();
    const numbers: string[] = [];
    for (let place = 0; place < 3; place++) numbers.push(await issueTo(application, `phone-${place}`, "alice"));
    const [active = "", suspended = "", left = ""] = numbers;
    await takeStep(application, suspended, "suspend");
    for (const number of [active, suspended]) await setEnd(application, number, ahead(MINUTE));
    moveClock(MINUTE);
    const searches = ["", "?order=newest", "?q=ali", "?state=active", "?endsBefore=2999-01-01T00:00:00Z"];
    for (const path of ["/v1/users/alice/badges", ...searches.map((search) => `/v1/badges${search}`)]) {
      const { body } = await callServer(application, "GET", path);
      const shown = path.includes("endsBefore") ? [] : [expect.objectContaining({ id: left })];
      expect(body.badges, path).toEqual(shown);
    }
    const { body } = await callServer(application, "GET", "/v1/badges?state=expired");
    expect(body.badges).toMatchObject([
      { id: active, state: "expired" },
      { id: suspended, state: "expired" },
    ]);
    await runSweep();
    expect(await listedNumbers(application)).toEqual([Number(left)]);
    for (const number of [suspended, active]) await setEnd(application, number, null);
    expect(await listedNumbers(application)).toEqual([active, suspended, left].map(Number));
  });
});
