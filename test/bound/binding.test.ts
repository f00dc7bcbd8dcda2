import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CREATOR, hoursAhead, invite } from "../http/support/invitations.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { UNLIMITED } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { call, callServer, serverHeaders } from "../support/http.ts";
import { badgeRows, eventRows } from "../support/rows.ts";
import {
  boundPhone,
  claimsOf,
  expectInvalidProof,
  newPhone,
  outcome,
  type Phone,
  readBadge,
  rebind,
} from "./support.ts";

beforeEach(() => {
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response(null, { status: 204 }));
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** An invitation that is created with the application's secret, for alice. */
async function inviteAlice(application: TestApplication) {
  const { status, body } = await call("POST", "/v1/invitation", {
    headers: { ...serverHeaders(application), udid: CREATOR },
    body: { expiresAt: hoursAhead(1), userId: "alice" },
  });
  expect(status).toBe(201);
  return { id: String(body.id), badgeId: String(body.badgeId) };
}

/**
 * Calls that race: none goes on before each has made its round trip, or is about to.
 *
 * @param text of the round trips that wait for each other
 * @param moment whether they wait before D1 gets them, or with its response
 */
async function raceAt<T>(
  text: string,
  moment: "before" | "after",
  calls: readonly ((bindings: Partial<Env>) => Promise<T>)[],
): Promise<T[]> {
  let arrived = 0;
  const meet = async () => {
    arrived++;
    while (arrived < calls.length) await scheduler.wait(1);
  };
  const DB = aroundD1(homeDatabase(), async (statements, send) => {
    if (!isAbout(statements, text)) return send();
    if (moment === "before") await meet();
    const result = await send();
    if (moment === "after") await meet();
    return result;
  });
  const results = await Promise.all(
    calls.map((act) => act({ ...bindDatabase(DB), DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED })),
  );
  expect(arrived, "calls that met").toBeGreaterThanOrEqual(calls.length);
  return results;
}

// Who may use a badge from then on: test/http/authorization/proofs.test.ts.
describe("the call that creates a badge with a proof binds it to that key (contract section 15)", () => {
  it("a claim with a proof also binds the badge to its key, and the invitation's token then belongs to that key", async () => {
    const application = await createApplication();
    const { id: invitationToken, badgeId } = await invite(application);
    const phone = await newPhone(application);
    const keyThumbprint = await phone.thumbprint();
    for (const status of [201, 200]) {
      const claimed = await phone.logIn("guest", { invitationToken });
      expect([outcome(claimed), claimed.body.keyThumbprint]).toEqual([`${status} ${badgeId}`, keyThumbprint]);
    }
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint });
    const thief = await phone.withOtherKey();
    for (const refused of [
      await thief.logIn("guest", { invitationToken }),
      await phone.logInUnproved("guest", { invitationToken }),
      await thief.logIn("guest"),
    ]) {
      expectInvalidProof(refused);
    }
  });

  it("a bound badge, its changes and its events name the key's thumbprint (RFC 7638)", async () => {
    const events = "badge:created,badge:suspended";
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges", events });
    const { phone, badgeId } = await boundPhone(application);
    const { id: invitationToken } = await invite(application);
    const guest = await newPhone(application, "guest");
    await guest.logIn("guest", { invitationToken });
    const unbound = await newPhone(application, "old");
    await unbound.logInUnproved("old");
    const keyThumbprint = await phone.thumbprint();
    expect(keyThumbprint).toMatch(/^[\w-]{43}$/);
    const badge = { id: badgeId, userId: "alice", state: "active", keyThumbprint };
    expect(await readBadge(application, badgeId)).toMatchObject(badge);
    const { changes } = (await callServer(application, "GET", "/v1/changes")).body;
    const keys = [keyThumbprint, await guest.thumbprint(), undefined];
    expect(Array.isArray(changes) && changes.map((change) => change.keyThumbprint)).toEqual(keys);
    const created = (await eventRows(application)).map(({ payload }) => JSON.parse(payload).data);
    expect(created.map((data) => data.keyThumbprint)).toEqual(keys);
    expect(created.map((data) => "keyThumbprint" in data)).toEqual([true, true, false]);
    expect(claimsOf((await unbound.sign()).body.signature)).not.toHaveProperty("cnf");
    const suspended = await callServer(application, "PATCH", `/v1/badges/${badgeId}/suspend`);
    expect(suspended.body).toMatchObject({ state: "suspended", keyThumbprint });
    const payload = await homeDatabase()
      .prepare("SELECT payload FROM webhook_event WHERE application_id = ? AND event = 'badge:suspended'")
      .bind(application.id)
      .first<string>("payload");
    expect(JSON.parse(payload ?? "{}").data).toMatchObject({ id: badgeId, keyThumbprint });
  });
});

/** A login that races, by whom, and with what besides the user. */
interface Rival {
  phone: Phone;
  isProved?: boolean;
  more?: object;
}

