import { drizzle } from "drizzle-orm/d1";
import { describe, expect, it } from "vitest";
import { makeSecret } from "../../src/shared/credentials.ts";
import { applicationSecret } from "../../src/shared/schema.ts";
import { runSweep } from "../badges/life-support.ts";
import { signIn } from "../http/support/people.ts";
import { aroundAllocators } from "../support/allocator.ts";
import { createApplication, type TestApplication, testSealer } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { homeDatabase } from "../support/home.ts";
import { type Answer, call, serverHeaders } from "../support/http.ts";
import { everythingStored } from "../support/stored.ts";
import { claim, outcome, requestInvitation, revoke } from "./support/calls.ts";
import { ahead, DAY, HOUR, moveClock, useStandingClock } from "./support/clock.ts";
import { useQuietLog } from "./support/log.ts";
import { readInvitation, readRows } from "./support/storage.ts";

useQuietLog();
useStandingClock();

const KEY = "visit 4711";

/** By the application's server unless other headers are given. */
function ask(
  application: TestApplication,
  body: unknown,
  headers: Record<string, string> = serverHeaders(application),
): Promise<Answer> {
  return requestInvitation(application, body, { "idempotency-key": KEY, ...headers });
}

describe("Idempotency-Key of POST /v1/invitation (contract section 12)", () => {
  it("requests with one Idempotency-Key that race get the same 201", async () => {
    const application = await createApplication({ size: 1 });
    const body = { expiresAt: ahead(HOUR) };
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(application, body)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(1);
    expect((await readRows(application)).invitations).toHaveLength(1);
  });

  it.each([
    ["pending", async () => moveClock(1)],
    ["claimed", (application: TestApplication, token: string) => claim(application, "phone", "alice", token)],
    ["revoked", (application: TestApplication, token: string) => revoke(application, token)],
    ["expired", async () => moveClock(2 * HOUR)],
    [
      "expired and swept",
      async () => {
        moveClock(2 * HOUR);
        await runSweep();
      },
    ],
  ] as const)("gives the same 201 while the invitation is %s, also when its times have passed", async (_, end) => {
    const application = await createApplication({ size: 2 });
    const body = { expiresAt: ahead(HOUR), badgeExpiresAt: ahead(2 * HOUR) };
    const first = await ask(application, body);
    expect(first.status).toBe(201);
    await end(application, String(first.body.id));
    for (const _time of [1, 2]) {
      const again = await ask(application, body);
      expect([again.status, again.body]).toEqual([201, first.body]);
      moveClock(DAY);
    }
    expect((await readRows(application)).invitations).toHaveLength(1);
  });

  it("422 INVALID_IDEMPOTENCYKEY once the invitation or its user was erased, and no number is taken", async () => {
    const application = await createApplication();
    const body = { expiresAt: ahead(HOUR), name: "Ada", userId: "ada" };
    const server = serverHeaders(application);
    const keys = ["visit of the invitation", "visit of the user"].map((key) => ({ ...server, "idempotency-key": key }));
    const [first, second] = keys.map((headers) => requestInvitation(application, body, headers));
    const paths = [`/v1/invitation/${(await first)?.body.id}/erase`, "/v1/users/ada/erase"];
    expect((await second)?.status).toBe(201);
    for (const path of paths) expect((await call("PATCH", path, { headers: server })).status).toBe(200);
    for (const headers of keys) {
      expect(outcome(await requestInvitation(application, body, headers))).toBe("422 INVALID_IDEMPOTENCYKEY");
    }
    expect((await readRows(application)).invitations).toHaveLength(2);
  });

  it("422 INVALID_IDEMPOTENCYKEY for those of racing requests whose body is another", async () => {
    const application = await createApplication();
    const bodies = Array.from({ length: 10 }, (_, place) => ({ expiresAt: ahead(HOUR + place) }));
    const answers = await Promise.all(bodies.map((body) => ask(application, body)));
    const outcomes = answers.map(outcome).sort();
    expect(outcomes).toEqual(["201", ...Array.from({ length: 9 }, () => "422 INVALID_IDEMPOTENCYKEY")]);
    expect((await readRows(application)).badges).toHaveLength(1);
  });

  it("an Idempotency-Key is the caller's own: the server with both its secrets, each person, each device, and each application", async () => {
    const [application, other] = [await createApplication(), await createApplication()];
    const body = { expiresAt: ahead(HOUR) };
    const second = await makeSecret(await testSealer(), application.id);
    const added = { ...second.row, applicationId: application.id, role: "added", createdAt: 1 } as const;
    await drizzle(homeDatabase()).insert(applicationSecret).values(added);
    const server = serverHeaders(application);
    const [ann, ben] = [await signIn(application, "operator"), await signIn(application, "operator")];
    const callers = [server, ann, ben, {}, { udid: "another" }];
    const own = [];
    for (const headers of callers) own.push(await ask(application, body, headers));
    const foreign = await ask(other, body);
    expect([...own, foreign].map(outcome)).toEqual(Array(6).fill("201"));
    expect(new Set([...own, foreign].map(({ body: { id } }) => id)).size).toBe(6);
    for (const [place, headers] of callers.entries()) {
      expect((await ask(application, body, headers)).body).toEqual(own[place]?.body);
    }
    expect((await ask(application, body, { ...server, applicationsecret: second.secret })).body).toEqual(own[0]?.body);
    const { invitations } = await readRows(application);
    expect(invitations.map(({ withSecret }) => Boolean(withSecret))).toEqual([true, true, true, false, false]);
  });

  it("a token has the form that the platform's telemetry redacts, also where it is derived from an Idempotency-Key (section 5)", async () => {
    const application = await createApplication({ size: 200 });
    for (let visit = 0; visit < 60; visit++) {
      const headers = { ...serverHeaders(application), "idempotency-key": `visit-${visit}` };
      const { id } = (await ask(application, { expiresAt: ahead(HOUR) }, headers)).body;
      expect(id).toMatch(/^inv_(?=(.*[A-Z]){2})(?=(.*[a-z]){2})(?=(.*[0-9]){2})[\w-]{32}$/);
    }
  });

  it("an Idempotency-Key has 1 to 255 printable ASCII characters, else 422; a blank one counts as missing", async () => {
    const application = await createApplication();
    const askWith = (key: string) =>
      requestInvitation(application, { expiresAt: ahead(HOUR) }, { "idempotency-key": key });
    for (const key of ["a", "~".repeat(255), "with space"]) expect(outcome(await askWith(key))).toBe("201");
    for (const key of ["a".repeat(256), "ü", "a\tb"]) {
      expect(outcome(await askWith(key))).toBe("422 INVALID_IDEMPOTENCYKEY");
    }
    const blank = [await askWith(""), await askWith("  "), await askWith(" ")];
    expect(blank.map(outcome)).toEqual(["201", "201", "201"]);
    expect(new Set(blank.map(({ body }) => body.id)).size).toBe(3);
  });

  it("an Idempotency-Key is judged after the formats, and before times are held against the clock", async () => {
    const application = await createApplication();
    const longKey = { ...serverHeaders(application), "idempotency-key": "a".repeat(256) };
    const with256 = async (body: unknown) => outcome(await requestInvitation(application, body, longKey));
    expect(await with256({})).toBe("422 UNDEFINED_EXPIRESAT");
    expect(await with256({ expiresAt: "soon" })).toBe("422 INVALID_EXPIRESAT");
    expect(await with256({ expiresAt: ahead(HOUR), badgeExpiresAt: "soon" })).toBe("422 INVALID_BADGEEXPIRESAT");
    expect(await with256({ expiresAt: ahead(-HOUR) })).toBe("422 INVALID_IDEMPOTENCYKEY");
    expect(outcome(await ask(application, { expiresAt: ahead(-HOUR) }))).toBe("422 INVALID_EXPIRESAT");
    expect(outcome(await ask(application, { expiresAt: ahead(HOUR) }))).toBe("201");
    expect(outcome(await ask(application, { expiresAt: ahead(-HOUR) }))).toBe("422 INVALID_IDEMPOTENCYKEY");
    const wrongSecret = { ...longKey, applicationsecret: "wrong" };
    expect(outcome(await requestInvitation(application, {}, wrongSecret))).toBe("401 INVALID_CREDENTIALS");
  });

  it("neither an Idempotency-Key nor its token is in any storage", async () => {
    const application = await createApplication();
    const { body } = await ask(application, { expiresAt: ahead(HOUR) });
    expect(body.id).toMatch(/^inv_.{32}$/);
    const stored = JSON.stringify(await everythingStored([application]));
    expect(stored).toContain(String(body.badgeId));
    for (const secret of [String(body.id), String(body.id).slice(4), KEY]) expect(stored).not.toContain(secret);
  });

  it("a pending invitation whose response was lost stays: the caller can ask again, hours later too", async () => {
    const application = await createApplication();
    const body = { expiresAt: ahead(3 * HOUR) };
    const ALLOCATOR = aroundAllocators(async (_, reach) => {
      await reach();
      throw new Error("the response is lost");
    });
    const headers = { ...serverHeaders(application), udid: "creator", "idempotency-key": KEY };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const lost = await callWith({ ALLOCATOR }, new Request("https://badges.example/v1/invitation", init));
    expect(lost.status).toBeGreaterThanOrEqual(500);
    moveClock(HOUR);
    await runSweep();
    const again = await ask(application, body);
    expect(again.status).toBe(201);
    expect(await readInvitation(String(again.body.id))).toMatchObject({ state: "pending" });
    expect((await readRows(application)).badges).toHaveLength(1);
    moveClock(HOUR);
    expect((await claim(application, "phone", "alice", again.body.id)).status).toBe(201);
  });
});

