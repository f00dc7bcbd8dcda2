import { afterEach, describe, expect, it, vi } from "vitest";
import { createDoorResponse, type ProofKey } from "../../src/client/index.ts";
import { createChallenge, verifyPossession } from "../../src/verify/index.ts";
import { CREATOR, invite } from "../http/support/invitations.ts";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { billOf } from "../support/bill.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { type AroundTrip, aroundD1 } from "../support/d1.ts";
import { bindDatabase, homeDatabase, runSql } from "../support/home.ts";
import { callServer, requestBadge, serverHeaders, sign } from "../support/http.ts";
import { badgeRows } from "../support/rows.ts";
import {
  A_SIGNATURE,
  BADGE,
  boundPhone,
  claimsOf,
  expectInvalidProof,
  newPhone,
  outcome,
  type Phone,
  SIGN,
} from "./support.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** Badges of several users on one device, each logged in once, in this order. */
async function shared(
  application: TestApplication,
  logins: readonly { userId: string; by: Phone | null }[],
): Promise<Record<string, string>> {
  const badges: Record<string, string> = {};
  for (const { userId, by } of logins) {
    const issued = by ? await by.logIn(userId) : await requestBadge(application, "phone", { userId });
    badges[userId] = String(issued.body.badgeId);
  }
  return badges;
}

/**
 * The rows that the first round trip of each kind of call of a phone reads, whether the Worker makes it or the object. Most
 * calls make one.
 */
async function countRows(application: { id: string }, phone: Phone): Promise<Record<string, number>> {
  const other = await phone.withOtherKey();
  const calls: [kind: string, by: Phone | null, path: string, body: object, status: number, trips: number | null][] = [
    ["login", phone, BADGE, { userId: "alice" }, 200, 1],
    // What settings may refuse is decided twice if they are more than a second old.
    ["login with a wrong key", other, BADGE, { userId: "alice" }, 401, null],
    ["signature", phone, SIGN, A_SIGNATURE, 200, 1],
    ["signature of the unbound badge", other, SIGN, A_SIGNATURE, 200, 1],
    ["signature without a proof", null, SIGN, A_SIGNATURE, 401, null],
    ["signature of an unknown badge", phone, SIGN, { ...A_SIGNATURE, badgeId: "1" }, 404, 1],
  ];
  const rows: Record<string, number> = {};
  for (const [kind, by, path, body, status, expectedTrips] of calls) {
    let [trips, read] = [0, 0];
    const around: AroundTrip = async (statements, send) => {
      const result = await send();
      if (trips++ === 0) read = (await billOf(statements, result)).rowsRead;
      return result;
    };
    await aroundObjectD1(application, () => around);
    const text = JSON.stringify(body);
    const headers = {
      applicationid: application.id,
      udid: phone.udid,
      ...(by && { DPoP: await by.prove(path, text) }),
    };
    const request = new Request(`https://badges.example${path}`, { method: "POST", headers, body: text });
    const response = await callWith(
      { ...bindDatabase(aroundD1(homeDatabase(), around)), DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED },
      request,
    );
    expect([kind, response.status, trips]).toEqual([kind, status, expectedTrips ?? expect.any(Number)]);
    rows[kind] = read;
  }
  return rows;
}

describe("which badge signs with a proof (contract section 15)", () => {
  it("of the badges bound to the proof's key, the one that a login returned last signs, even if another user has logged in since", async () => {
    const application = await createApplication();
    const [phone, other] = [await newPhone(application), await newPhone(application)];
    const badges = await shared(application, [
      { userId: "alice", by: phone },
      { userId: "bob", by: phone },
      { userId: "carol", by: other },
      { userId: "dave", by: null },
    ]);
    expect(outcome(await phone.sign())).toBe(`200 ${badges.bob}`);
    expect(outcome(await other.sign())).toBe(`200 ${badges.carol}`);
    await phone.logIn("alice");
    expect(outcome(await phone.sign())).toBe(`200 ${badges.alice}`);
    expect(outcome(await other.sign())).toBe(`200 ${badges.carol}`);
  });

  it("if no badge is bound to the proof's key, the last answered unbound one signs, wherever it stands among bound ones", async () => {
    const application = await createApplication();
    const [phone, other] = [await newPhone(application), await newPhone(application)];
    const badges = await shared(application, [
      { userId: "first", by: null },
      { userId: "alice", by: phone },
      { userId: "bob", by: phone },
    ]);
    expect(outcome(await other.sign())).toBe(`200 ${badges.first}`);
    Object.assign(badges, await shared(application, [{ userId: "second", by: null }]));
    await phone.logIn("alice");
    expect(outcome(await other.sign())).toBe(`200 ${badges.second}`);
    await requestBadge(application, "phone", { userId: "first" });
    expect(outcome(await other.sign())).toBe(`200 ${badges.first}`);
  });
});

describe("which badge signs without a proof (contract section 15)", () => {
  it("without a proof the device's current badge signs, and if that is bound, none", async () => {
    const application = await createApplication();
    const phone = await newPhone(application);
    const badges = await shared(application, [
      { userId: "dave", by: null },
      { userId: "alice", by: phone },
    ]);
    expectInvalidProof(await sign(application, "phone", A_SIGNATURE));
    await requestBadge(application, "phone", { userId: "dave" });
    expect(outcome(await sign(application, "phone", A_SIGNATURE))).toBe(`200 ${badges.dave}`);
    await phone.logIn("alice");
    expectInvalidProof(await sign(application, "phone", A_SIGNATURE));
  });
});

