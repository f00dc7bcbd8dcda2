import { afterEach, describe, expect, it, vi } from "vitest";
import { CREATOR, invite } from "../http/support/invitations.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { bindDatabase, homeDatabase, runSql } from "../support/home.ts";
import { callServer, serverHeaders } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";
import { BADGE, boundPhone, expectInvalidProof, newPhone, outcome, readBadge, rebind } from "./support.ts";

const HOUR_MILLISECONDS = 3_600_000;

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const setClock = (now: number) => vi.useFakeTimers({ toFake: ["Date"], now });

/** What `GET /v1/changes` tells after the last change that was read. */
async function changesAfter(application: TestApplication, cursor = "") {
  const { body, headers } = await callServer(application, "GET", `/v1/changes${cursor && `?cursor=${cursor}`}`);
  return { changes: body.changes, cursor: String(headers.get("pagination-cursor")) };
}

// How long the window is open, and claims while it is: test/allocator/decide.
describe("PATCH /v1/badges/{id}/rebind (contract section 15)", () => {
  it("rebind lets the first login with another key bind the badge, which ends the old key and the window", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const [next, late] = [await phone.withOtherKey(), await phone.withOtherKey()];
    await (await phone.withOtherKey()).logIn("bob");
    const opened = await rebind(application, badgeId);
    const keyThumbprint = await phone.thumbprint();
    expect(opened.status).toBe(200);
    expect(opened.body).toMatchObject({ id: badgeId, userId: "alice", state: "active", keyThumbprint });
    expect(outcome(await next.logIn())).toBe(`200 ${badgeId}`);
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await next.thumbprint() });
    // As every login does, it makes the badge the device's current one.
    const [current] = (await badgeRows(application)).toSorted(
      (one, other) => Number(other.loginSequence) - Number(one.loginSequence),
    );
    expect(String(current?.number)).toBe(badgeId);
    expect(outcome(await next.sign())).toBe(`200 ${badgeId}`);
    for (const refused of [phone.logIn(), phone.sign(), late.logIn(), next.logInUnproved()]) {
      expectInvalidProof(await refused);
    }
  });

  it("until another key binds the badge, the old key works and does not close the window", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const next = await phone.withOtherKey();
    await rebind(application, badgeId);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
    // Signing binds nothing, nor does a login without a proof or of another user.
    for (const refused of [next.sign(), phone.logInUnproved(), next.signUnproved()]) expectInvalidProof(await refused);
    await next.logIn("bob");
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await phone.thumbprint() });
    expect(outcome(await next.logIn())).toBe(`200 ${badgeId}`);
  });

  it("rebind lets an unbound badge get its first key", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const badgeId = String((await phone.logInUnproved()).body.badgeId);
    await rebind(application, badgeId);
    expect(outcome(await phone.logInUnproved())).toBe(`200 ${badgeId}`);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expectInvalidProof(await phone.logInUnproved());
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
  });

  it("the feed shows the change of a key once, but not the opening of the window (contract section 13)", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const before = await changesAfter(application);
    await rebind(application, badgeId);
    expect(await changesAfter(application, before.cursor)).toMatchObject({ changes: [] });
    const next = await phone.withOtherKey();
    await next.logIn("alice", { metadata: { os: "iOS" } });
    const after = await changesAfter(application, before.cursor);
    expect(after.changes).toMatchObject([
      { id: badgeId, keyThumbprint: await next.thumbprint(), metadata: { os: "iOS" } },
    ]);
    expect(await changesAfter(application, after.cursor)).toMatchObject({ changes: [] });
  });

  it("a suspended or expired badge is not rebound, and its window stays open", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const next = await phone.withOtherKey();
    await callServer(application, "PATCH", `/v1/badges/${badgeId}/suspend`);
    expect((await rebind(application, badgeId)).body).toMatchObject({ state: "suspended" });
    expect(outcome(await next.logIn())).toBe("403 SUSPENDED_BADGE");
    await callServer(application, "PATCH", `/v1/badges/${badgeId}`, { expiresAt: "2020-01-01T00:00:00Z" });
    expect((await rebind(application, badgeId)).body).toMatchObject({ state: "expired" });
    expect(outcome(await next.logIn())).toBe("403 EXPIRED_BADGE");
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await phone.thumbprint() });
    await callServer(application, "PATCH", `/v1/badges/${badgeId}`, { expiresAt: null });
    await callServer(application, "PATCH", `/v1/badges/${badgeId}/resume`);
    expect(outcome(await next.logIn())).toBe(`200 ${badgeId}`);
  });

  it("rebind gets 404 for what is not a badge, and 409 for a revoked or replaced one", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const { id: invitationToken, badgeId: reserved } = await invite(application);
    for (const id of [reserved, String(application.lastNumber), "x", "0", "9".repeat(20)]) {
      expect(outcome(await rebind(application, id)), id).toBe("404 UNKNOWN_BADGE");
    }
    await phone.logIn("alice", { invitationToken });
    await callServer(application, "PATCH", `/v1/badges/${reserved}/revoke`);
    for (const id of [badgeId, reserved]) expect(outcome(await rebind(application, id))).toBe("409 ENDED_BADGE");
  });

  it("a login re-reads a badge that another call changed meanwhile before it binds a key", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    await rebind(application, badgeId);
    const next = await phone.withOtherKey();
    const body = JSON.stringify({ userId: "alice" });
    const headers = { applicationid: application.id, udid: phone.udid, DPoP: await next.prove(BADGE, body) };
    let interruptions = 0;
    const DB = aroundD1(homeDatabase(), async (statements, send) => {
      const seen = await send();
      if (isAbout(statements, "FROM badge") && interruptions++ === 0) {
        await callServer(application, "PATCH", `/v1/badges/${badgeId}/suspend`);
      }
      return seen;
    });
    const request = new Request(`https://badges.example${BADGE}`, { method: "POST", headers, body });
    expect(outcome(await callWith({ ...bindDatabase(DB) }, request))).toBe("403 SUSPENDED_BADGE");
    expect(interruptions).toBe(1);
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await phone.thumbprint() });
  });
});

