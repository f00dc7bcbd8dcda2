import { decodeJwt } from "jose";
import { describe, expect, it } from "vitest";
import { claim, invite, listedNumbers, outcome, requestInvitation } from "../invitations/support/calls.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { RECORDED_EVENTS } from "../invitations/support/storage.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { requestBadge, serverHeaders } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";
import { type BadgeStep, callServer, getBadge, issueTo, runSweep, setEnd, signOn, takeStep } from "./life-support.ts";

useQuietLog();
useStandingClock();

const STEPS: readonly BadgeStep[] = ["suspend", "resume", "revoke"];

/** What login and sign of a device say. */
async function deviceOutcomes(application: { id: string }, udid: string, userId = "alice"): Promise<string[]> {
  return [outcome(await requestBadge(application, udid, { userId })), outcome(await signOn(application, udid))];
}

/** Changes that were made of a badge, and all events of the application. */
async function traces(application: TestApplication): Promise<unknown> {
  const events = homeDatabase().prepare("SELECT count(*) AS count FROM webhook_event WHERE application_id = ?1");
  return {
    changes: (await badgeRows(application)).map(({ number, change, changedAt }) => [number, change, changedAt]),
    events: await events.bind(application.id).first("count"),
  };
}

const ALL_EVENTS =
  "badge:created,badge:suspended,badge:resumed,badge:revoked,badge:expired,badge:replaced,invitation:revoked";

