import { describe, expect, it } from "vitest";
import { inParallel } from "../badges/support.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { testContext } from "../support/context.ts";
import { call, requestBadge, serverHeaders } from "../support/http.ts";
import { sweep } from "../support/sweep.ts";
import { claim, invite, outcome, requestInvitation, revoke } from "./support/calls.ts";
import { ahead, HOUR, MINUTE, moveClock, SECOND, useStandingClock } from "./support/clock.ts";
import { useQuietLog } from "./support/log.ts";
import { readInvitation } from "./support/storage.ts";

useQuietLog();
useStandingClock();

async function sweepNow(): Promise<void> {
  await sweep([testContext().context]);
}

/** The number that the next device gets, or the refusal. */
async function nextNumber(application: TestApplication, udid = crypto.randomUUID()): Promise<number | string> {
  const answer = await requestBadge(application, udid, { userId: "somebody" });
  return answer.status === 201 ? Number(answer.body.badgeId) : outcome(answer);
}

describe("which number comes next (contract section 5)", () => {
  it("the next number is a fresh one while there are any, for badges and for invitations", async () => {
    const application = await createApplication({ size: 6 });
    const invitations = [await invite(application), await invite(application)];
    for (const { token } of invitations) await revoke(application, token);
    const freed = invitations.map(({ number }) => number);
    const fresh = [await nextNumber(application), (await invite(application)).number, await nextNumber(application)];
    for (const number of [...fresh, await nextNumber(application)]) expect(freed).not.toContain(number);
    expect([await nextNumber(application), await nextNumber(application)].toSorted()).toEqual(freed.toSorted());
    expect(await nextNumber(application)).toBe("503 NUMBERS_EXHAUSTED");
  });

  it("once the range is used up, the next number is any of the freed ones, whichever was revoked last", async () => {
    const application = await createApplication({ size: 4 });
    const headers = { ...serverHeaders(application), udid: "server" };
    // Asking the rate limiter would take most of the time of this many calls.
    const callUnlimited = (path: string, init: RequestInit) => {
      const request = new Request(`https://badges.example${path}`, { headers, ...init });
      return callWith({ DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED }, request);
    };
    const inviteOne = async () => {
      const request = { method: "POST", body: JSON.stringify({ expiresAt: ahead(HOUR) }) };
      const { body } = await callUnlimited("/v1/invitation", request);
      return { token: String(body.id), number: Number(body.badgeId) };
    };
    const revokeOne = (token: string) => callUnlimited(`/v1/invitation/${token}/revoke`, { method: "PATCH" });
    let invitations = await inParallel(4, inviteOne);
    const order = invitations.map(({ number }) => number).toSorted();
    const drawn = new Map<string, number>();
    for (let round = 0; round < 40; round++) {
      // The smallest is the one that the attacker wants to be next: always the first to come back, or always the last.
      const places = invitations.toSorted((one, other) => one.number - other.number);
      const answers = (round % 2 === 0 ? places : places.toReversed()).map(({ token }) => revokeOne(token));
      expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      const stranger = await inviteOne();
      const rank = `${round % 2} ${order.indexOf(stranger.number)}`;
      drawn.set(rank, (drawn.get(rank) ?? 0) + 1);
      invitations = [stranger, ...(await inParallel(3, inviteOne))];
    }
    // Each comes up 5 times of 20; never in 20 has a probability of 3 in 1,000, and 17 times one far less.
    expect(Math.max(...drawn.values()), JSON.stringify([...drawn])).toBeLessThan(17);
    expect(drawn.size, JSON.stringify([...drawn])).toBeGreaterThanOrEqual(6);
  });

  it.each(["in one call", "at once"])("all who ask %s get a freed number where too few are fresh", async (how) => {
    const application = await createApplication({ size: 8 });
    const reserved = [await invite(application), await invite(application), await invite(application)];
    for (const { token } of reserved) await revoke(application, token);
    const asServer = { ...serverHeaders(application), udid: "server" };
    const body = { expiresAt: ahead(HOUR) };
    for (let fresh = 5; fresh > 1; fresh--) await nextNumber(application);
    if (how === "in one call") {
      const answer = await call("POST", "/v1/invitations", {
        headers: asServer,
        body: { invitations: [body, body, body, body] },
      });
      expect(answer.body.invitations).toEqual(Array(4).fill(expect.objectContaining({ badgeId: expect.any(String) })));
    } else {
      // While the object is busy with the first, the others wait, and are carried out together.
      const busy = call("PATCH", "/v1/users/nobody/block", { headers: asServer, body: {} });
      const answers = await inParallel(4, (index) =>
        index % 2 === 0 ? nextNumber(application) : requestInvitation(application, body).then(outcome),
      );
      expect((await busy).status).toBe(200);
      expect(answers).not.toContain("503 NUMBERS_EXHAUSTED");
    }
    expect(await nextNumber(application)).toBe("503 NUMBERS_EXHAUSTED");
  });

  it("a freed number is not used until the application's reuse delay is over", async () => {
    const application = await createApplication({ reuseAfterSeconds: 60, size: 2 });
    const { token, number } = await invite(application);
    await revoke(application, token);
    moveClock(MINUTE - 1);
    expect(await nextNumber(application)).not.toBe(number);
    expect(await nextNumber(application)).toBe("503 NUMBERS_EXHAUSTED");
    moveClock(1);
    expect(await nextNumber(application)).toBe(number);
  });

  it("the reuse delay counts from the moment of expiry, not from when it is recorded", async () => {
    const application = await createApplication({ reuseAfterSeconds: 60, size: 2 });
    const [swept, unswept] = [await invite(application, ahead(SECOND)), await invite(application, ahead(30 * SECOND))];
    moveClock(29 * SECOND);
    await sweepNow();
    moveClock(32 * SECOND);
    expect(await nextNumber(application)).toBe(swept.number);
    expect(await nextNumber(application)).toBe("503 NUMBERS_EXHAUSTED");
    moveClock(29 * SECOND);
    expect(await nextNumber(application)).toBe(unswept.number);
  });

  it("the next number is never one that a badge had, issued or retired", async () => {
    const size = 8;
    const application = await createApplication({ size });
    const issued = [await nextNumber(application, "first"), await nextNumber(application, "second")];
    for (const udid of ["first", "second"]) {
      const { token, number } = await invite(application);
      expect(outcome(await claim(application, udid, "somebody", token))).toBe("201");
      issued.push(number);
    }
    const revoked = await invite(application);
    await revoke(application, revoked.token);
    await invite(application, ahead(SECOND));
    moveClock(SECOND);
    await sweepNow();
    const rest: (number | string)[] = [];
    for (let count = issued.length; count < size; count++) rest.push(await nextNumber(application));
    expect(new Set([...issued, ...rest]).size).toBe(size);
    expect(rest.every((number) => typeof number === "number")).toBe(true);
    expect(await nextNumber(application)).toBe("503 NUMBERS_EXHAUSTED");
  });
});

describe("a range that is used up (contract sections 1 and 5)", () => {
  it("a used-up range has a number again from the moment an invitation expires, before any sweep", async () => {
    const application = await createApplication({ size: 1 });
    const first = await invite(application, ahead(SECOND));
    moveClock(SECOND - 1);
    expect(outcome(await requestInvitation(application, { expiresAt: ahead(HOUR) }))).toBe("503 NUMBERS_EXHAUSTED");
    moveClock(1);
    const second = await invite(application, ahead(SECOND));
    expect(second.number).toBe(first.number);
    // Noted, so neither a sweep nor another request gives it back again.
    expect(await readInvitation(first.token)).toMatchObject({ state: "expired" });
    moveClock(SECOND);
    expect(await nextNumber(application)).toBe(first.number);
    expect(outcome(await claim(application, "device", "alice", first.token))).toBe("410 EXPIRED_INVITATION");
    expect(outcome(await claim(application, "device", "alice", second.token))).toBe("410 EXPIRED_INVITATION");
  });
});