describe("--bind-until (contract section 15)", () => {
  it("--bind-until lets the first proof on POST /v1/badge bind an unbound badge until that time, and no later one", async () => {
    const bindUntil = Date.now() + HOUR_MILLISECONDS;
    const application = await createApplication({ bindUntil });
    const phone = await newPhone(application);
    const badgeId = String((await phone.logInUnproved()).body.badgeId);
    setClock(bindUntil);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    setClock(bindUntil - 1);
    const before = await changesAfter(application);
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
    expect(outcome(await phone.logInUnproved())).toBe(`200 ${badgeId}`);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    const { changes } = await changesAfter(application, before.cursor);
    expect(changes).toMatchObject([{ id: badgeId, keyThumbprint: await phone.thumbprint() }]);
    expectInvalidProof(await (await phone.withOtherKey()).logIn());
    expectInvalidProof(await phone.logInUnproved());
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
  });

  it("--bind-until takes effect when it is set, whatever settings are cached", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const badgeId = String((await phone.logInUnproved()).body.badgeId);
    await runSql("UPDATE application SET bind_until = ? WHERE id = ?", Date.now() + HOUR_MILLISECONDS, application.id);
    setClock(Date.now() + 1000);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await phone.thumbprint() });
  });
});

// Before the invitation is looked at, and after what is wrong with the request: test/http/errors/order.test.ts.
describe("--require-proof (contract section 15)", () => {
  const requireProof = ({ id }: TestApplication, value: 0 | 1) =>
    runSql("UPDATE application SET require_proof = ?2 WHERE id = ?1", id, value);

  it("--require-proof refuses calls without a proof, also for a device without a badge", async () => {
    const application = await createApplication({ requireProof: true });
    const phone = await newPhone(application);
    for (const refused of [phone.logInUnproved(), phone.signUnproved(), phone.signUnproved({ badgeId: "1" })]) {
      expectInvalidProof(await refused);
    }
    expect(await badgeRows(application)).toEqual([]);
    expect(outcome(await phone.sign())).toBe("404 UNKNOWN_BADGE");
    const issued = await phone.logIn();
    expect(issued.status).toBe(201);
    expect(outcome(await phone.sign())).toBe(`200 ${issued.body.badgeId}`);
  });

  it("--require-proof refuses an unbound badge, whatever the proof, until rebind or --bind-until lets it be bound", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const badgeId = String((await phone.logInUnproved()).body.badgeId);
    await requireProof(application, 1);
    setClock(Date.now() + 30_000);
    for (const refused of [phone.logIn(), phone.sign(), phone.sign({ badgeId }), phone.logInUnproved()]) {
      expectInvalidProof(await refused);
    }
    const { id: invitationToken } = await invite(application);
    expectInvalidProof(await phone.logIn("alice", { invitationToken }));
    await rebind(application, badgeId);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
  });

  it("--require-proof accepts a proved claim with an invitation created with the secret", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    await phone.logInUnproved();
    await requireProof(application, 1);
    setClock(Date.now() + 30_000);
    const headers = { ...serverHeaders(application), udid: CREATOR };
    const { id: invitationToken, badgeId } = await invite(application, undefined, headers);
    expect(outcome(await phone.logIn("alice", { invitationToken }))).toBe(`201 ${badgeId}`);
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
  });

  it("--no-require-proof takes effect within two seconds, for a call without a proof and for an unbound badge", async () => {
    const application = await createApplication({ requireProof: true });
    const phone = await newPhone(application);
    expectInvalidProof(await phone.logInUnproved());
    await requireProof(application, 0);
    setClock(Date.now() + 2000);
    expect((await phone.logInUnproved()).status).toBe(201);
    expect((await phone.sign()).status).toBe(200);
  });
});
