import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CREATOR, hoursAhead, invite } from "../http/support/invitations.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { call, serverHeaders } from "../support/http.ts";
import { badgeRows, eventRows } from "../support/rows.ts";
import {
  boundPhone,
  claimsOf,
  expectInvalidProof,
  newPhone,
  outcome,
  raceAt,
  readBadge,
  serverCall,
} from "./support.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response(null, { status: 204 }));
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("the call that creates a badge with a proof binds it to that key (contract section 15)", () => {
  it("and from then on both device calls need a proof by the same key", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
    const thief = await phone.withOtherKey();
    for (const refused of [
      await phone.logInUnproved(),
      await phone.signUnproved(),
      await thief.logIn(),
      await thief.sign(),
    ]) {
      expectInvalidProof(refused);
    }
  });

  it("so a lost 201 is repeated with the same key and gets its 200, and nobody else gets the number", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expectInvalidProof(await (await phone.withOtherKey()).logIn());
    expect(await badgeRows(application)).toHaveLength(1);
  });

  it("and no later proof does: an unbound badge is used with a proof, with another one, and without one", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const badgeId = String((await phone.logInUnproved()).body.badgeId);
    const other = await phone.withOtherKey();
    for (const granted of [
      await phone.logIn(),
      await other.logIn(),
      await phone.logInUnproved(),
      await phone.sign(),
      await other.sign(),
      await phone.signUnproved(),
    ]) {
      expect(outcome(granted)).toBe(`200 ${badgeId}`);
    }
    expect(await readBadge(application, badgeId)).not.toHaveProperty("keyThumbprint");
    expect(claimsOf((await phone.sign()).body.signature)).not.toHaveProperty("cnf");
  });

  it("also when it claims an invitation, whose token then belongs to that key", async () => {
    const application = await createApplication();
    const { id: invitationToken, badgeId } = await invite(application);
    const phone = await newPhone(application);
    const keyThumbprint = await phone.thumbprint();
    const claimed = await phone.logIn("guest", { invitationToken });
    expect([outcome(claimed), claimed.body.keyThumbprint]).toEqual([`201 ${badgeId}`, keyThumbprint]);
    const repeated = await phone.logIn("guest", { invitationToken });
    expect([outcome(repeated), repeated.body.keyThumbprint]).toEqual([`200 ${badgeId}`, keyThumbprint]);
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await phone.thumbprint() });
    const thief = await phone.withOtherKey();
    for (const refused of [
      await thief.logIn("guest", { invitationToken }),
      await phone.logInUnproved("guest", { invitationToken }),
      await thief.logIn("guest"),
    ]) {
      expectInvalidProof(refused);
    }
  });

  it("and the badge, its changes and its event tell the key's thumbprint (RFC 7638), if there is a key", async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges" });
    const { phone, badgeId } = await boundPhone(application);
    const { id: invitationToken } = await invite(application);
    const guest = await newPhone(application, "guest");
    await guest.logIn("guest", { invitationToken });
    await (await newPhone(application, "old")).logInUnproved("old");
    const keyThumbprint = await phone.thumbprint();
    expect(keyThumbprint).toMatch(/^[\w-]{43}$/);
    expect(await readBadge(application, badgeId)).toMatchObject({
      id: badgeId,
      userId: "alice",
      state: "active",
      keyThumbprint,
    });
    const { changes } = (await serverCall(application, "GET", "/v1/changes")).body;
    const keys = [keyThumbprint, await guest.thumbprint(), undefined];
    expect(Array.isArray(changes) && changes.map((badge) => badge.keyThumbprint)).toEqual(keys);
    const events = (await eventRows(application)).map(({ payload }) => JSON.parse(payload).data);
    expect(events.map((data) => data.keyThumbprint)).toEqual(keys);
    expect(events.map((data) => "keyThumbprint" in data)).toEqual([true, true, false]);
  });

  it("and the key stands in the events of its later changes (contract section 18)", async () => {
    const application = await createApplication({
      webhookUrl: "https://hooks.example/badges",
      events: "badge:suspended",
    });
    const { phone, badgeId } = await boundPhone(application);
    const suspended = await serverCall(application, "PATCH", `/v1/badges/${badgeId}/suspend`);
    const keyThumbprint = await phone.thumbprint();
    expect(suspended.body).toMatchObject({ state: "suspended", keyThumbprint });
    const select = homeDatabase()
      .prepare("SELECT payload FROM webhook_event WHERE application_id = ?")
      .bind(application.id);
    const payload = await select.first<string>("payload");
    expect(JSON.parse(payload ?? "{}").data).toMatchObject({ id: badgeId, keyThumbprint });
  });

  it("but a stranger's new user on that device gets a badge of its own, and hers stays hers", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const stranger = await phone.logInUnproved("mallory");
    expect(stranger.status).toBe(201);
    expect(outcome(await phone.signUnproved())).toBe(`200 ${stranger.body.badgeId}`);
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
  });
});

