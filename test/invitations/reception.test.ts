import { decodeJwt } from "jose";
import { describe, expect, it, vi } from "vitest";
import { block, unblock } from "../badges/life-support.ts";
import { aroundAllocators } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { type Answer, call, callServer, serverHeaders, sign } from "../support/http.ts";
import { claim, outcome, requestInvitation, revoke } from "./support/calls.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "./support/clock.ts";
import { useQuietLog } from "./support/log.ts";
import { RECORDED_EVENTS, readInvitation, rowsInSync } from "./support/storage.ts";

useQuietLog();
useStandingClock();

/** POST /v1/invitation by the application's server. */
const ask = (application: TestApplication, body: object): Promise<Answer> =>
  requestInvitation(application, { expiresAt: ahead(HOUR), ...body }, serverHeaders(application));

/** POST /v1/invitations by the application's server. */
function askMany(application: TestApplication, invitations: unknown, headers: object = {}): Promise<Answer> {
  const asServer = { ...serverHeaders(application), udid: "reception", ...headers };
  return call("POST", "/v1/invitations", { headers: asServer, body: { invitations } });
}

const itemsOf = ({ body }: Answer): Record<string, unknown>[] =>
  Array.isArray(body.invitations) ? body.invitations : [];

const show = (application: TestApplication, path: string): Promise<Answer> => callServer(application, "GET", path);

const patch = (application: TestApplication, path: string, body: object = {}, headers: object = {}): Promise<Answer> =>
  call("PATCH", path, { headers: { ...serverHeaders(application), ...headers }, body });

describe("a visitor's name (contract section 24)", () => {
  it("a visitor's name is in the response and in lists, and with the start on the claimed badge and in its event", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const badgeStartsAt = ahead(MINUTE);
    const invited = await ask(application, { name: "Ada Lovelace", badgeStartsAt });
    expect(invited).toMatchObject({ status: 201, body: { name: "Ada Lovelace" } });
    const listed = await show(application, "/v1/invitations");
    expect(itemsOf(listed)).toMatchObject([{ badgeId: invited.body.badgeId, name: "Ada Lovelace" }]);
    expect(outcome(await claim(application, "phone", "ada", invited.body.id))).toBe("201");
    const badge = await show(application, `/v1/badges/${invited.body.badgeId}`);
    expect(badge.body).toMatchObject({ name: "Ada Lovelace", userId: "ada" });
    const badges = await show(application, "/v1/badges?q=LOVE");
    expect(badges.body).toMatchObject({ badges: [{ name: "Ada Lovelace" }] });
    expect((await show(application, "/v1/changes")).body).toMatchObject({ changes: [{ name: "Ada Lovelace" }] });
    const { events } = await rowsInSync(application);
    const data = { id: invited.body.badgeId, name: "Ada Lovelace", startsAt: badgeStartsAt };
    expect(events.map(({ payload }) => JSON.parse(payload).data)).toMatchObject([data]);
  });

  it.each([
    ["1 character", "A", "201"],
    ["100 characters", "ä".repeat(100), "201"],
    ["101 characters", "a".repeat(101), "422 INVALID_NAME"],
    ["a control character", "Ada\u0007", "422 INVALID_NAME"],
    ["a number", 17, "422 INVALID_NAME"],
    ["blank, which counts as missing", "  ", "201"],
  ])("a visitor's name: %s", async (_, name, expected) => {
    expect(outcome(await ask(await createApplication(), { name }))).toBe(expected);
  });
});

describe("an invitation that names a user (contract section 24)", () => {
  it("an invitation that names a user is claimed only by that user; others get 403 WRONG_USER, and nothing is consumed", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const { body } = await ask(application, { userId: "ada" });
    expect(body.userId).toBe("ada");
    expect(outcome(await claim(application, "phone", "bob", body.id))).toBe("403 WRONG_USER");
    expect(await readInvitation(String(body.id))).toMatchObject({ state: "pending", claimUserId: null });
    await block(application, "ada");
    expect(outcome(await claim(application, "phone", "ada", body.id))).toBe("403 BLOCKED_USER");
    expect(await readInvitation(String(body.id))).toMatchObject({ state: "pending", claimUserId: null });
    expect((await rowsInSync(application)).events).toEqual([]);
    await unblock(application, "ada");
    expect(outcome(await claim(application, "phone", "ada", body.id))).toBe("201");
    expect(outcome(await claim(application, "phone", "bob", body.id))).toBe("409 CLAIMED_INVITATION");
  });

  it("an invitation accepts only a user ID that a badge could have", async () => {
    const application = await createApplication();
    for (const userId of ["..", "a".repeat(256), "a\u0000", 17]) {
      expect(outcome(await ask(application, { userId })), JSON.stringify(userId)).toBe("422 INVALID_USERID");
    }
  });
});

