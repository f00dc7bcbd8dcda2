import { drizzle } from "drizzle-orm/d1";
import { describe, expect, it } from "vitest";
import { makeSecret } from "../../src/shared/credentials.ts";
import { applicationId as applicationIdSchema } from "../../src/shared/identifiers.ts";
import { applicationSecret, consoleSecret } from "../../src/shared/schema.ts";
import { runSweep } from "../badges/life-support.ts";
import { aroundAllocators, aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication, testSealer } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { failingTrips, LOST } from "../support/faults.ts";
import { homeDatabase } from "../support/home.ts";
import { type Answer, serverHeaders } from "../support/http.ts";
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
  it("gives the same 201 again, and reserves one number", async () => {
    const application = await createApplication();
    const body = { expiresAt: ahead(HOUR), badgeExpiresAt: ahead(DAY) };
    const first = await ask(application, body);
    expect(first).toMatchObject({ status: 201, body });
    moveClock(1);
    const again = await ask(application, body);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect((await readRows(application)).invitations).toHaveLength(1);
    expect((await readRows(application)).badges).toHaveLength(1);
  });

  it("gives requests that race the same 201", async () => {
    const application = await createApplication({ size: 1 });
    const body = { expiresAt: ahead(HOUR) };
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(application, body)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(1);
    expect((await readRows(application)).invitations).toHaveLength(1);
  });

  it.each([
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
  ] as const)("gives the same 201 once the invitation is %s, also when its times have passed", async (_, end) => {
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

  it("422 INVALID_IDEMPOTENCYKEY with another body or udid", async () => {
    const application = await createApplication();
    const body = { expiresAt: ahead(HOUR), badgeExpiresAt: ahead(DAY) };
    expect((await ask(application, body)).status).toBe(201);
    const refused = "422 INVALID_IDEMPOTENCYKEY";
    const others = [
      { ...body, expiresAt: ahead(HOUR + 1) },
      { ...body, badgeExpiresAt: ahead(DAY + 1) },
      { expiresAt: body.expiresAt },
      // The same moment in other words.
      { ...body, expiresAt: body.expiresAt.replace("Z", "+00:00") },
    ];
    for (const other of others) expect(outcome(await ask(application, other))).toBe(refused);
    const otherUdid = { ...serverHeaders(application), udid: "another" };
    expect(outcome(await ask(application, body, otherUdid))).toBe(refused);
    expect(outcome(await ask(application, body))).toBe("201");
  });

  it("422 INVALID_IDEMPOTENCYKEY for those of racing requests whose body is another", async () => {
    const application = await createApplication();
    const bodies = Array.from({ length: 10 }, (_, place) => ({ expiresAt: ahead(HOUR + place) }));
    const answers = await Promise.all(bodies.map((body) => ask(application, body)));
    const outcomes = answers.map(outcome).sort();
    expect(outcomes).toEqual(["201", ...Array.from({ length: 9 }, () => "422 INVALID_IDEMPOTENCYKEY")]);
    expect((await readRows(application)).badges).toHaveLength(1);
  });

  it("is the caller's own: the server, each device, and each application have theirs", async () => {
    const application = await createApplication();
    const other = await createApplication();
    const body = { expiresAt: ahead(HOUR) };
    const answers = [
      await ask(application, body),
      await ask(application, body, {}),
      await ask(application, body, { udid: "another" }),
      await ask(other, body),
    ];
    expect(answers.map(outcome)).toEqual(["201", "201", "201", "201"]);
    expect(new Set(answers.map(({ body: { id } }) => id)).size).toBe(4);
    expect((await ask(application, body, {})).body).toEqual(answers[1]?.body);
    expect((await readRows(application)).invitations.map(({ withSecret }) => Boolean(withSecret))).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("is each person's own, too; the server's two secrets share theirs", async () => {
    const application = await createApplication();
    const body = { expiresAt: ahead(HOUR) };
    const sealer = await testSealer();
    const [second, anns, bens] = await Promise.all([1, 2, 3].map(() => makeSecret(sealer, application.id)));
    if (!second || !anns || !bens) throw new Error("three were made");
    const orm = drizzle(homeDatabase());
    const applicationId = applicationIdSchema.parse(application.id);
    await orm.insert(applicationSecret).values({ ...second.row, applicationId, role: "added", createdAt: 1 });
    for (const [name, { row }] of [["Ann", anns] as const, ["Ben", bens] as const]) {
      await orm.insert(consoleSecret).values({ applicationId, name, id: row.id, digest: row.digest, createdAt: 1 });
    }
    const askWith = (secret: string) =>
      ask(application, body, { ...serverHeaders(application), applicationsecret: secret });
    const [servers, servers2, annsOwn, bensOwn, annsAgain] = [
      await ask(application, body),
      await askWith(second.secret),
      await askWith(anns.secret),
      await askWith(bens.secret),
      await askWith(anns.secret),
    ];
    expect(servers2.body).toEqual(servers.body);
    expect(annsAgain.body).toEqual(annsOwn.body);
    expect(new Set([servers, annsOwn, bensOwn].map(({ body: { id } }) => id)).size).toBe(3);
    const rows = (await readRows(application)).invitations;
    expect(rows.map(({ withSecret }) => Boolean(withSecret))).toEqual([true, true, true]);
  });

  it("gives a token of the form that the platform's telemetry redacts, also where it is derived (section 5)", async () => {
    const application = await createApplication({ size: 200 });
    for (let visit = 0; visit < 60; visit++) {
      const headers = { ...serverHeaders(application), "idempotency-key": `visit-${visit}` };
      const { id } = (await ask(application, { expiresAt: ahead(HOUR) }, headers)).body;
      expect(id).toMatch(/^inv_(?=(.*[A-Z]){2})(?=(.*[a-z]){2})(?=(.*[0-9]){2})[\w-]{32}$/);
    }
  });

  it("has 1 to 255 printable ASCII characters, else 422; a blank one counts as missing", async () => {
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

  it("is judged after the formats, and before times are held against the clock", async () => {
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

  it("leaves neither itself nor its token in any storage", async () => {
    const application = await createApplication();
    const { body } = await ask(application, { expiresAt: ahead(HOUR) });
    expect(body.id).toMatch(/^inv_.{32}$/);
    const stored = JSON.stringify(await everythingStored([application]));
    expect(stored).toContain(String(body.badgeId));
    for (const secret of [String(body.id), String(body.id).slice(4), KEY]) expect(stored).not.toContain(secret);
  });

  it("keeps a pending invitation whose response was lost: the caller can ask again, hours later too", async () => {
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

  it("gets the same 201 when the platform's own repetition found the invitation there", async () => {
    const application = await createApplication();
    const body = { expiresAt: ahead(HOUR) };
    const kind = { name: "once", times: 1, error: LOST, isOvercome: true };
    await aroundObjectD1(application, () => failingTrips("INSERT INTO position", kind, "after"));
    const first = await ask(application, body);
    expect(first.status).toBe(201);
    expect((await ask(application, body)).body).toEqual(first.body);
    const count = homeDatabase().prepare("SELECT count(*) AS count FROM invitation WHERE application_id = ?1");
    expect(await count.bind(application.id).first("count")).toBe(1);
  });
});

describe("revoking an invitation by its number (contract sections 5 and 12)", () => {
  it("works for the server while the number is reserved; `id` of the response is the number", async () => {
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

  it("409 CLAIMED_INVITATION once it is claimed; 404 when expired by the clock, or never reserved", async () => {
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
    expect(outcome(await revoke(application, number))).toBe("404 UNKNOWN_INVITATION");
    for (const wrong of ["17", "0", String(application.lastNumber + 1)]) {
      expect(outcome(await revoke(application, wrong))).toBe("404 UNKNOWN_INVITATION");
    }
  });

  it("404 for a badge that no invitation gave", async () => {
    const application = await createApplication();
    const { body } = await requestInvitation(application, { expiresAt: ahead(HOUR) });
    await claim(application, "phone", "alice", body.id);
    const { badges } = await readRows(application);
    await homeDatabase().prepare("UPDATE badge SET invitation = NULL WHERE number = ?1").bind(badges[0]?.number).run();
    expect(outcome(await revoke(application, String(body.badgeId)))).toBe("404 UNKNOWN_INVITATION");
  });
});