describe("two phones with one udid (contract section 15)", () => {
  it.each([
    ["and different keys race for the first badge: one gets it, the other 401", true, true],
    ["of which one has a key race for the first badge: there is one badge, of the one that came first", true, false],
  ])("%s", async (_name, ...proved) => {
    for (let round = 0; round < 4; round++) {
      const application = await createApplication();
      const phones = await Promise.all(proved.map(() => newPhone(application)));
      const logins = phones.map(
        (phone, place) => (bindings: Partial<Env>) => phone.logInTo(bindings, { isProved: proved[place] === true }),
      );
      const answers = await raceAt("FROM badge", "after", logins);
      const [badge, ...more] = await badgeRows(application);
      expect(more).toEqual([]);
      const winner = answers.findIndex(({ status }) => status === 201);
      expect(answers[winner]?.body.badgeId).toBe(String(badge?.number));
      const isBound = proved[winner] === true;
      const stored = await readBadge(application, String(badge?.number));
      expect(stored.keyThumbprint).toBe(isBound ? await phones[winner]?.thumbprint() : undefined);
      const loser = answers[1 - winner];
      if (isBound && loser) expectInvalidProof(loser);
      else expect(loser?.status).toBe(200);
    }
  });

  it("and the same key are one phone that calls twice: 201 and 200", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const answers = await Promise.all([phone.logIn(), phone.logIn(), phone.logIn()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 201]);
    expect(await badgeRows(application)).toHaveLength(1);
  });

  it("race for an invitation with different keys: one claims it, the other gets 401", async () => {
    const application = await createApplication();
    const { id: invitationToken, badgeId } = await invite(application);
    const phones = [await newPhone(application), await newPhone(application)];
    const logins = phones.map(
      (phone) => (bindings: Partial<Env>) => phone.logInTo(bindings, { more: { invitationToken } }),
    );
    const answers = await raceAt("FROM badge", "after", logins);
    expect(answers.map(outcome).sort()).toEqual([`201 ${badgeId}`, "401 INVALID_PROOF"]);
  });
});

/** An invitation that is created with the application's secret. @param userId null: anybody may claim it */
async function inviteUser(application: TestApplication, userId: string | null) {
  const { status, body } = await call("POST", "/v1/invitation", {
    headers: { ...serverHeaders(application), udid: CREATOR },
    body: { expiresAt: hoursAhead(1), ...(userId !== null && { userId }) },
  });
  expect(status).toBe(201);
  return { id: String(body.id), badgeId: String(body.badgeId) };
}

