import { decodeJwt } from "jose";
import { expect, it } from "vitest";
import { createApplication } from "../support/application.ts";
import { UNLIMITED } from "../support/bindings.ts";
import { ahead, HOUR } from "../support/clock.ts";
import { aroundD1 } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { callServer, serverHeaders } from "../support/http.ts";
import { invite, requestInvitation } from "../support/invitations.ts";
import { badgeRows, RECORDED_EVENTS, readRows } from "../support/rows.ts";
import { boundPhone, expectInvalidProof, newPhone, outcome, type Phone, readBadge, rebind } from "./support.ts";

it("a bound badge, its changes and its events name the key's thumbprint (RFC 7638) (contract section 15)", async () => {
  const application = await createApplication({ ...RECORDED_EVENTS, events: "badge:created,badge:suspended" });
  const { phone, badgeId } = await boundPhone(application);
  const unbound = await newPhone(application, "old");
  await unbound.logInUnproved("old");
  const keyThumbprint = await phone.thumbprint();
  expect(keyThumbprint).toMatch(/^[\w-]{43}$/);
  const { changes } = (await callServer(application, "GET", "/v1/changes")).body;
  expect(Array.isArray(changes) && changes.map((change) => change.keyThumbprint)).toEqual([keyThumbprint, undefined]);
  expect(decodeJwt(String((await unbound.sign()).body.signature))).not.toHaveProperty("cnf");
  const suspended = await callServer(application, "PATCH", `/v1/badges/${badgeId}/suspend`);
  expect(suspended.body).toMatchObject({ state: "suspended", keyThumbprint });
  const { events } = await readRows(application);
  expect(events.map(({ event, payload }) => [event, JSON.parse(payload).data.keyThumbprint])).toEqual([
    ["badge:created", keyThumbprint],
    ["badge:created", undefined],
    ["badge:suspended", keyThumbprint],
  ]);
});

it.each([
  ["for the first badge, one of them without a key", {}],
  ["for a badge that is to be rebound", {}],
  ["for an unbound badge, with --bind-until", { bindUntil: Date.now() + 3_600_000 }],
])(
  "when phones with one udid race %s, one key gets it, and the others get 401 (contract section 15)",
  async (name, settings) => {
    const isNew = name.includes("first");
    const application = await createApplication(settings);
    if (name.includes("rebound")) await rebind(application, (await boundPhone(application)).badgeId);
    if (name.includes("unbound")) await (await newPhone(application)).logInUnproved();
    const phones = await Promise.all(["one", "two", "three"].map(() => newPhone(application)));
    const keys = await Promise.all(
      phones.map((phone, place) => (isNew && place === 2 ? undefined : phone.thumbprint())),
    );
    let arrived = 0;
    // No call goes on before each has looked for the badge.
    const DB = aroundD1(homeDatabase(), async (statements, send) => {
      const result = await send();
      if (!isAbout(statements, "FROM badge")) return result;
      arrived++;
      while (arrived < phones.length) await scheduler.wait(1);
      return result;
    });
    const bindings = { ...bindDatabase(DB), DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED };
    const logIn = (phone: Phone, place: number) => phone.logInTo(bindings, keys[place] ? {} : { proof: "" });
    const answers = await Promise.all(phones.map(logIn));
    const [badge, ...more] = await badgeRows(application);
    expect(more).toEqual([]);
    const badgeId = String(badge?.number);
    const { keyThumbprint } = await readBadge(application, badgeId);
    // Whoever came first with a key has bound it.
    expect(keyThumbprint).toBe(keys[answers.findIndex(({ status }) => status === (isNew ? 201 : 200))]);
    for (const [place, answer] of answers.entries()) {
      if (keyThumbprint !== undefined && keys[place] !== keyThumbprint) expectInvalidProof(answer);
      else expect(outcome(answer)).toMatch(new RegExp(`^20[01] ${badgeId}$`));
    }
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(isNew ? 1 : 0);
  },
);

// By which keys with which invitations: test/allocator/decide/claims.test.ts.
it("an invitation created with the secret that names the user takes a proof by any key, and binds the badge to it; a refused claim uses nothing up (contract section 15)", async () => {
  const application = await createApplication();
  const { phone, badgeId: old } = await boundPhone(application);
  const claimer = await phone.withOtherKey();
  const invited = { expiresAt: ahead(HOUR), userId: "alice" };
  const { body: invitation } = await requestInvitation(application, invited, serverHeaders(application));
  const more = { invitationToken: invitation.id };
  expectInvalidProof(await phone.logInUnproved("alice", more));
  expectInvalidProof(await claimer.logIn("alice", { invitationToken: (await invite(application)).token }));
  expect(outcome(await phone.logIn())).toBe(`200 ${old}`);
  const claimed = await claimer.logIn("alice", more);
  expect([outcome(claimed), claimed.body.keyThumbprint]).toEqual([
    `201 ${invitation.badgeId}`,
    await claimer.thumbprint(),
  ]);
  expect(await readBadge(application, old)).toMatchObject({ state: "replaced" });
  expect(outcome(await claimer.sign())).toBe(`200 ${invitation.badgeId}`);
  // The token, too, belongs to the key that claimed it.
  for (const token of [{}, more]) expectInvalidProof(await phone.logIn("alice", token));
  expect(outcome(await claimer.logIn("alice", more))).toBe(`200 ${invitation.badgeId}`);
});

it("the invitation is reported before the key, a blocked user before the key, and the key before the state (contract section 15)", async () => {
  const application = await createApplication();
  const { phone, badgeId } = await boundPhone(application);
  const thief = await phone.withOtherKey();
  expect(outcome(await thief.logIn("alice", { invitationToken: "inv_unknown" }))).toBe("404 UNKNOWN_INVITATION");
  const { token: invitationToken } = await invite(application);
  await callServer(application, "PATCH", `/v1/badges/${badgeId}/revoke`);
  expectInvalidProof(await thief.logIn("alice", { invitationToken }));
  expectInvalidProof(await thief.sign());
  expect(outcome(await phone.sign())).toBe("403 REVOKED_BADGE");
  expect(outcome(await phone.logIn("alice", { invitationToken }))).toBe("403 REVOKED_BADGE");
  await callServer(application, "PATCH", "/v1/users/alice/block");
  expect(outcome(await thief.logIn("alice", { invitationToken }))).toBe("403 BLOCKED_USER");
  expectInvalidProof(await thief.logIn("alice"));
  // Where the blocked user has no badge there is no key to prove.
  expect(outcome(await (await newPhone(application, "tablet")).logIn())).toBe("403 BLOCKED_USER");
});