describe("revoking an invitation by its number (contract sections 5 and 12)", () => {
  it("the server revokes an invitation by its number while that is reserved; `id` of the response is the number", async () => {
    const application = await createApplication();
    const expiresAt = ahead(HOUR);
    const { body } = await requestInvitation(application, { expiresAt });
    const number = String(body.badgeId);
    const answer = await revoke(application, number);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ id: number, badgeId: number, expiresAt, revokedAt: new Date().toISOString() });
    expect(outcome(await claim(application, "phone", "alice", body.id))).toBe("410 REVOKED_INVITATION");
    expect(outcome(await revoke(application, number))).toBe("404 UNKNOWN_INVITATION");
    expect((await revoke(application, String(body.id))).status).toBe(200);
  });

  it("409 CLAIMED_INVITATION once it is claimed; 404 when expired by the clock, never reserved, or of no invitation", async () => {
    const application = await createApplication();
    const other = await createApplication();
    const [claimed, expired] = [
      await requestInvitation(application, { expiresAt: ahead(HOUR) }),
      await requestInvitation(application, { expiresAt: ahead(HOUR) }),
    ];
    await claim(application, "phone", "alice", claimed.body.id);
    expect(outcome(await revoke(application, String(claimed.body.badgeId)))).toBe("409 CLAIMED_INVITATION");
    const number = String(expired.body.badgeId);
    expect(outcome(await revoke(other, number))).toBe("404 UNKNOWN_INVITATION");
    const byDevice = { applicationid: application.id, udid: "creator" };
    expect(outcome(await revoke(application, number, byDevice))).toBe("404 UNKNOWN_INVITATION");
    moveClock(HOUR);
    const { body: badge } = await claim(application, "tablet", "bob", null);
    for (const wrong of [number, String(badge.badgeId), "17", "0", String(application.lastNumber + 1)]) {
      expect(outcome(await revoke(application, wrong))).toBe("404 UNKNOWN_INVITATION");
    }
  });
});
