import { decodeJwt } from "jose";
import { describe, expect, it } from "vitest";
import { expectInSync } from "../allocator/support.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { ahead, DAY, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "../support/clock.ts";
import { type Answer, callServer, outcome, serverHeaders, sign } from "../support/http.ts";
import { claim, requestInvitation } from "../support/invitations.ts";
import { RECORDED_EVENTS, readRows } from "../support/rows.ts";

useStandingClock();

/** POST /v1/invitation by the application's server. */
const ask = (application: TestApplication, body: object): Promise<Answer> =>
  requestInvitation(application, { expiresAt: ahead(HOUR), ...body }, serverHeaders(application));

/** POST /v1/invitations by the application's server. */
const askMany = (application: TestApplication, invitations: unknown, headers: Record<string, string> = {}) =>
  callServer(application, "POST", "/v1/invitations", { invitations }, { udid: "reception", ...headers });

const itemsOf = ({ body }: Answer): Record<string, unknown>[] =>
  Array.isArray(body.invitations) ? body.invitations : [];

const show = (application: TestApplication, path: string): Promise<Answer> => callServer(application, "GET", path);

const patch = (application: TestApplication, path: string, body: object = {}, headers: Record<string, string> = {}) =>
  callServer(application, "PATCH", path, body, headers);

describe("a visitor's name (contract section 24)", () => {
  it("a visitor's name is in the response and in lists, and with the start on the claimed badge, which signs from then on with `nbf`, and in its event", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const [name, badgeStartsAt] = ["Ada Lovelace", ahead(10 * MINUTE)];
    const { status, body } = await ask(application, { name, badgeStartsAt, badgeExpiresAt: ahead(DAY) });
    expect([status, body]).toMatchObject([201, { name, badgeStartsAt }]);
    const listed = await show(application, "/v1/invitations");
    expect(itemsOf(listed)).toMatchObject([{ badgeId: body.badgeId, name }]);
    for (const granted of ["201", "200"]) {
      expect(outcome(await claim(application, "phone", "ada", body.id))).toBe(granted);
    }
    const badge = await show(application, `/v1/badges/${body.badgeId}`);
    expect(badge.body).toMatchObject({ name, userId: "ada", state: "active", startsAt: badgeStartsAt });
    expect((await show(application, "/v1/badges?q=LOVE")).body).toMatchObject({ badges: [{ name }] });
    expect((await show(application, "/v1/changes")).body).toMatchObject({ changes: [{ name }] });
    await expectInSync(application);
    const { events } = await readRows(application);
    const data = { id: body.badgeId, name, startsAt: badgeStartsAt };
    expect(events.map(({ payload }) => JSON.parse(payload).data)).toMatchObject([data]);
    moveClock(10 * MINUTE - 1);
    expect(outcome(await sign(application, "phone", { base64: "AAAA" }))).toBe("403 EARLY_BADGE");
    moveClock(1);
    const signed = await sign(application, "phone", { base64: "AAAA" });
    expect(decodeJwt(String(signed.body.signature)).nbf).toBe(Math.floor(Date.parse(badgeStartsAt) / 1000));
  });

  it("a visitor's name has 1 to 100 characters, none of them a control character, and a blank one counts as missing", async () => {
    const application = await createApplication();
    for (const name of ["A", "ä".repeat(100), "  "]) expect(outcome(await ask(application, { name }))).toBe("201");
    for (const name of ["a".repeat(101), "Ada\u0007", 17]) {
      expect(outcome(await ask(application, { name }))).toBe("422 INVALID_NAME");
    }
  });
});

it("PATCH sets a badge's start, and null clears it; it must be before the badge's end, else 422 INVALID_STARTSAT (contract section 24)", async () => {
  const application = await createApplication();
  const badgeExpiresAt = ahead(HOUR);
  for (const badgeStartsAt of [badgeExpiresAt, "tomorrow", 17, "2027-01-15T08:00:00"]) {
    expect(outcome(await ask(application, { badgeStartsAt, badgeExpiresAt }))).toBe("422 INVALID_STARTSAT");
  }
  const { body } = await ask(application, {});
  await claim(application, "phone", "ada", body.id);
  const path = `/v1/badges/${body.badgeId}`;
  const startsAt = ahead(HOUR);
  expect(await patch(application, path, { startsAt })).toMatchObject({ status: 200, body: { startsAt } });
  for (const wrong of [{ startsAt, expiresAt: startsAt }, { startsAt: "soon" }]) {
    expect(outcome(await patch(application, path, wrong))).toBe("422 INVALID_STARTSAT");
  }
  expect((await patch(application, path, { startsAt: null })).body).not.toHaveProperty("startsAt");
  const { body: signed } = await sign(application, "phone", { base64: "AAAA" });
  expect(decodeJwt(String(signed.signature))).not.toHaveProperty("nbf");
});

describe("many invitations at once (contract section 24)", () => {
  it("many invitations come in their order, each with its own number or its own error", async () => {
    const application = await createApplication();
    const expiresAt = ahead(HOUR);
    const wrong = [
      [{}, "UNDEFINED_EXPIRESAT"],
      ["no object", "INVALID_JSON"],
      [{ expiresAt, name: "a".repeat(101) }, "INVALID_NAME"],
      [{ expiresAt, badgeExpiresAt: ahead(MINUTE), badgeStartsAt: ahead(HOUR) }, "INVALID_STARTSAT"],
      [{ expiresAt: ahead(-SECOND) }, "INVALID_EXPIRESAT"],
    ] as const;
    const bodies = [{ expiresAt, name: "First" }, ...wrong.map(([body]) => body), { expiresAt, userId: "ada" }];
    const answer = await askMany(application, bodies);
    expect(answer.status).toBe(200);
    const [id, badgeId] = [expect.stringMatching(/^inv_/), expect.any(String)];
    expect(itemsOf(answer)).toEqual([
      { id, badgeId, expiresAt, name: "First" },
      ...wrong.map(([, error]) => ({ error })),
      { id, badgeId, expiresAt, userId: "ada" },
    ]);
    expect(outcome(await claim(application, "phone", "ada", itemsOf(answer).at(-1)?.id))).toBe("201");
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
    await expectInSync(application);
    expect((await readRows(application)).invitations).toHaveLength(2);
  });
});

it("every badge response has the change number as ETag, and an older If-Match gets 412 (contract section 24)", async () => {
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
