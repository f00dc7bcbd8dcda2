import { describe, expect, it } from "vitest";
import { invitationTokenOf, newInvitationToken } from "../../src/shared/identifiers.ts";
import { createApplication } from "../support/application.ts";
import { ahead, HOUR, moveClock, SECOND, useStandingClock } from "../support/clock.ts";
import { outcome } from "../support/http.ts";
import { claim, invite, requestInvitation, revoke } from "../support/invitations.ts";
import { RECORDED_EVENTS, readRows } from "../support/rows.ts";
import { everythingStored } from "../support/stored.ts";

useStandingClock();

describe("the invitation token (contract sections 5 and 9)", () => {
  const FORM = /^inv_(?=(.*[A-Z]){2})(?=(.*[a-z]){2})(?=(.*[0-9]){2})[\w-]{32}$/;

  it("an invitation token has a form that the platform's telemetry redacts from URLs, and 128 random bits or more", async () => {
    const tokens = Array.from({ length: 2000 }, newInvitationToken);
    for (const token of tokens) expect(token).toMatch(FORM);
    expect(new Set(tokens).size).toBe(tokens.length);
    for (const place of Array.from({ length: 32 }).keys()) {
      const letters = new Set(tokens.map((token) => token.charAt("inv_".length + place)));
      expect(Math.log2(letters.size) * 32).toBeGreaterThanOrEqual(128);
    }
    expect(invitationTokenOf(new Uint8Array(24))).toBeNull();
    expect((await invite(await createApplication())).token).toMatch(FORM);
  });

  it("an invitation token, or the Idempotency-Key that it was derived from, stands nowhere in D1 or in the object until it is claimed, and then in the event's payload alone", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    const [{ token }, revoked, expired] = [
      await invite(application),
      await invite(application),
      await invite(application, ahead(SECOND)),
    ];
    const key = { "idempotency-key": "visit 4711" };
    const derived = await requestInvitation(application, { expiresAt: ahead(HOUR) }, key);
    for (const secret of [token, String(derived.body.id).slice(4), "visit 4711"]) {
      expect(await placesOf(secret, application)).toEqual([]);
    }
    expect(outcome(await claim(application, "device", "alice", token))).toBe("201");
    expect(await placesOf(token, application)).toEqual(["the object", "webhook_event.payload"]);
    await revoke(application, revoked.token);
    moveClock(SECOND);
    for (const ended of [revoked, expired]) {
      expect((await claim(application, "device", "alice", ended.token)).status).toBe(410);
      expect(await placesOf(ended.token, application)).toEqual([]);
    }
  });
});

/** Columns of D1, and the object's storage, that contain a text. */
async function placesOf(text: string, application: { id: string }): Promise<string[]> {
  const places = new Set<string>();
  for (const [table, rows] of Object.entries(await everythingStored([application]))) {
    for (const [column, value] of rows.flatMap((row) => Object.entries(row ?? {}))) {
      if (String(value).includes(text))
        places.add(table.endsWith(application.id) ? "the object" : `${table}.${column}`);
    }
  }
  return [...places].sort();
}

it("the server gets the token, number and expiresAt of an invitation, and when it revokes that, revokedAt too, the same in every response (contract section 5)", async () => {
  const application = await createApplication();
  const expiresAt = ahead(HOUR).replace("Z", "000+00:00");
  const { status, body } = await requestInvitation(application, { expiresAt });
  const reserved = { id: expect.any(String), badgeId: expect.stringMatching(/^[1-9]\d*$/), expiresAt };
  expect([status, body]).toEqual([201, reserved]);
  const token = String(body.id);
  const first = await revoke(application, token);
  expect([first.status, first.body]).toEqual([200, { ...body, revokedAt: new Date().toISOString() }]);
  moveClock(2 * HOUR);
  expect(await revoke(application, token)).toMatchObject({ status: 200, body: first.body });
  const stranger = { applicationid: application.id, udid: "another device" };
  expect(outcome(await revoke(application, token, stranger))).toBe("404 UNKNOWN_INVITATION");
});

it("a used-up range has a number again from the moment an invitation expires, before any sweep (contract sections 1 and 5)", async () => {
  const application = await createApplication({ size: 1 });
  const first = await invite(application, ahead(SECOND));
  moveClock(SECOND - 1);
  expect(outcome(await requestInvitation(application, { expiresAt: ahead(HOUR) }))).toBe("503 NUMBERS_EXHAUSTED");
  moveClock(1);
  const second = await invite(application, ahead(SECOND));
  expect(second.number).toBe(first.number);
  // Noted, so neither a sweep nor another request gives it back again.
  expect((await readRows(application)).invitations[0]).toMatchObject({ state: "expired" });
  moveClock(SECOND);
  expect(Number((await claim(application, "device", "alice", null)).body.badgeId)).toBe(first.number);
  for (const { token } of [first, second]) {
    expect(outcome(await claim(application, "device", "alice", token))).toBe("410 EXPIRED_INVITATION");
  }
});
