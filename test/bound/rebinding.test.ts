import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CREATOR, invite } from "../http/support/invitations.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { isAbout } from "../support/faults.ts";
import { bindDatabase, homeDatabase } from "../support/home.ts";
import { serverHeaders } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";
import {
  BADGE,
  boundPhone,
  expectInvalidProof,
  newPhone,
  outcome,
  raceAt,
  readBadge,
  rebind,
  serverCall,
} from "./support.ts";

const HOUR_MILLISECONDS = 3_600_000;

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const setClock = (now: number) => vi.useFakeTimers({ toFake: ["Date"], now });

/** What `GET /v1/changes` tells after the last change that was read. */
async function changesAfter(application: TestApplication, cursor = "") {
  const { body, headers } = await serverCall(application, "GET", `/v1/changes${cursor && `?cursor=${cursor}`}`);
  return { changes: body.changes, cursor: String(headers.get("pagination-cursor")) };
}

describe("PATCH /v1/badges/{id}/rebind (contract section 15)", () => {
  it("lets the first login with another key bind the badge, which ends the old key and the window", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const [next, late] = [await phone.withOtherKey(), await phone.withOtherKey()];
    const opened = await rebind(application, badgeId);
    const keyThumbprint = await phone.thumbprint();
    expect(opened.status).toBe(200);
    expect(opened.body).toMatchObject({ id: badgeId, userId: "alice", state: "active", keyThumbprint });
    expect(outcome(await next.logIn())).toBe(`200 ${badgeId}`);
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await next.thumbprint() });
    expect(outcome(await next.sign())).toBe(`200 ${badgeId}`);
    for (const refused of [phone.logIn(), phone.sign(), late.logIn(), next.logInUnproved()]) {
      expectInvalidProof(await refused);
    }
  });

  it("leaves everything as it was until then: the old key works and does not close the window", async () => {
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

  it("is open for 24 hours", async () => {
    const application = await createApplication();
    const [one, two] = [await boundPhone(application, "one"), await boundPhone(application, "two")];
    const openedAt = Date.now();
    setClock(openedAt);
    await rebind(application, one.badgeId);
    await rebind(application, two.badgeId);
    setClock(openedAt + 24 * HOUR_MILLISECONDS);
    expectInvalidProof(await (await one.phone.withOtherKey()).logIn());
    setClock(openedAt + 24 * HOUR_MILLISECONDS - 1);
    expect(outcome(await (await two.phone.withOtherKey()).logIn())).toBe(`200 ${two.badgeId}`);
    setClock(openedAt + 25 * HOUR_MILLISECONDS);
    await rebind(application, one.badgeId);
    expect(outcome(await (await one.phone.withOtherKey()).logIn())).toBe(`200 ${one.badgeId}`);
  });

  it("gives an unbound badge its first key", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const badgeId = String((await phone.logInUnproved()).body.badgeId);
    await rebind(application, badgeId);
    expect(outcome(await phone.logInUnproved())).toBe(`200 ${badgeId}`);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expectInvalidProof(await phone.logInUnproved());
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
  });

  it("shows in the feed when the key changes, once, and not when the window opens (contract section 13)", async () => {
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

  it("makes the badge current again, as every login does", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    await phone.logIn("bob");
    await rebind(application, badgeId);
    const next = await phone.withOtherKey();
    await next.logIn("alice");
    const turns = (await badgeRows(application)).map(({ number, turn }) => [String(number), turn]);
    expect(Object.fromEntries(turns)[badgeId]).toBe(Math.max(...turns.map(([, turn]) => Number(turn))));
  });

  it("binds nothing while the badge is suspended or expired, and stays open", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const next = await phone.withOtherKey();
    await serverCall(application, "PATCH", `/v1/badges/${badgeId}/suspend`);
    expect((await rebind(application, badgeId)).body).toMatchObject({ state: "suspended" });
    expect(outcome(await next.logIn())).toBe("403 SUSPENDED_BADGE");
    await serverCall(application, "PATCH", `/v1/badges/${badgeId}`, { expiresAt: "2020-01-01T00:00:00Z" });
    expect((await rebind(application, badgeId)).body).toMatchObject({ state: "expired" });
    expect(outcome(await next.logIn())).toBe("403 EXPIRED_BADGE");
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await phone.thumbprint() });
    await serverCall(application, "PATCH", `/v1/badges/${badgeId}`, { expiresAt: null });
    await serverCall(application, "PATCH", `/v1/badges/${badgeId}/resume`);
    expect(outcome(await next.logIn())).toBe(`200 ${badgeId}`);
  });

  it("is 409 for a revoked and for a replaced badge, 404 for what is no badge, 401 without the secret", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const { id: invitationToken, badgeId: reserved } = await invite(application);
    expect(outcome(await rebind(application, reserved))).toBe("404 UNKNOWN_BADGE");
    await phone.logIn("alice", { invitationToken });
    expect(outcome(await rebind(application, badgeId))).toBe("409 ENDED_BADGE");
    await serverCall(application, "PATCH", `/v1/badges/${reserved}/revoke`);
    expect(outcome(await rebind(application, reserved))).toBe("409 ENDED_BADGE");
    for (const id of [String(application.lastNumber), "x", "0", "9".repeat(20)]) {
      expect(outcome(await rebind(application, id)), id).toBe("404 UNKNOWN_BADGE");
    }
    expect(outcome(await rebind(await createApplication(), badgeId))).toBe("404 UNKNOWN_BADGE");
    const stranger = { ...application, secret: "bdss_wrong" };
    expect(outcome(await rebind(stranger, badgeId))).toBe("401 INVALID_CREDENTIALS");
  });

  it("lets one of two keys win that race, and the other gets 401", async () => {
    for (let round = 0; round < 4; round++) {
      const application = await createApplication();
      const { phone, badgeId } = await boundPhone(application);
      await rebind(application, badgeId);
      const rivals = [await phone.withOtherKey(), await phone.withOtherKey(), await phone.withOtherKey()];
      const logins = rivals.map((rival) => (bindings: Partial<Env>) => rival.logInTo(bindings));
      const answers = await raceAt("FROM badge", "after", logins);
      expect(answers.map(outcome).sort()).toEqual([`200 ${badgeId}`, "401 INVALID_PROOF", "401 INVALID_PROOF"]);
      const winner = rivals[answers.findIndex(({ status }) => status === 200)];
      expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await winner?.thumbprint() });
    }
  });

  it("binds no key to a badge that another call changed in between, before it has looked again", async () => {
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
        await serverCall(application, "PATCH", `/v1/badges/${badgeId}/suspend`);
      }
      return seen;
    });
    const request = new Request(`https://badges.example${BADGE}`, { method: "POST", headers, body });
    expect(outcome(await callWith({ ...bindDatabase(DB) }, request))).toBe("403 SUSPENDED_BADGE");
    expect(interruptions).toBe(1);
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await phone.thumbprint() });
  });

  it("lets whoever may bind the badge replace it by a claim, too", async () => {
    const application = await createApplication();
    const { phone, badgeId: old } = await boundPhone(application);
    await rebind(application, old);
    const { id: invitationToken, badgeId } = await invite(application);
    const next = await phone.withOtherKey();
    expect(outcome(await next.logIn("alice", { invitationToken }))).toBe(`201 ${badgeId}`);
    expectInvalidProof(await phone.logIn());
  });
});

