import { decodeJwt } from "jose";
import { describe, expect, it } from "vitest";
import { createApplication } from "../support/application.ts";
import { requestBadge, serverHeaders } from "../support/http.ts";
import { invite } from "../support/invitations.ts";
import { boundPhone, expectInvalidProof, newPhone, outcome, type Phone } from "./support.ts";

/** Badges of several users on one device, each logged in once, in this order: by a phone with its key, or by none. */
async function shared({ id }: { id: string }, logins: Record<string, Phone | null>): Promise<Record<string, string>> {
  const badges: Record<string, string> = {};
  for (const [userId, by] of Object.entries(logins)) {
    const issued = by ? await by.logIn(userId) : await requestBadge({ id }, "phone", { userId });
    badges[userId] = String(issued.body.badgeId);
  }
  return badges;
}

it("with a proof the key's last answered badge signs, or the last answered unbound one; without a proof the current one, if it is unbound (contract section 15)", async () => {
  const application = await createApplication();
  const [phone, other, without] = await Promise.all([1, 2, 3].map(() => newPhone(application)));
  if (!phone || !other || !without) expect.fail();
  const badges = await shared(application, { first: null, alice: phone, bob: phone, carol: other });
  const signing = async () => [
    ...[outcome(await phone.sign()), outcome(await other.sign()), outcome(await without.sign())],
    outcome(await phone.signUnproved()),
  ];
  const expectBadges = async (users: readonly string[], unproved?: string) => {
    const granted = users.map((user) => `200 ${badges[user]}`);
    expect(await signing()).toEqual([...granted, unproved ? `200 ${badges[unproved]}` : "401 INVALID_PROOF"]);
  };
  await expectBadges(["bob", "carol", "first"]);
  Object.assign(badges, await shared(application, { second: null }));
  await expectBadges(["bob", "carol", "second"], "second");
  await phone.logIn("alice");
  await expectBadges(["alice", "carol", "second"]);
  await phone.logInUnproved("first");
  await expectBadges(["alice", "carol", "first"], "first");
});

describe("badgeId names the badge that signs (contract section 15)", () => {
  it("badgeId names exactly that badge of this device, bound or not, with its key or not at all", async () => {
    const application = await createApplication();
    const [phone, other] = [await newPhone(application), await newPhone(application)];
    const { alice, bob, dave } = await shared(application, { alice: phone, bob: phone, dave: null });
    for (const badgeId of [alice, bob, dave]) expect(outcome(await phone.sign({ badgeId }))).toBe(`200 ${badgeId}`);
    for (const badgeId of [null, "", " "]) expect(outcome(await phone.sign({ badgeId }))).toBe(`200 ${bob}`);
    expect(outcome(await other.signUnproved({ badgeId: dave }))).toBe(`200 ${dave}`);
    expectInvalidProof(await other.sign({ badgeId: alice }));
    expectInvalidProof(await other.signUnproved({ badgeId: alice }));
  });

  it("badgeId gets 404 for a badge of another device or application, a reserved or free number, and what is no number", async () => {
    const [application, stranger] = [await createApplication(), await createApplication()];
    const { phone, badgeId: own } = await boundPhone(application);
    const { badgeId: ofOther } = await boundPhone(application, "other phone");
    const { badgeId: ofStranger } = await boundPhone(stranger);
    const reserved = String((await invite(application)).number);
    const free = String(application.lastNumber);
    const values = [ofOther, ofStranger, reserved, free, "0", `0${own}`, "9".repeat(17), "x", Number(own), []];
    for (const badgeId of values) {
      expect(outcome(await phone.sign({ badgeId })), JSON.stringify(badgeId)).toBe("404 UNKNOWN_BADGE");
      expect(outcome(await phone.signUnproved({ badgeId })), JSON.stringify(badgeId)).toBe("404 UNKNOWN_BADGE");
    }
  });

  it("the badge named by badgeId is refused by its state, even after a claim has replaced it", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const { token: invitationToken } = await invite(application, undefined, serverHeaders(application));
    await phone.logIn("alice", { invitationToken });
    expect(outcome(await phone.sign({ badgeId }))).toBe("403 REVOKED_BADGE");
    expectInvalidProof(await (await phone.withOtherKey()).sign({ badgeId }));
  });
});

// By which doors that challenge let that phone in: test/client/proofs.test.ts.
it("a bound badge's signature has its key in cnf (RFC 7800) (contract section 15)", async () => {
  const { phone } = await boundPhone(await createApplication());
  expect(decodeJwt(String((await phone.sign()).body.signature)).cnf).toEqual({ jwk: phone.key.publicJwk });
});