describe("replacing a bound badge by a claim (contract section 15)", () => {
  it("needs its key, and the refused claim uses nothing up", async () => {
    const application = await createApplication();
    const { phone, badgeId: old } = await boundPhone(application);
    const { id: invitationToken, badgeId } = await invite(application);
    expectInvalidProof(await (await phone.withOtherKey()).logIn("alice", { invitationToken }));
    expectInvalidProof(await phone.logInUnproved("alice", { invitationToken }));
    expect(outcome(await phone.logIn())).toBe(`200 ${old}`);
    expect(outcome(await phone.logIn("alice", { invitationToken }))).toBe(`201 ${badgeId}`);
    expect(await readBadge(application, old)).toMatchObject({ state: "replaced" });
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
  });

  it("needs no key with an invitation that was created with the secret and names the user, but a proof", async () => {
    const application = await createApplication();
    const { phone, badgeId: old } = await boundPhone(application);
    const next = await phone.withOtherKey();
    const { id: invitationToken, badgeId } = await inviteUser(application, "alice");
    expectInvalidProof(await next.logInUnproved("alice", { invitationToken }));
    expectInvalidProof(await phone.logInUnproved("alice", { invitationToken }));
    expect(outcome(await phone.logIn())).toBe(`200 ${old}`);
    expect(outcome(await next.logIn("alice", { invitationToken }))).toBe(`201 ${badgeId}`);
    expect(await readBadge(application, old)).toMatchObject({ state: "replaced" });
    const { keyThumbprint } = await readBadge(application, badgeId);
    expect(keyThumbprint).toBe(await next.thumbprint());
    expect(outcome(await next.sign())).toBe(`200 ${badgeId}`);
    expectInvalidProof(await phone.logIn());
  });

  it.each([true, false])(
    "needs its key with an invitation that was created with the secret and names nobody (claimed with a proof: %s)",
    async (isProved) => {
      const application = await createApplication();
      const { phone, badgeId: old } = await boundPhone(application);
      const { id: invitationToken, badgeId } = await inviteUser(application, null);
      const next = await phone.withOtherKey();
      const claim = isProved
        ? await next.logIn("alice", { invitationToken })
        : await next.logInUnproved("alice", { invitationToken });
      expectInvalidProof(claim);
      expect(outcome(await phone.logIn())).toBe(`200 ${old}`);
      expect(outcome(await phone.logIn("alice", { invitationToken }))).toBe(`201 ${badgeId}`);
    },
  );

  it("that is unbound needs none, as ever, and the new one is bound if the claim is proved", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    await phone.logInUnproved();
    const { id: invitationToken, badgeId } = await invite(application);
    expect(outcome(await phone.logIn("alice", { invitationToken }))).toBe(`201 ${badgeId}`);
    expectInvalidProof(await phone.logInUnproved());
  });
});

describe("what is wrong first (contract section 15)", () => {
  it("is the key before the badge's state, on login and on signing", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const thief = await phone.withOtherKey();
    await serverCall(application, "PATCH", `/v1/badges/${badgeId}/suspend`);
    for (const call of [thief.logIn(), thief.sign(), phone.logInUnproved(), phone.signUnproved()]) {
      expectInvalidProof(await call);
    }
    expect(outcome(await phone.logIn())).toBe("403 SUSPENDED_BADGE");
    expect(outcome(await phone.sign())).toBe("403 SUSPENDED_BADGE");
  });

  it("is the invitation before the key, a blocked user before the key, and the key before the state", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const thief = await phone.withOtherKey();
    expect(outcome(await thief.logIn("alice", { invitationToken: "inv_unknown" }))).toBe("404 UNKNOWN_INVITATION");
    const { id: invitationToken } = await invite(application);
    await serverCall(application, "PATCH", `/v1/badges/${badgeId}/revoke`);
    expectInvalidProof(await thief.logIn("alice", { invitationToken }));
    expect(outcome(await phone.logIn("alice", { invitationToken }))).toBe("403 REVOKED_BADGE");
    await serverCall(application, "PATCH", "/v1/users/alice/block");
    expect(outcome(await thief.logIn("alice", { invitationToken }))).toBe("403 BLOCKED_USER");
    expectInvalidProof(await thief.logIn("alice"));
    expect(outcome(await thief.logIn("bob"))).not.toContain("INVALID_PROOF");
  });

  it("is, for a blocked user without a badge, the block", async () => {
    const application = await createApplication();
    await serverCall(application, "PATCH", "/v1/users/alice/block");
    expect(outcome(await (await newPhone(application)).logIn())).toBe("403 BLOCKED_USER");
  });
});