describe("a badge that has not begun (contract section 24)", () => {
  it("a badge with a start comes from its invitation, and signs from its start on, with `nbf`", async () => {
    const application = await createApplication();
    const badgeStartsAt = ahead(10 * MINUTE);
    const { body } = await ask(application, { badgeStartsAt, badgeExpiresAt: ahead(DAY) });
    expect(body.badgeStartsAt).toBe(badgeStartsAt);
    expect(outcome(await claim(application, "phone", "ada", body.id))).toBe("201");
    expect(outcome(await claim(application, "phone", "ada", body.id))).toBe("200");
    const badge = await show(application, `/v1/badges/${body.badgeId}`);
    expect(badge.body).toMatchObject({ state: "active", startsAt: badgeStartsAt });
    moveClock(10 * MINUTE - 1);
    expect(outcome(await sign(application, "phone", { base64: "AAAA" }))).toBe("403 EARLY_BADGE");
    moveClock(1);
    const signed = await sign(application, "phone", { base64: "AAAA" });
    expect(signed.status).toBe(200);
    expect(decodeJwt(String(signed.body.signature)).nbf).toBe(Math.floor(Date.parse(badgeStartsAt) / 1000));
  });

  it("a badge must begin before it ends: 422 INVALID_STARTSAT", async () => {
    const application = await createApplication();
    const badgeExpiresAt = ahead(HOUR);
    for (const badgeStartsAt of [badgeExpiresAt, ahead(HOUR + 1), "tomorrow", 17, "2027-01-15T08:00:00"]) {
      const answer = await ask(application, { badgeStartsAt, badgeExpiresAt });
      expect(outcome(answer), String(badgeStartsAt)).toBe("422 INVALID_STARTSAT");
    }
  });

  it("PATCH sets a badge's start, and null clears it", async () => {
    const application = await createApplication();
    const { body } = await ask(application, {});
    await claim(application, "phone", "ada", body.id);
    const path = `/v1/badges/${body.badgeId}`;
    const startsAt = ahead(HOUR);
    expect(await patch(application, path, { startsAt })).toMatchObject({ status: 200, body: { startsAt } });
    expect(outcome(await sign(application, "phone", { base64: "AAAA" }))).toBe("403 EARLY_BADGE");
    expect(outcome(await patch(application, path, { startsAt, expiresAt: startsAt }))).toBe("422 INVALID_STARTSAT");
    expect(outcome(await patch(application, path, { startsAt: "soon" }))).toBe("422 INVALID_STARTSAT");
    const cleared = await patch(application, path, { startsAt: null });
    expect(cleared.body).not.toHaveProperty("startsAt");
    const { body: signed } = await sign(application, "phone", { base64: "AAAA" });
    expect(decodeJwt(String(signed.signature))).not.toHaveProperty("nbf");
  });
});

