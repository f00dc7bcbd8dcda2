import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type DeviceId, deviceId, invitationDigest } from "../../src/shared/identifiers.ts";
import { NO_BADGE_YET } from "../../src/shared/storage/high-water.ts";
import { type BadgeWrite, type NewBadge, writeBadges } from "../../src/worker/storage/badge-writes.ts";
import { type Claim, writeClaims } from "../../src/worker/storage/claim-writes.ts";
import { Database } from "../../src/worker/storage/database.ts";
import { findSigningBadge } from "../../src/worker/storage/device-badges.ts";
import type { Cost } from "../long-runs/scale/cost.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { serverHeaders } from "../support/http.ts";
import { Meter } from "../support/meter.ts";
import { badgeRows } from "../support/rows.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => new Response(null, { status: 204 }));
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Calls from one device, with a meter on them. */
class Device {
  readonly #application: TestApplication;
  readonly #udid: string;
  readonly #meter: Meter;

  constructor(application: TestApplication, udid: string) {
    this.#application = application;
    this.#udid = udid;
    this.#meter = new Meter(application);
  }

  measure(act: () => Promise<unknown>): Promise<Cost> {
    return this.#meter.measure(act);
  }

  async login(userId: string, more: object = {}): Promise<string> {
    return String((await this.#post("/v1/badge", { userId, ...more })).badgeId);
  }

  async sign(): Promise<string> {
    const { signature } = await this.#post("/v1/badge/sign", { base64: "aGVsbG8=" });
    return String(JSON.parse(atob(String(signature).split(".")[1] ?? "")).sub);
  }

  async invite(): Promise<unknown> {
    return (await this.#post("/v1/invitation", { expiresAt: new Date(Date.now() + 600_000).toISOString() })).id;
  }

  async #post(path: string, body: object): Promise<Record<string, unknown>> {
    const headers = { ...serverHeaders(this.#application), udid: this.#udid };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await this.#meter.request(new Request(`https://badges.example${path}`, init));
    expect(response.status, JSON.stringify(response.body)).toBeLessThan(300);
    return response.body;
  }
}

/** Issued badges of one device, outside the application's range, answered in the order of their users' numbers. */
async function addUsers({ id }: TestApplication, device: string, from: number, count: number): Promise<void> {
  await homeDatabase()
    .prepare(
      `WITH RECURSIVE place (n) AS (SELECT CAST(?3 AS INTEGER) UNION ALL SELECT n + 1 FROM place WHERE n + 1 < ?3 + ?4)
     INSERT INTO badge (number, application_id, device, user_id, signing_key_id, event_id, position, turn)
     SELECT 5000000000 + n, ?1, ?2, 'user-' || n, (SELECT max(id) FROM signing_key WHERE application_id = ?1),
       'evt_' || n, n, n - ?3 + 2 FROM place`,
    )
    .bind(id, device, from, count)
    .run();
}

/** What each kind of call costs on a device whose user `first` is logged in. */
async function measureCalls(device: Device): Promise<Record<string, Cost>> {
  const costs: Record<string, Cost> = {};
  const measure = async (kind: string, act: () => Promise<unknown>) => {
    costs[kind] = await device.measure(act);
  };
  const invitations = [await device.invite(), await device.invite()];
  await measure("login", () => device.login("first"));
  await measure("signature", () => device.sign());
  await measure("newer metadata", () => device.login("first", { metadata: { os: "iOS" } }));
  await measure("new user", () => device.login("second"));
  await measure("login of another user", () => device.login("first"));
  await measure("signature among several", () => device.sign());
  await measure("metadata among several", () => device.login("first", { metadata: { os: "Android" } }));
  await measure("claim", () => device.login("guest", { invitationToken: invitations[0] }));
  await measure("claim that replaces a badge", () => device.login("first", { invitationToken: invitations[1] }));
  return costs;
}

async function measureAfter(
  application: TestApplication,
  udid: string,
  { users, from }: { users: number; from: number },
) {
  const device = new Device(application, udid);
  const number = Number(await device.login("first"));
  const row = (await badgeRows(application)).find((badge) => badge.number === number);
  if (users > 1) await addUsers(application, row?.device ?? "", from, users - 1);
  await device.login("first");
  await device.sign();
  return measureCalls(device);
}

describe("a device costs the same however many users it has had (contract section 7)", () => {
  it("every call reads and writes as many rows after 100,000 users as after three, and no more than after one", {
    timeout: 120_000,
  }, async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges" });
    // Each search that reads on until the next device finds one: this device sorts after every real one.
    await addUsers(application, "~", 100, 10);
    const afterOne = await measureAfter(application, "phone", { users: 1, from: 1000 });
    const afterThree = await measureAfter(application, "tablet", { users: 3, from: 2000 });
    const afterMany = await measureAfter(application, "kiosk", { users: 100_000, from: 3000 });
    expect(afterMany).toEqual(afterThree);
    for (const [kind, { d1RowsRead, d1RowsWritten, d1RoundTrips }] of Object.entries(afterMany)) {
      const one = afterOne[kind];
      expect(d1RowsRead, kind).toBeLessThanOrEqual(one?.d1RowsRead ?? 0);
      expect(d1RowsWritten, kind).toBe(one?.d1RowsWritten);
      expect(d1RoundTrips, kind).toBe(one?.d1RoundTrips);
    }
    expect(Object.fromEntries(Object.entries(afterOne).map(([kind, cost]) => [kind, cost.d1RowsRead]))).toEqual({
      login: 7,
      signature: 5,
      "newer metadata": 9,
      "new user": 21,
      "login of another user": 9,
      "signature among several": 4,
      "metadata among several": 8,
      claim: 30,
      "claim that replaces a badge": 41,
    });
  });
});

const KIOSK = deviceId.parse("kiosk");
const PHONE = deviceId.parse("phone");

/** What the object writes for one user of a device, at the place of the application's range. */
const newBadge = ({ firstNumber }: TestApplication, place: number, device: DeviceId): NewBadge => ({
  kind: "issue",
  number: firstNumber + place,
  device,
  userId: `user-${place}`,
  metadata: null,
  signingKeyId: 1,
  eventId: `evt_${place}`,
  payload: "{}",
  issuedAt: Date.now(),
});

describe("badges that one device gets at the same moment (contract section 1)", () => {
  const turnsOf = async (application: TestApplication) => (await badgeRows(application)).map(({ turn }) => turn);

  it("are in the order of their transaction: the last one signs", async () => {
    const application = await createApplication();
    const db = new Database(homeDatabase());
    const devices = [KIOSK, PHONE, KIOSK, KIOSK];
    await writeBadges(
      db,
      application.id,
      devices.map((device, place) => newBadge(application, place, device)),
      NO_BADGE_YET,
    );
    expect(await turnsOf(application)).toEqual([1, 1, 2, 3]);
    const current = (device: DeviceId) =>
      findSigningBadge(db, { applicationId: application.id, device, thumbprint: null, number: null });
    expect(await current(KIOSK)).toMatchObject({ number: application.firstNumber + 3 });
    expect(await current(PHONE)).toMatchObject({ number: application.firstNumber + 1 });
  });

  it("are in the order of their transaction when they are claimed, too", async () => {
    const application = await createApplication();
    const db = new Database(homeDatabase());
    const places = [0, 1, 2];
    const invitations = places.map((place) => invitationDigest.parse(`invitation-${application.id}-${place}`));
    const [expiresAtTime, createdAt] = [Date.now() + 600_000, Date.now()];
    const reservations = invitations.map((invitation, place): BadgeWrite => {
      const number = application.firstNumber + place;
      const ofBadge = { badgeExpiresAt: null, badgeExpiresAtTime: null };
      const times = { expiresAt: new Date(expiresAtTime).toISOString(), expiresAtTime, createdAt, ...ofBadge };
      const caller = { creatorDevice: deviceId.parse("server"), withSecret: true, isRepeatable: false };
      return { kind: "reserve", number, invitation, ...caller, ...times };
    });
    await writeBadges(db, application.id, reservations, NO_BADGE_YET);
    const claims = invitations.map((digest, place): Claim => {
      const { kind: _, issuedAt: claimedAt, ...badge } = newBadge(application, place, KIOSK);
      return { ...badge, digest, claimedAt, superseded: null, replacedEvent: null, expiresAt: null };
    });
    const { results } = await writeClaims(db, application.id, claims, NO_BADGE_YET);
    expect(results.map(({ kind }) => kind)).toEqual(["written", "written", "written"]);
    expect(await turnsOf(application)).toEqual([1, 2, 3]);
  });

  it("have no order if an earlier version wrote them: the next login decides", async () => {
    for (const turn of [1, 7]) {
      const application = await createApplication();
      const device = new Device(application, "kiosk");
      for (const userId of ["alice", "bob", "carol"]) await device.login(userId);
      await homeDatabase()
        .prepare("UPDATE badge SET turn = ?1 WHERE application_id = ?2")
        .bind(turn, application.id)
        .run();
      for (const userId of ["bob", "alice", "carol", "bob"])
        expect(await device.login(userId)).toBe(await device.sign());
    }
  });
});