describe("--bind-until (contract section 15)", () => {
  it("lets the first proof on POST /v1/badge bind an unbound badge, and no later one", async () => {
    const application = await createApplication({ bindUntil: Date.now() + HOUR_MILLISECONDS });
    const phone = await newPhone(application);
    const badgeId = String((await phone.logInUnproved()).body.badgeId);
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

  it("binds from when it was set, whatever settings were looked up before", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const badgeId = String((await phone.logInUnproved()).body.badgeId);
    await homeDatabase()
      .prepare("UPDATE application SET bind_until = ? WHERE id = ?")
      .bind(Date.now() + HOUR_MILLISECONDS, application.id)
      .run();
    setClock(Date.now() + 1000);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await phone.thumbprint() });
  });

  it("binds nothing once its time has come", async () => {
    const bindUntil = Date.now() + HOUR_MILLISECONDS;
    const application = await createApplication({ bindUntil });
    const phone = await newPhone(application);
    const badgeId = String((await phone.logInUnproved()).body.badgeId);
    setClock(bindUntil);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expect(outcome(await phone.logInUnproved())).toBe(`200 ${badgeId}`);
    setClock(bindUntil - 1);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expectInvalidProof(await phone.logInUnproved());
  });

  it("lets one of several keys win that race, and the others get 401", async () => {
    for (let round = 0; round < 4; round++) {
      const application = await createApplication({ bindUntil: Date.now() + HOUR_MILLISECONDS });
      const phone = await newPhone(application);
      const badgeId = String((await phone.logInUnproved()).body.badgeId);
      const rivals = [phone, await phone.withOtherKey(), await phone.withOtherKey()];
      const logins = rivals.map((rival) => (bindings: Partial<Env>) => rival.logInTo(bindings));
      const answers = await raceAt("FROM badge", "after", logins);
      expect(answers.map(outcome).sort()).toEqual([`200 ${badgeId}`, "401 INVALID_PROOF", "401 INVALID_PROOF"]);
      const winner = rivals[answers.findIndex(({ status }) => status === 200)];
      expect(await readBadge(application, badgeId)).toMatchObject({ keyThumbprint: await winner?.thumbprint() });
    }
  });

  it("does not rebind a badge that has a key", async () => {
    const application = await createApplication({ bindUntil: Date.now() + HOUR_MILLISECONDS });
    const { phone } = await boundPhone(application);
    expectInvalidProof(await (await phone.withOtherKey()).logIn());
  });
});