describe("many invitations at once (contract section 24)", () => {
  it("many invitations come in their order, each with its own number or its own error", async () => {
    const application = await createApplication();
    const expiresAt = ahead(HOUR);
    const answer = await askMany(application, [
      { expiresAt, name: "First" },
      { expiresAt: "never" },
      {},
      "no object",
      { expiresAt, name: "a".repeat(101) },
      { expiresAt, badgeExpiresAt: ahead(MINUTE), badgeStartsAt: ahead(HOUR) },
      { expiresAt: ahead(-SECOND) },
      { expiresAt, userId: "ada" },
    ]);
    expect(answer.status).toBe(200);
    const [first, ...others] = itemsOf(answer);
    const last = others.pop();
    expect([first, last]).toMatchObject([
      { id: expect.stringMatching(/^inv_/), expiresAt, name: "First" },
      { id: expect.stringMatching(/^inv_/), userId: "ada" },
    ]);
    expect(others.map(({ error }) => error)).toEqual([
      "INVALID_EXPIRESAT",
      "UNDEFINED_EXPIRESAT",
      "INVALID_JSON",
      "INVALID_NAME",
      "INVALID_STARTSAT",
      "INVALID_EXPIRESAT",
    ]);
    expect(outcome(await claim(application, "phone", "ada", last?.id))).toBe("201");
    expect(outcome(await revoke(application, String(first?.id)))).toBe("200");
  });

  it("a call creates 1 to 100 invitations in at most 256 KiB", async () => {
    const application = await createApplication();
    const one = { expiresAt: ahead(HOUR) };
    const many = (count: number, item: object = one) => Array.from({ length: count }, () => item);
    for (const invitations of [[], many(101), "one", one, undefined]) {
      expect(outcome(await askMany(application, invitations))).toBe("422 INVALID_INVITATIONS");
    }
    const large = await askMany(application, many(100, { ...one, name: "ä".repeat(100), userId: "ä".repeat(255) }));
    expect(itemsOf(large).filter(({ id }) => typeof id === "string")).toHaveLength(100);
    const tooLarge = await askMany(application, many(100, { ...one, more: "x".repeat(2700) }));
    expect(outcome(tooLarge)).toBe("413 PAYLOAD_TOO_LARGE");
  });

  it("many invitations are the same for the same Idempotency-Key, and take one number each", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const invitations = [{ expiresAt: ahead(HOUR), name: "A" }, { expiresAt: ahead(HOUR) }, { expiresAt: "never" }];
    const key = { "idempotency-key": "monday" };
    const [first, again] = [await askMany(application, invitations, key), await askMany(application, invitations, key)];
    expect(first.status).toBe(200);
    expect(again.body).toEqual(first.body);
    const changed = await askMany(application, [{ expiresAt: ahead(DAY) }, invitations[1]], key);
    expect(itemsOf(changed)).toEqual([{ error: "INVALID_IDEMPOTENCYKEY" }, itemsOf(first)[1]]);
    expect((await rowsInSync(application)).invitations).toHaveLength(2);
  });

  it("many invitations cost one call of the application's object", async () => {
    const application = await createApplication();
    await ask(application, {});
    let calls = 0;
    const ALLOCATOR = aroundAllocators((_, reach) => {
      calls++;
      return reach();
    });
    const headers = { ...serverHeaders(application), udid: "reception" };
    const body = { invitations: Array.from({ length: 100 }, () => ({ expiresAt: ahead(HOUR) })) };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const { status } = await callWith({ ALLOCATOR }, new Request("https://badges.example/v1/invitations", init));
    expect([status, calls]).toEqual([200, 1]);
  });

  it("the response says for each invitation whether there was a number left", async () => {
    const application = await createApplication({ size: 2 });
    const body = { expiresAt: ahead(HOUR) };
    const items = itemsOf(await askMany(application, [body, body, body]));
    expect(items.map(({ error }) => error)).toEqual([undefined, undefined, "NUMBERS_EXHAUSTED"]);
  });
});

describe("a badge that somebody else has changed meanwhile (contract section 24)", () => {
  it("every badge response has the change number as ETag, and an older If-Match gets 412", async () => {
    const application = await createApplication();
    const { body } = await ask(application, {});
    await claim(application, "phone", "ada", body.id);
    const path = `/v1/badges/${body.badgeId}`;
    const steps: [string, object][] = [
      [`${path}/suspend`, {}],
      [`${path}/resume`, {}],
      [path, { expiresAt: ahead(DAY) }],
      [`${path}/rebind`, {}],
      [`${path}/revoke`, {}],
    ];
    for (const [step, times] of steps) {
      const shown = await show(application, path);
      const tag = String(shown.headers.get("etag"));
      expect(tag).toMatch(/^"[1-9]\d*"$/);
      const stale = { "if-match": `"${Number(tag.slice(1, -1)) - 1}"` };
      expect(outcome(await patch(application, step, times, stale)), step).toBe("412 CHANGED_BADGE");
      expect((await show(application, path)).body).toEqual(shown.body);
      const changed = await patch(application, step, times, { "if-match": tag });
      expect(outcome(changed), step).toBe("200");
      const now = await show(application, path);
      expect([changed.headers.get("etag"), changed.body]).toEqual([now.headers.get("etag"), now.body]);
    }
    const last = String((await show(application, path)).headers.get("etag"));
    for (const tags of ["*", `W/${last}`, `"1", ${last}`]) {
      expect(outcome(await patch(application, `${path}/revoke`, {}, { "if-match": tags })), tags).toBe("200");
    }
    expect(outcome(await patch(application, `${path}/revoke`, {}, { "if-match": '"none"' }))).toBe("412 CHANGED_BADGE");
  });
});

describe("a limit of new badges in an hour (contract section 7)", () => {
  it("above the hourly limit only new badges get 429, until the next clock hour", async () => {
    vi.setSystemTime(HOUR * Math.ceil(Date.now() / HOUR) + 10 * MINUTE);
    const application = await createApplication({ newBadgesPerHour: 2 });
    const login = (udid: string) => claim(application, udid, "ada", null);
    expect([await login("one"), await login("two")].map(outcome)).toEqual(["201", "201"]);
    const refused = await login("three");
    expect(outcome(refused)).toBe("429 RATE_LIMITED");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(outcome(await login("one"))).toBe("200");
    const { body } = await ask(application, {});
    expect(outcome(await claim(application, "three", "ada", body.id))).toBe("201");
    moveClock(50 * MINUTE - 1);
    expect(outcome(await login("four"))).toBe("429 RATE_LIMITED");
    moveClock(1);
    expect(outcome(await login("four"))).toBe("201");
  });
});