describe("badgeId names the badge that signs (contract section 15)", () => {
  it("badgeId names exactly that badge of this device, bound or not, with its key or not at all", async () => {
    const application = await createApplication();
    const [phone, other] = [await newPhone(application), await newPhone(application)];
    const { alice, bob, dave } = await shared(application, [
      { userId: "alice", by: phone },
      { userId: "bob", by: phone },
      { userId: "dave", by: null },
    ]);
    expect(outcome(await phone.sign({ badgeId: alice }))).toBe(`200 ${alice}`);
    expect(outcome(await phone.sign({ badgeId: bob }))).toBe(`200 ${bob}`);
    expect(outcome(await phone.sign({ badgeId: dave }))).toBe(`200 ${dave}`);
    expect(outcome(await other.signUnproved({ badgeId: dave }))).toBe(`200 ${dave}`);
    expectInvalidProof(await other.sign({ badgeId: alice }));
    expectInvalidProof(await other.signUnproved({ badgeId: alice }));
  });

  it("badgeId gets 404 for a badge of another device or application, a reserved or free number, and what is no number", async () => {
    const [application, stranger] = [await createApplication(), await createApplication()];
    const { phone, badgeId: own } = await boundPhone(application);
    const { badgeId: ofOther } = await boundPhone(application, "other phone");
    const { badgeId: ofStranger } = await boundPhone(stranger);
    const { badgeId: reserved } = await invite(application);
    const free = String(application.lastNumber);
    const values = [ofOther, ofStranger, reserved, free, "0", "-1", "01", "1e9", "9".repeat(17), "x", true, [], {}];
    for (const badgeId of [...values, Number(own)]) {
      expect(outcome(await phone.sign({ badgeId })), JSON.stringify(badgeId)).toBe("404 UNKNOWN_BADGE");
      expect(outcome(await phone.signUnproved({ badgeId })), JSON.stringify(badgeId)).toBe("404 UNKNOWN_BADGE");
    }
  });

  it("badgeId counts as missing when it is null, empty or blank", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    for (const missing of [null, "", " "]) {
      expect(outcome(await phone.sign({ badgeId: missing }))).toBe(`200 ${badgeId}`);
    }
  });

  it("the badge named by badgeId is refused by its state, even after a claim has replaced it", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const { id: invitationToken } = await invite(application, undefined, {
      ...serverHeaders(application),
      udid: CREATOR,
    });
    await callServer(application, "PATCH", `/v1/badges/${badgeId}/suspend`);
    expect(outcome(await phone.sign({ badgeId }))).toBe("403 SUSPENDED_BADGE");
    await callServer(application, "PATCH", `/v1/badges/${badgeId}/resume`);
    await phone.logIn("alice", { invitationToken });
    expect(outcome(await phone.sign({ badgeId }))).toBe("403 REVOKED_BADGE");
    expectInvalidProof(await (await phone.withOtherKey()).sign({ badgeId }));
  });
});

describe("the signature of a bound badge (contract section 15)", () => {
  it("a bound badge's signature has its key in cnf (RFC 7800): a door that challenges lets that phone in, and nobody with a copy", async () => {
    const application = await createApplication();
    const { phone, badgeId } = await boundPhone(application);
    const badgeSignature = String((await phone.sign()).body.signature);
    expect(claimsOf(badgeSignature).cnf).toEqual({ jwk: phone.key.publicJwk });
    const { publicKey } = (await boundPhone(application, "another phone of the application")).issued;
    const now = Date.now();
    const door = { doorId: "lobby-1", applicationId: application.id, keys: { publicKey: String(publicKey) }, now };
    const present = async (key: ProofKey) => {
      const challenge = createChallenge(door);
      const response = await createDoorResponse({ key, challenge, applicationId: application.id, badgeSignature });
      return verifyPossession({ badgeSignature, response }, { ...door, challenge });
    };
    expect(await present(phone.key)).toMatchObject({ ok: true, badgeNumber: badgeId, boundKey: phone.key.publicJwk });
    const thief = await phone.withOtherKey();
    expect(await present(thief.key)).toEqual({ ok: false, reason: "bad-response-signature" });
  });
});

describe("a device costs the same however many users and keys it has had (contract sections 7 and 15)", () => {
  it("with 20,000 bound badges, a signature and a login read as many rows as with three", async () => {
    const application = await createApplication();
    const rowsRead = async (users: number, udid: string, from: number) => {
      const phone = await newPhone(application, udid);
      await phone.logInUnproved("dave");
      const number = Number((await phone.logIn("alice")).body.badgeId);
      const alice = (await badgeRows(application)).find((badge) => badge.number === number);
      await addBoundBadges(application, String(alice?.device), from, users);
      await phone.logIn("alice");
      return countRows(application, phone);
    };
    const few = await rowsRead(3, "tablet", 0);
    const many = await rowsRead(20_000, "kiosk", 1000);
    expect(many).toEqual(few);
    expect(Object.keys(few)).toHaveLength(6);
    for (const rows of Object.values(few)) expect(rows).toBeLessThan(20);
  });

  /** Badges of other keys and other users of the device, answered before the last login. */
  async function addBoundBadges({ id }: TestApplication, device: string, from: number, count: number) {
    await runSql(
      `WITH RECURSIVE place (n) AS (SELECT CAST(?3 AS INTEGER) UNION ALL SELECT n + 1 FROM place WHERE n + 1 < ?3 + ?4)
       INSERT INTO badge (number, application_id, device, user_id, signing_key_id, event_id, ordinal, login_sequence, key_thumbprint)
       SELECT 6000000000 + n, ?1, ?2, 'a user ' || n, (SELECT max(id) FROM signing_key WHERE application_id = ?1),
         'evt_' || n, n + 10, n - ?3 + 3, 'key ' || (n % 7) FROM place`,
      id,
      device,
      from,
      count,
    );
  }
});