describe("--require-proof (contract section 15)", () => {
  it("refuses calls without a proof, also for a device without a badge, before the invitation is looked at", async () => {
    const application = await createApplication({ requireProof: true });
    const phone = await newPhone(application);
    expectInvalidProof(await phone.logInUnproved());
    expectInvalidProof(await phone.logInUnproved("alice", { invitationToken: "inv_unknown" }));
    expectInvalidProof(await phone.signUnproved());
    expectInvalidProof(await phone.signUnproved({ badgeId: "1" }));
    expect(await badgeRows(application)).toEqual([]);
    expect(outcome(await phone.sign())).toBe("404 UNKNOWN_BADGE");
    const issued = await phone.logIn();
    expect(issued.status).toBe(201);
    expect(outcome(await phone.sign())).toBe(`200 ${issued.body.badgeId}`);
  });

  it("still reports what is wrong with the request first", async () => {
    const application = await createApplication({ requireProof: true });
    const phone = await newPhone(application);
    expect(outcome(await phone.send(BADGE, "{}"))).toBe("422 UNDEFINED_USERID");
    expect(outcome(await phone.send(BADGE, "x"))).toBe("400 INVALID_JSON");
    expect(outcome(await phone.logInUnproved("."))).toBe("422 INVALID_USERID");
    expect(outcome(await phone.signUnproved({ base64: "?" }))).toBe("422 INVALID_BASE64");
  });

  it("refuses an unbound badge, whatever the proof, until rebind or --bind-until has it bound", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const badgeId = String((await phone.logInUnproved()).body.badgeId);
    const change = (columns: string) =>
      homeDatabase().prepare(`UPDATE application SET ${columns} WHERE id = ?`).bind(application.id).run();
    await change("require_proof = 1");
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 30_000 });
    for (const refused of [phone.logIn(), phone.sign(), phone.sign({ badgeId }), phone.logInUnproved()]) {
      expectInvalidProof(await refused);
    }
    const { id: invitationToken } = await invite(application);
    expectInvalidProof(await phone.logIn("alice", { invitationToken }));
    await rebind(application, badgeId);
    expect(outcome(await phone.logIn())).toBe(`200 ${badgeId}`);
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
  });

  it("refuses no proved claim with an invitation that was created with the secret", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    await phone.logInUnproved();
    await homeDatabase().prepare("UPDATE application SET require_proof = 1 WHERE id = ?").bind(application.id).run();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 30_000 });
    const headers = { ...serverHeaders(application), udid: CREATOR };
    const { id: invitationToken, badgeId } = await invite(application, undefined, headers);
    expect(outcome(await phone.logIn("alice", { invitationToken }))).toBe(`201 ${badgeId}`);
    expect(outcome(await phone.sign())).toBe(`200 ${badgeId}`);
  });

  it("stops within two seconds of --no-require-proof, for a call without a proof and for an unbound badge", async () => {
    const application = await createApplication({ requireProof: true });
    const phone = await newPhone(application);
    expectInvalidProof(await phone.logInUnproved());
    await homeDatabase().prepare("UPDATE application SET require_proof = 0 WHERE id = ?").bind(application.id).run();
    setClock(Date.now() + 2000);
    expect((await phone.logInUnproved()).status).toBe(201);
    expect((await phone.sign()).status).toBe(200);
  });

  it("shows in GET /v1/application (contract section 19)", async () => {
    for (const requireProof of [true, false]) {
      const application = await createApplication({ requireProof });
      expect((await serverCall(application, "GET", "/v1/application")).body).toMatchObject({ requireProof });
    }
  });
});