describe("phones with one udid that race (contract section 15): one key gets the badge, whoever has none of it 401", () => {
  const rivalsOf = async (application: TestApplication, count: number, more = {}): Promise<Rival[]> =>
    Promise.all(Array.from({ length: count }, async () => ({ phone: await newPhone(application), more })));

  it.each<[name: string, prepare: (application: TestApplication) => Promise<Rival[]>, settings?: object]>([
    ["for the first badge, with different keys", (application) => rivalsOf(application, 2)],
    [
      "for the first badge, of which one has a key",
      async (application) => [
        ...(await rivalsOf(application, 1)),
        { phone: await newPhone(application), isProved: false },
      ],
    ],
    [
      "for the first badge, with the same key",
      async (application) => {
        const [rival] = await rivalsOf(application, 1);
        return rival ? [rival, rival, rival] : [];
      },
    ],
    [
      "for an invitation",
      async (application) => rivalsOf(application, 2, { invitationToken: (await invite(application)).id }),
    ],
    [
      "for a badge that is to be rebound",
      async (application) => {
        await rebind(application, (await boundPhone(application)).badgeId);
        return rivalsOf(application, 3);
      },
    ],
    [
      "for an unbound badge, with --bind-until",
      async (application) => {
        await (await newPhone(application)).logInUnproved();
        return rivalsOf(application, 3);
      },
      { bindUntil: Date.now() + 3_600_000 },
    ],
  ])("%s", async (name, prepare, settings = {}) => {
    const isNew = /first badge|invitation/.test(name);
    for (let round = 0; round < 3; round++) {
      const application = await createApplication(settings);
      const rivals = await prepare(application);
      const logins = rivals.map(
        ({ phone, ...login }) =>
          (bindings: Partial<Env>) =>
            phone.logInTo(bindings, login),
      );
      const answers = await raceAt("FROM badge", "after", logins);
      const [badge, ...more] = await badgeRows(application);
      expect(more).toEqual([]);
      const badgeId = String(badge?.number);
      const { keyThumbprint } = await readBadge(application, badgeId);
      const keys = await Promise.all(
        rivals.map(({ phone, isProved = true }) => (isProved ? phone.thumbprint() : undefined)),
      );
      // Whoever came first with a key has bound it.
      expect(keyThumbprint).toBe(keys[answers.findIndex(({ status }) => status === (isNew ? 201 : 200))]);
      for (const [place, answer] of answers.entries()) {
        if (keyThumbprint !== undefined && keys[place] !== keyThumbprint) expectInvalidProof(answer);
        else expect(outcome(answer)).toMatch(new RegExp(`^20[01] ${badgeId}$`));
      }
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(isNew ? 1 : 0);
    }
  });
});

// By which keys with which invitations: test/allocator/decide/claims.test.ts.
describe("replacing a bound badge by a claim (contract section 15)", () => {
  it.each<[string, "its own" | "another", (application: TestApplication) => ReturnType<typeof invite>]>([
    ["created without the secret", "its own", (application) => invite(application)],
    ["created with the secret that names the user", "another", inviteAlice],
  ])("with an invitation %s takes a proof by %s key, and a refused claim uses nothing up", async (_, key, make) => {
    const application = await createApplication();
    const { phone, badgeId: old } = await boundPhone(application);
    const next = await phone.withOtherKey();
    const { id: invitationToken, badgeId } = await make(application);
    expectInvalidProof(await phone.logInUnproved("alice", { invitationToken }));
    if (key === "its own") expectInvalidProof(await next.logIn("alice", { invitationToken }));
    expect(outcome(await phone.logIn())).toBe(`200 ${old}`);
    const [claimer, other] = key === "its own" ? [phone, next] : [next, phone];
    expect(outcome(await claimer.logIn("alice", { invitationToken }))).toBe(`201 ${badgeId}`);
    expect(await readBadge(application, old)).toMatchObject({ state: "replaced" });
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await claimer.thumbprint() });
    expect(outcome(await claimer.sign())).toBe(`200 ${badgeId}`);
    expectInvalidProof(await other.logIn());
  });

  it("replacing an unbound badge by a claim needs no key, as ever, and the new one is bound if the claim is proved", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    await phone.logInUnproved();
    const { id: invitationToken, badgeId } = await invite(application);
    expect(outcome(await phone.logIn("alice", { invitationToken }))).toBe(`201 ${badgeId}`);
    expectInvalidProof(await phone.logInUnproved());
  });
});

describe("what is wrong first (contract section 15)", () => {
  it("a wrong key is reported before the badge's state, on login and on signing", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const thief = await phone.withOtherKey();
    await callServer(application, "PATCH", `/v1/badges/${badgeId}/suspend`);
    for (const call of [thief.logIn(), thief.sign(), phone.logInUnproved(), phone.signUnproved()]) {
      expectInvalidProof(await call);
    }
    expect(outcome(await phone.logIn())).toBe("403 SUSPENDED_BADGE");
    expect(outcome(await phone.sign())).toBe("403 SUSPENDED_BADGE");
  });

  it("the invitation is reported before the key, a blocked user before the key, and the key before the state", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const thief = await phone.withOtherKey();
    expect(outcome(await thief.logIn("alice", { invitationToken: "inv_unknown" }))).toBe("404 UNKNOWN_INVITATION");
    const { id: invitationToken } = await invite(application);
    await callServer(application, "PATCH", `/v1/badges/${badgeId}/revoke`);
    expectInvalidProof(await thief.logIn("alice", { invitationToken }));
    expect(outcome(await phone.logIn("alice", { invitationToken }))).toBe("403 REVOKED_BADGE");
    await callServer(application, "PATCH", "/v1/users/alice/block");
    expect(outcome(await thief.logIn("alice", { invitationToken }))).toBe("403 BLOCKED_USER");
    expectInvalidProof(await thief.logIn("alice"));
    expect(outcome(await thief.logIn("bob"))).not.toContain("INVALID_PROOF");
    // Where the blocked user has no badge there is no key to prove.
    expect(outcome(await (await newPhone(application, "tablet")).logIn())).toBe("403 BLOCKED_USER");
  });
});