describe("GET /v1/badges/{id} (contract section 12)", () => {
  it("shows a badge with its metadata, and its end in UTC with milliseconds", async () => {
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

  it("shows a badge in every state", async () => {
    const application = await createApplication();
    const states = [];
    for (const [place, step] of [...STEPS, "expire", "replace"].entries()) {
      const id = await issueTo(application, `phone-${place}`, "alice");
      if (step === "expire") await setEnd(application, id, ahead(-SECOND));
      else if (step === "replace") {
        const { token } = await invite(application);
        expect((await claim(application, `phone-${place}`, "alice", token)).status).toBe(201);
      } else await callServer(application, "PATCH", `/v1/badges/${id}/${step}`);
      states.push((await getBadge(application, id)).body.state);
    }
    expect(states).toEqual(["suspended", "active", "revoked", "expired", "replaced"]);
  });
});

describe("the calls of contract section 12 refuse in the contract's order", () => {
  const CALLS = [["GET", ""], ["PATCH", ""], ...STEPS.map((step) => ["PATCH", `/${step}`] as const)] as const;

  it.each(CALLS)(
    "%s /v1/badges/{id}%s: 404 for every number that is no badge of the application",
    async (method, path) => {
      const application = await createApplication();
      const other = await createApplication();
      const foreign = await issueTo(other, "phone", "alice");
      const own = await issueTo(application, "phone", "alice");
      const { number: reserved } = await invite(application);
      const free = [application.firstNumber, application.firstNumber + 1, application.firstNumber + 2].find(
        (number) => number !== Number(own) && number !== reserved,
      );
      const malformed = [
        "nonsense",
        "0",
        `0${own}`,
        "-1",
        "1.5",
        "9007199254740992",
        "99999999999999999999",
        `${own}x`,
      ];
      const numbers = [...malformed, foreign, String(reserved), String(free), "17"];
      const body = method === "PATCH" && path === "" ? { expiresAt: null } : undefined;
      for (const number of numbers) {
        const answer = await callServer(application, method, `/v1/badges/${number}${path}`, body);
        expect([number, outcome(answer)]).toEqual([number, "404 UNKNOWN_BADGE"]);
      }
    },
  );

  it("checks PATCH /v1/badges/{id} in the order 400, 422, 404, 409", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    await takeStep(application, id, "revoke");
    const ask = async (number: string, body: unknown) =>
      outcome(await callServer(application, "PATCH", `/v1/badges/${number}`, body));
    expect(await ask("nonsense", "{")).toBe("400 INVALID_JSON");
    expect(await ask("nonsense", "[]")).toBe("400 INVALID_JSON");
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
  it("gets the same 200 again, and causes neither a change nor an event", async () => {
    const application = await createApplication({ ...RECORDED_EVENTS, events: ALL_EVENTS });
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
    expect(await traces(application)).toMatchObject({ events: 3 });
  });
});

describe("device calls on a badge that is not active (contract section 12)", () => {
  it("get 403 SUSPENDED_BADGE until it is resumed, and 403 REVOKED_BADGE permanently", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    await takeStep(application, id, "suspend");
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 SUSPENDED_BADGE", "403 SUSPENDED_BADGE"]);
    await takeStep(application, id, "resume");
    expect(await deviceOutcomes(application, "phone")).toEqual(["200", "200"]);
    await takeStep(application, id, "revoke");
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 REVOKED_BADGE", "403 REVOKED_BADGE"]);
  });

  it("get 403 EXPIRED_BADGE from its end on, without a sweep; a later end restores its state", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
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
  });

  it("get 403 at once after a past end is set", async () => {
    const application = await createApplication();
    const id = await issueTo(application, "phone", "alice");
    const answer = await setEnd(application, id, "0001-01-01T00:00:00Z");
    expect(answer).toMatchObject({ status: 200, body: { state: "expired", expiresAt: "0001-01-01T00:00:00.000Z" } });
    expect(await listedNumbers(application)).toEqual([]);
    expect(await deviceOutcomes(application, "phone")).toEqual(["403 EXPIRED_BADGE", "403 EXPIRED_BADGE"]);
    expect((await setEnd(application, id, null)).status).toBe(200);
    expect(await listedNumbers(application)).toEqual([Number(id)]);
  });

  it("get signatures that end with the lifetime or the badge, whichever is earlier, rounded down", async () => {
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

describe("a claim when the user device has a badge (contract section 12)", () => {
  const withSecret = async (application: TestApplication, body: object = { expiresAt: ahead(HOUR) }) => {
    const answer = await requestInvitation(application, body, serverHeaders(application));
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    return { token: String(answer.body.id), id: String(answer.body.badgeId) };
  };

  it("issues a new badge for a revoked one if the invitation was created with the secret; the old one stays revoked", async () => {
    const application = await createApplication({ ...RECORDED_EVENTS, events: ALL_EVENTS });
    const old = await issueTo(application, "phone", "alice");
    await takeStep(application, old, "revoke");
    const { token, id } = await withSecret(application);
    const answer = await claim(application, "phone", "alice", token);
    expect(answer).toMatchObject({ status: 201, body: { badgeId: id } });
    expect(await deviceOutcomes(application, "phone")).toEqual(["200", "200"]);
    expect((await getBadge(application, old)).body.state).toBe("revoked");
    const { results } = await homeDatabase()
      .prepare(
        `SELECT event, payload FROM webhook_event WHERE application_id = ?1
         ORDER BY created_at, payload ->> '$.data.invitationId', payload ->> '$.data.change'`,
      )
      .bind(application.id)
      .all();
    const events = results.map(({ event }) => event);
    expect(events).toEqual(["badge:created", "badge:revoked", "badge:created"]);
    expect(String(results.at(-1)?.payload)).not.toContain("replacedBadgeId");
    // And so once more, with the second badge.
    await takeStep(application, id, "revoke");
    const third = await withSecret(application);
    expect((await claim(application, "phone", "alice", third.token)).status).toBe(201);
    for (const number of [old, id]) expect((await getBadge(application, number)).body.state).toBe("revoked");
  });

  it("responds 403 when its token is presented again after the badge was revoked", async () => {
    const application = await createApplication();
    const { token, id } = await withSecret(application);
    expect((await claim(application, "phone", "alice", token)).status).toBe(201);
    await takeStep(application, id, "revoke");
    expect(outcome(await claim(application, "phone", "alice", token))).toBe("403 REVOKED_BADGE");
  });
});

describe("badgeExpiresAt of an invitation (contract section 12)", () => {
  it("is returned as sent, and is the end of the claimed badge", async () => {
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

  it("ends the invitation if it is earlier than expiresAt: 410 EXPIRED_INVITATION", async () => {
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

  it("must be in the future, at most 3,650 days ahead: otherwise 422 INVALID_BADGEEXPIRESAT", async () => {
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
  it("contain active and suspended badges: `state` only if suspended, `expiresAt` only if there is an end", async () => {
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

  it("have no badge that the clock has ended, before that is recorded, in whatever order and search", async () => {
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
  });

  it("show a badge again after its end is moved ahead, once and at its old position", async () => {
    const application = await createApplication();
    const first = await issueTo(application, "phone-1", "alice");
    const second = await issueTo(application, "phone-2", "alice");
    await setEnd(application, first, ahead(MINUTE));
    moveClock(MINUTE);
    await runSweep();
    expect(await listedNumbers(application)).toEqual([Number(second)]);
    await setEnd(application, first, null);
    expect(await listedNumbers(application)).toEqual([Number(first), Number(second)]);
  });
});
