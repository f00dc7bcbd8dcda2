import { describe, expect, it, vi } from "vitest";
import { createApplication } from "../support/application.ts";
import { moveClock, SECOND, useStandingClock } from "../support/clock.ts";
import { runSql } from "../support/home.ts";
import { callServer, serverHeaders } from "../support/http.ts";
import { invite } from "../support/invitations.ts";
import { boundPhone, expectInvalidProof, newPhone, outcome, readBadge, rebind } from "./support.ts";

useStandingClock();

// How long the window is open, and claims while it is: test/allocator/decide.
describe("PATCH /v1/badges/{id}/rebind (contract section 15)", () => {
  it("rebind lets the first login with another key bind the badge; until then the old key works, and from then on neither it nor a third", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const [next, late] = [await phone.withOtherKey(), await phone.withOtherKey()];
    const opened = await rebind(application, badgeId);
    const keyThumbprint = await phone.thumbprint();
    expect(opened.status).toBe(200);
    expect(opened.body).toMatchObject({ id: badgeId, userId: "alice", state: "active", keyThumbprint });
    for (const granted of [phone.logIn(), phone.sign()]) expect(outcome(await granted)).toBe(`200 ${badgeId}`);
    // Signing binds nothing, nor does a login without a proof or of another user.
    for (const refused of [next.sign(), phone.logInUnproved(), next.signUnproved()]) expectInvalidProof(await refused);
    await next.logIn("bob");
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint });
    for (const granted of [() => next.logIn(), () => next.sign()]) {
      expect(outcome(await granted())).toBe(`200 ${badgeId}`);
    }
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await next.thumbprint() });
    for (const refused of [phone.logIn(), phone.sign(), late.logIn(), next.logInUnproved()]) {
      expectInvalidProof(await refused);
    }
  });

  it("a suspended badge is not rebound, and its window stays open", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const next = await phone.withOtherKey();
    await callServer(application, "PATCH", `/v1/badges/${badgeId}/suspend`);
    expect((await rebind(application, badgeId)).body).toMatchObject({ state: "suspended" });
    expect(outcome(await next.logIn())).toBe("403 SUSPENDED_BADGE");
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await phone.thumbprint() });
    await callServer(application, "PATCH", `/v1/badges/${badgeId}/resume`);
    expect(outcome(await next.logIn())).toBe(`200 ${badgeId}`);
  });
});

it("--bind-until lets the first proof on POST /v1/badge bind an unbound badge until that time, and no later one (contract section 15)", async () => {
  const application = await createApplication();
  const phone = await newPhone(application);
  const badgeId = String((await phone.logInUnproved()).body.badgeId);
  // It takes effect at once, also where older settings are cached.
  const bindUntil = Date.now() + 1500;
  await runSql("UPDATE application SET bind_until = ? WHERE id = ?", bindUntil, application.id);
  vi.setSystemTime(bindUntil);
  expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
  vi.setSystemTime(bindUntil - 1);
  expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
  expect(await readBadge(application, badgeId)).not.toHaveProperty("keyThumbprint");
  expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
  expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await phone.thumbprint() });
  expectInvalidProof(await (await phone.withOtherKey()).logIn());
  expectInvalidProof(await phone.logInUnproved());
});

// Calls of a device without a badge, and what is wrong first: test/http/errors/order.test.ts.
it("--require-proof refuses an unbound badge, even with a valid proof, until rebind lets it be bound or an invitation of the server replaces it (contract section 15)", async () => {
  const application = await createApplication();
  const phone = await newPhone(application);
  const badgeId = String((await phone.logInUnproved()).body.badgeId);
  const guest = await newPhone(application, "guest");
  await guest.logInUnproved();
  await runSql("UPDATE application SET require_proof = 1 WHERE id = ?", application.id);
  moveClock(30 * SECOND);
  for (const refused of [phone.logIn(), phone.sign(), phone.sign({ badgeId }), phone.logInUnproved()]) {
    expectInvalidProof(await refused);
  }
  const stranger = await newPhone(application, "no badge");
  expect(outcome(await stranger.sign())).toBe("404 UNKNOWN_BADGE");
  expectInvalidProof(await stranger.signUnproved({ badgeId: "1" }));
  const { token: invitationToken } = await invite(application);
  expectInvalidProof(await phone.logIn("alice", { invitationToken }));
  await rebind(application, badgeId);
  for (const granted of [() => phone.logIn(), () => phone.sign()]) {
    expect(outcome(await granted())).toBe(`200 ${badgeId}`);
  }
  const byServer = await invite(application, undefined, serverHeaders(application));
  expect(outcome(await guest.logIn("alice", { invitationToken: byServer.token }))).toBe(`201 ${byServer.number}`);
  expect(outcome(await guest.sign())).toBe(`200 ${byServer.number}`);
});
