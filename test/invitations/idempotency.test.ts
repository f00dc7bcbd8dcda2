import { describe, expect, it } from "vitest";
import { signIn } from "../http/support/people.ts";
import { addSecret, createApplication, type TestApplication } from "../support/application.ts";
import { ahead, HOUR, moveClock, useStandingClock } from "../support/clock.ts";
import { type Answer, outcome, serverHeaders } from "../support/http.ts";
import { CREATOR, claim, requestInvitation, revoke } from "../support/invitations.ts";
import { readRows } from "../support/rows.ts";
import { sweep } from "../support/sweep.ts";

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
  it("an Idempotency-Key gets the same 201 after the times have passed and the expiry is recorded, and with another body 422", async () => {
    const application = await createApplication({ size: 2 });
    const body = { expiresAt: ahead(HOUR), badgeExpiresAt: ahead(2 * HOUR) };
    const first = await ask(application, body);
    expect(first.status).toBe(201);
    for (const sweeps of [0, 1]) {
      moveClock(2 * HOUR);
      if (sweeps > 0) await sweep();
      const again = await ask(application, body);
      expect([again.status, again.body]).toEqual([201, first.body]);
      expect(outcome(await ask(application, { ...body, name: "Ada" }))).toBe("422 INVALID_IDEMPOTENCYKEY");
    }
    expect((await readRows(application)).invitations).toHaveLength(1);
  });

  it("an Idempotency-Key is the caller's own: the server with both its secrets, each person, each device, and each application", async () => {
    const [application, other] = [await createApplication(), await createApplication()];
    const body = { expiresAt: ahead(HOUR) };
    const second = await addSecret(application, "added");
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
    expect((await ask(application, body, { ...server, applicationsecret: second })).body).toEqual(own[0]?.body);
    const { invitations } = await readRows(application);
    expect(invitations.map(({ withSecret }) => withSecret)).toEqual([true, true, true, false, false]);
  });

  it("an Idempotency-Key has 1 to 255 printable ASCII characters, else 422; a blank one counts as missing", async () => {
    const application = await createApplication();
    const askWith = (key: string) =>
      requestInvitation(application, { expiresAt: ahead(HOUR) }, { "idempotency-key": key });
    for (const key of ["a", "~".repeat(255), "with space"]) expect(outcome(await askWith(key))).toBe("201");
    for (const key of ["a".repeat(256), "ü", "a\tb"]) {
      expect(outcome(await askWith(key))).toBe("422 INVALID_IDEMPOTENCYKEY");
    }
    const blank = [await askWith(""), await askWith("  ")];
    expect(blank.map(outcome)).toEqual(["201", "201"]);
    expect(blank[0]?.body.id).not.toBe(blank[1]?.body.id);
  });

  it("an Idempotency-Key is judged after the formats, and before times are held against the clock", async () => {
    const application = await createApplication();
    const longKey = { ...serverHeaders(application), "idempotency-key": "a".repeat(256) };
    for (const [body, code] of [
      [{}, "UNDEFINED_EXPIRESAT"],
      [{ expiresAt: ahead(HOUR), badgeExpiresAt: "soon" }, "INVALID_BADGEEXPIRESAT"],
      [{ expiresAt: ahead(-HOUR) }, "INVALID_IDEMPOTENCYKEY"],
    ] as const) {
      expect(outcome(await requestInvitation(application, body, longKey))).toBe(`422 ${code}`);
    }
    expect(outcome(await ask(application, { expiresAt: ahead(-HOUR) }))).toBe("422 INVALID_EXPIRESAT");
  });
});

it("an invitation is revoked by its number with the secret alone, while the number is reserved; `id` of the response is the number (contract sections 5 and 12)", async () => {
  const [application, other] = [await createApplication(), await createApplication()];
  const expiresAt = ahead(HOUR);
  const { body } = await requestInvitation(application, { expiresAt });
  const number = String(body.badgeId);
  const byDevice = await revoke(application, number, { applicationid: application.id, udid: CREATOR });
  for (const refused of [byDevice, await revoke(other, number), await revoke(application, "17")]) {
    expect(outcome(refused)).toBe("404 UNKNOWN_INVITATION");
  }
  const answer = await revoke(application, number);
  expect([answer.status, answer.body]).toEqual([
    200,
    { id: number, badgeId: number, expiresAt, revokedAt: new Date().toISOString() },
  ]);
  expect(outcome(await claim(application, "phone", "alice", body.id))).toBe("410 REVOKED_INVITATION");
  const { body: badge } = await claim(application, "tablet", "bob", null);
  for (const wrong of [number, String(badge.badgeId)]) {
    expect(outcome(await revoke(application, wrong))).toBe("404 UNKNOWN_INVITATION");
  }
});
