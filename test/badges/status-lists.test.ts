import { env } from "cloudflare:workers";
import { eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { base64url, createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from "jose";
import { describe, expect, it, vi } from "vitest";
import { makeSigningKey } from "../../src/shared/credentials.ts";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { application as applications, signingKey } from "../../src/shared/schema.ts";
import { parsePublicUrl } from "../../src/shared/service-url.ts";
import { createPermutation } from "../../src/worker/allocator/permutation.ts";
import {
  INVALID,
  packBits,
  SUSPENDED,
  setStatus,
  unpackBits,
  VALID,
  validBits,
} from "../../src/worker/badges/status-lists/bits.ts";
import { indexesOf, StatusIndexes } from "../../src/worker/badges/status-lists/list-index.ts";
import { SealingKeys } from "../../src/worker/keys/sealing-keys.ts";
import { UnsealedKeys } from "../../src/worker/keys/unsealed-keys.ts";
import { claim, invite } from "../invitations/support/calls.ts";
import { ahead, HOUR, moveClock, useStandingClock } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { createApplication, type TestApplication, testSealer } from "../support/application.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { testContext } from "../support/context.ts";
import { aroundD1 } from "../support/d1.ts";
import { bindDatabase, homeDatabase, runSql } from "../support/home.ts";
import { badgeRows } from "../support/rows.ts";
import { issueTo, runSweep, setEnd, signOn, takeStep } from "./life-support.ts";
import {
  claimsOf,
  entriesOf,
  entryOf,
  getList,
  holder,
  indexOn,
  inflate,
  keysOf,
  listPath,
  statusOf,
} from "./status-support.ts";

const log = useQuietLog();
useStandingClock();

const withLists = (columns: Parameters<typeof createApplication>[0] = {}) =>
  createApplication({ statusList: true, ...columns });

/** Longer than any copy of a list may live (contract section 14). */
const COPIES_LIFE_MILLISECONDS = 30_000;

/** What doors see 30 seconds from now, at the latest. Moves the clock by that, which must be vitest's. */
async function entriesSoon(application: { id: string }, list = 0): Promise<(idx: number) => number> {
  vi.setSystemTime(Date.now() + COPIES_LIFE_MILLISECONDS);
  const { status, text } = await getList(application, list);
  expect(status).toBe(200);
  return entriesOf(text);
}

async function succeed(call: Promise<{ status: number }>): Promise<void> {
  expect((await call).status).toBeLessThan(300);
}

const change = ({ id }: { id: ApplicationId }, values: Partial<typeof applications.$inferInsert>) =>
  drizzle(homeDatabase()).update(applications).set(values).where(eq(applications.id, id));

/** The application's badges get other ordinals, the same distance apart, as if many had been issued before. */
const movePositions = ({ id }: { id: ApplicationId }, by: number) =>
  runSql("UPDATE badge SET ordinal = ordinal + ?2, change = change + ?2 WHERE application_id = ?1", id, by);

describe("a status list (contract section 14)", () => {
  it("a status list is a JWT with exactly the claims of the contract, for anybody, which caches may keep for a minute", async () => {
    const application = await withLists();
    const before = Math.floor(Date.now() / 1000);
    const { status, headers, text } = await getList(application);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("application/statuslist+jwt");
    expect(headers.get("cache-control")).toBe("public, max-age=60");
    expect(headers.get("access-control-allow-origin")).toBe("*");
    const keys = await keysOf(application);
    expect(decodeProtectedHeader(text)).toEqual({ alg: "ES256", kid: keys.keys[0]?.kid, typ: "statuslist+jwt" });
    await jwtVerify(text, createLocalJWKSet(keys), { typ: "statuslist+jwt" });
    const claims = claimsOf(text);
    expect(claims).toMatchObject({
      sub: `http://localhost:8787/v1/applications/${application.id}/status/0`,
      iat: before,
      exp: before + 86_400,
      ttl: 60,
    });
    expect((await inflate(claims.status_list.lst)).length).toBe(131_072 / 4);
    const { iat, exp } = claimsOf((await getList(await withLists({ statusLifetimeSeconds: 900 }))).text);
    expect(exp - iat).toBe(900);
  });

  it("a status list responds to HEAD and preflights of any origin, and to no other method", async () => {
    const application = await withLists();
    const head = await getList(application, 0, "", { method: "HEAD" });
    expect([head.status, head.headers.get("content-type"), head.text]).toEqual([200, "application/statuslist+jwt", ""]);
    const preflight = await getList(application, 0, "", { method: "OPTIONS" });
    expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([204, "*"]);
    const put = await getList(application, 0, "", { method: "PUT" });
    expect([put.status, put.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
  });

  it("a status list of a past time is refused: 501 NOT_IMPLEMENTED", async () => {
    const application = await withLists();
    for (const query of ["?time=1800000000", "?time=", "?time"]) {
      const { status, text } = await getList(application, 0, query);
      expect([status, text], query).toEqual([501, '{"error":"NOT_IMPLEMENTED"}']);
    }
  });

  it("a disabled application keeps its status lists, because doors still check its badges", async () => {
    expect((await getList(await withLists({ disabledAt: 1 }))).status).toBe(200);
  });

  it("a status list is signed by the key that signs new badges", async () => {
    const application = await withLists();
    const kidOf = async () => decodeProtectedHeader((await getList(application)).text).kid;
    const oldKid = await kidOf();
    // Keys of one millisecond have no order.
    moveClock(1);
    const { kid, ...key } = await makeSigningKey(await testSealer(), application.id);
    const columns = { applicationId: application.id, createdAt: Date.now(), signsFrom: Date.now() + 600_000 };
    await drizzle(homeDatabase())
      .insert(signingKey)
      .values({ kid, ...key, ...columns });
    moveClock(300_000);
    expect(await kidOf()).toBe(oldKid);
    moveClock(330_000);
    expect(await kidOf()).toBe(kid);
  });
});

describe("the value of a badge (contract section 14)", () => {
  it("the value is 0 for an active badge, 1 for a revoked or replaced one, 2 for a suspended or expired one", async () => {
    const application = await withLists();
    const active = await holder(application, "active");
    const suspended = await holder(application, "suspended");
    const resumed = await holder(application, "resumed");
    const revoked = await holder(application, "revoked");
    const revokedLater = await holder(application, "revoked after its end");
    const expired = await holder(application, "expired");
    const expiredSuspended = await holder(application, "expired and suspended");
    const extended = await holder(application, "expired and extended");
    const ending = await holder(application, "ends tomorrow");
    const replaced = await holder(application, "replaced");

    await succeed(takeStep(application, suspended.number, "suspend"));
    await succeed(takeStep(application, resumed.number, "suspend"));
    await succeed(takeStep(application, resumed.number, "resume"));
    await succeed(takeStep(application, revoked.number, "revoke"));
    await succeed(setEnd(application, revokedLater.number, ahead(-HOUR)));
    await succeed(takeStep(application, revokedLater.number, "revoke"));
    await succeed(setEnd(application, expired.number, ahead(-HOUR)));
    await succeed(takeStep(application, expiredSuspended.number, "suspend"));
    await succeed(setEnd(application, expiredSuspended.number, ahead(-HOUR)));
    await succeed(setEnd(application, extended.number, ahead(-HOUR)));
    await succeed(setEnd(application, extended.number, ahead(24 * HOUR)));
    await succeed(setEnd(application, ending.number, ahead(24 * HOUR)));
    const { token } = await invite(application);
    await succeed(claim(application, "replaced", "user of replaced", token));
    const replacing = await indexOn(application, "replaced");

    const valueAt = await entriesSoon(application);
    const values = {
      active,
      suspended,
      resumed,
      revoked,
      revokedLater,
      expired,
      expiredSuspended,
      extended,
      ending,
      replaced,
      replacing,
    };
    expect(Object.fromEntries(Object.entries(values).map(([name, { idx }]) => [name, valueAt(idx)]))).toEqual({
      ...{ active: 0, suspended: 2, resumed: 0, revoked: 1, revokedLater: 1, expired: 2, expiredSuspended: 2 },
      ...{ extended: 0, ending: 0, replaced: 1, replacing: 0 },
    });
    const all = Array.from({ length: 131_072 }, (_, idx) => valueAt(idx));
    expect([1, 2, 3].map((value) => all.filter((each) => each === value).length)).toEqual([3, 3, 0]);
  });

  it("the value becomes 2 at the badge's end by the clock, before any sweep", async () => {
    const application = await withLists();
    const { number, idx } = await holder(application, "phone");
    const paused = await holder(application, "suspended phone");
    await succeed(takeStep(application, paused.number, "suspend"));
    for (const each of [number, paused.number]) await succeed(setEnd(application, each, ahead(HOUR)));
    const ofOthers = await withLists();
    const other = await holder(ofOthers, "phone");
    const valuesSoon = async () => {
      const valueAt = await entriesSoon(application);
      return [idx, paused.idx].map(valueAt);
    };
    expect(await valuesSoon()).toEqual([0, 2]);
    moveClock(HOUR);
    expect(await valuesSoon()).toEqual([2, 2]);
    expect((await entriesSoon(ofOthers))(other.idx)).toBe(0);
    const [row] = await badgeRows(application);
    expect(row?.endedAt).toBeNull();
    await runSweep();
    expect((await badgeRows(application)).map(({ endedAt }) => endedAt)).not.toContain(null);
    expect(await valuesSoon()).toEqual([2, 2]);
    // The clock goes back before the end that was recorded.
    moveClock(-HOUR);
    expect(await valuesSoon()).toEqual([2, 2]);
    moveClock(HOUR);
    await succeed(setEnd(application, number, null));
    expect(await valuesSoon()).toEqual([0, 2]);
  });

  it("lists cover badges issued before they were turned on, also those that had ended", async () => {
    const application = await createApplication();
    const [first, second] = [await issueTo(application, "first", "alice"), await issueTo(application, "second", "bob")];
    await succeed(takeStep(application, first, "revoke"));
    const before = decodeJwt(String((await signOn(application, "second")).body.signature));
    expect(before).not.toHaveProperty("status");
    await change(application, { statusList: true });
    moveClock(30_000);
    const { idx } = await indexOn(application, "second");
    const valueAt = await entriesSoon(application);
    expect(valueAt(idx)).toBe(0);
    expect(Array.from({ length: 131_072 }, (_, each) => valueAt(each)).filter((value) => value === 1)).toHaveLength(1);
    await succeed(takeStep(application, second, "revoke"));
    expect((await entriesSoon(application))(idx)).toBe(1);
  });

  it("a badge's value is in the list that its signature names", async () => {
    const application = await withLists();
    const names = ["one", "two", "three"];
    const numbers = await Promise.all(names.map((name) => issueTo(application, name, name)));
    // Positions are 1 to 3: the second of them is to be the first of list 7.
    await movePositions(application, 7 * 131_072 - 2);
    const places = await Promise.all(names.map((name) => indexOn(application, name)));
    const rows = await badgeRows(application);
    const lists = numbers.map((number) => {
      const ordinal = rows.find((row) => row.number === Number(number))?.ordinal ?? Number.NaN;
      return ordinal < 7 * 131_072 ? 6 : 7;
    });
    expect(lists.toSorted()).toEqual([6, 7, 7]);
    for (const [index, number] of numbers.entries()) {
      expect(places[index]?.uri).toBe(`http://localhost:8787${listPath(application, lists[index] ?? "none")}`);
      await succeed(takeStep(application, number, "revoke"));
    }
    for (const list of [6, 7]) {
      const valueAt = await entriesSoon(application, list);
      const all = Array.from({ length: 131_072 }, (_, idx) => idx).filter((idx) => valueAt(idx) !== 0);
      const own = places.filter((_, index) => lists[index] === list).map((place) => place.idx);
      expect(all).toEqual(own.toSorted((one, other) => one - other));
      expect(all.map(valueAt)).toEqual(own.map(() => 1));
    }
    expect((await getList(application, 8)).status).toBe(404);
  });
});

describe("the entries of a list, byte by byte", () => {
  it("the entries of a list are packed from the lowest bits on and compressed by zlib, as the draft's decoder expects (section 4.1)", async () => {
    // The draft's own vector for two bits, read by the decoder that these tests use.
    const vector = await inflate("eNo76fITAAPfAgc");
    expect(Array.from({ length: 12 }, (_, idx) => entryOf(vector, idx))).toEqual([1, 2, 0, 3, 0, 1, 0, 1, 1, 2, 3, 3]);
    const bytes = validBits();
    for (const index of [0, 5, 7, 131_071]) setStatus(bytes, index, INVALID);
    for (const index of [1, 9]) setStatus(bytes, index, SUSPENDED);
    setStatus(bytes, 6, INVALID);
    setStatus(bytes, 6, VALID);
    expect([...bytes.subarray(0, 3)]).toEqual([0b00001001, 0b01000100, 0b00001000]);
    expect(bytes.at(-1)).toBe(0b01000000);
    const compressed = base64url.decode(await packBits(bytes));
    expect(await unpackBits(await packBits(bytes))).toEqual(bytes);
    // RFC 1950: deflate, and the two bytes together are a multiple of 31.
    expect((compressed[0] ?? 0) & 15).toBe(8);
    expect((((compressed[0] ?? 0) << 8) | (compressed[1] ?? 0)) % 31).toBe(0);
  });
});

describe("the size of a list", () => {
  it("a list is at most a quarter larger than at zlib's highest level, although the platform offers no choice of level", async () => {
    const indexOf = createPermutation(new Uint8Array(32), 131_072);
    const every = (step: number) => Array.from({ length: Math.floor(131_072 / step) }, (_, offset) => offset * step);
    // As deflateSync of node:zlib with level 9 makes them: 1 % and 10 % of the badges have ended.
    for (const [step, highest] of [
      [100, 1947],
      [10, 9886],
    ] as const) {
      const bits = validBits();
      for (const offset of every(step)) setStatus(bits, indexOf(offset), INVALID);
      const { length } = base64url.decode(await packBits(bits));
      expect(length / highest, `every ${step}th`).toBeLessThan(1.25);
    }
  });
});

describe("the index of a badge (contract section 14)", () => {
  const registered = async ({ id }: { id: ApplicationId }) => {
    const { context } = testContext();
    const found = await context.applicationCache.reload(context.db, id, Date.now());
    if (!found) throw new Error("the application is there");
    return found;
  };

  /** As a Worker that has just started computes it. */
  async function allIndexes(application: TestApplication, list: number): Promise<number[]> {
    const fresh = { unsealedKeys: new UnsealedKeys(new SealingKeys(env)), statusIndexes: new StatusIndexes() };
    const indexOf = await indexesOf(fresh, await registered(application), list);
    return Array.from({ length: 131_072 }, (_, offset) => indexOf(offset));
  }

  it("an index belongs to one badge, and every list has its own order", async () => {
    const [one, other] = [await withLists(), await withLists()];
    const all = [await allIndexes(one, 0), await allIndexes(one, 1), await allIndexes(other, 0)];
    for (const indexes of all) {
      const sorted = Uint32Array.from(indexes).sort();
      expect([sorted[0], new Set(indexes).size, sorted.at(-1)]).toEqual([0, 131_072, 131_071]);
    }
    const [indexes = [], ...others] = all;
    for (const each of [Array.from({ length: 131_072 }, (_, offset) => offset), ...others]) {
      // Of two unrelated orders about one index is the same by chance.
      expect(indexes.filter((idx, offset) => idx === each[offset]).length).toBeLessThan(20);
    }
  });

  it("the index does not reveal the order of issue: of two neighbours, the later has the higher index about half the time", async () => {
    const indexes = await allIndexes(await withLists(), 0);
    const rising = indexes.filter((idx, offset) => offset > 0 && idx > (indexes[offset - 1] ?? 0)).length;
    expect(rising).toBeGreaterThan(131_072 * 0.49);
    expect(rising).toBeLessThan(131_072 * 0.51);
  });

  it("a badge's index never changes: in every signature and state, after a restart, and after lists were off", async () => {
    const application = await withLists();
    const { number, idx } = await holder(application, "phone");
    for (const step of ["suspend", "resume"] as const) await succeed(takeStep(application, number, step));
    expect((await indexOn(application, "phone")).idx).toBe(idx);
    const [row] = await badgeRows(application);
    expect((await allIndexes(application, 0))[row?.ordinal ?? -1]).toBe(idx);
    for (const statusList of [false, true]) {
      await change(application, { statusList });
      moveClock(30_000);
      if (!statusList)
        expect(decodeJwt(String((await signOn(application, "phone")).body.signature))).not.toHaveProperty("status");
    }
    expect((await indexOn(application, "phone")).idx).toBe(idx);
    await succeed(takeStep(application, number, "revoke"));
    expect((await entriesSoon(application))(idx)).toBe(1);
  });
});

describe("which lists there are (contract section 14)", () => {
  const outcomeOf = async (application: { id: string }, list: number | string) => {
    const { status, text, headers } = await getList(application, list);
    if (status === 404) expect(headers.get("cache-control")).toBe("no-store");
    return status === 200 ? "200" : `${status} ${text}`;
  };
  const UNKNOWN = '404 {"error":"UNKNOWN_STATUSLIST"}';

  it("the first list exists from the start, and each further one within a second of its first badge", async () => {
    const application = await withLists();
    expect(await outcomeOf(application, 0)).toBe("200");
    expect(await outcomeOf(application, 1)).toBe(UNKNOWN);
    await issueTo(application, "phone", "alice");
    await movePositions(application, 131_070);
    // Nobody issues so many badges at once: the 404 before this one is sent for up to 20 seconds.
    moveClock(20_000);
    expect(await outcomeOf(application, 1)).toBe(UNKNOWN);
    await movePositions(application, 1);
    moveClock(1000);
    expect(await outcomeOf(application, 1)).toBe("200");
    const { uri } = await indexOn(application, "phone");
    expect(uri).toBe(`http://localhost:8787${listPath(application, 1)}`);
  });

  it("a malformed list number or application ID gets 404", async () => {
    const application = await withLists();
    for (const list of ["00", "-1", "1.5", "+0", "0x0", "%20", "one", "1e3", "9".repeat(30), "99999999999"]) {
      expect(await outcomeOf(application, list), list).toBe(UNKNOWN);
    }
    for (const id of ["constructor", "%00"]) expect(await outcomeOf({ id }, 0)).toBe(UNKNOWN);
  });

  it("all lists exist within a second of turning them on, and none 30 seconds after turning them off", async () => {
    const application = await createApplication();
    expect(await outcomeOf(application, 0)).toBe(UNKNOWN);
    await change(application, { statusList: true });
    moveClock(1000);
    expect(await outcomeOf(application, 0)).toBe("200");
    await change(application, { statusList: false });
    moveClock(30_000);
    expect(await outcomeOf(application, 0)).toBe(UNKNOWN);
  });
});

/** POST /v1/badge/sign with some bindings replaced. */
function signWith(bindings: Partial<Env>, application: { id: string }) {
  const headers = { applicationid: application.id, udid: "phone" };
  const init = { method: "POST", headers, body: '{"base64":"AAAA"}' };
  const request = new Request("https://badges.example/v1/badge/sign", init);
  return callWith({ DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, ...bindings }, request);
}

describe("a badge signature (contract section 14)", () => {
  it("a badge signature names the badge's list and index, and is otherwise unchanged", async () => {
    const application = await withLists();
    const number = await issueTo(application, "phone", "alice");
    const { body } = await signOn(application, "phone");
    const claims = decodeJwt(String(body.signature));
    const { idx } = statusOf(String(body.signature));
    expect(claims).toEqual({
      ...{ sub: number, aud: application.id, iat: claims.iat, client_signature: "aGVsbG8=" },
      status: { status_list: { idx, uri: `http://localhost:8787/v1/applications/${application.id}/status/0` } },
    });
    expect(idx).toBeLessThan(131_072);
  });

  it("a signature with status lists costs one round trip to D1, as without", async () => {
    const application = await withLists();
    await issueTo(application, "phone", "alice");
    await indexOn(application, "phone");
    let roundTrips = 0;
    const DB = aroundD1(homeDatabase(), (_, send) => {
      roundTrips++;
      return send();
    });
    const { body } = await signWith(bindDatabase(DB), application);
    expect(statusOf(String(body.signature)).idx).toBeLessThan(131_072);
    expect(roundTrips).toBe(1);
  });
});

describe("PUBLIC_URL (contract section 14)", () => {
  it.each([
    ["https://badges.example.com", "https://badges.example.com"],
    ["https://badges.example.com/", "https://badges.example.com"],
    ["https://Example.com:443/door//", "https://example.com/door"],
    ["http://localhost:8787", "http://localhost:8787"],
    ["", null],
    ["badges.example.com", null],
    ["ftp://badges.example.com", null],
    ["https://user@badges.example.com", null],
    ["https://badges.example.com/?a=b", null],
    ["https://badges.example.com/#a", null],
  ])("%j is read as %j", (text, expected) => {
    expect(parsePublicUrl(text)).toBe(expected);
  });

  it("without PUBLIC_URL lists are unavailable, doors use theirs, and no phone is locked out", async () => {
    const application = await withLists();
    await issueTo(application, "phone", "alice");
    const lost = { PUBLIC_URL: "" };
    const { status, body } = await signWith(lost, application);
    expect(status).toBe(200);
    expect(decodeJwt(String(body.signature))).not.toHaveProperty("status");
    expect(log.lines()).toContainEqual(expect.objectContaining({ event: "signed-without-status" }));
    const list = await callWith(lost, new Request(`https://badges.example${listPath(application, 0)}`));
    expect([list.status, list.body]).toEqual([503, { error: "UNAVAILABLE" }]);
    expect(JSON.stringify(log.lines().findLast(({ level }) => level === "error"))).toContain("PUBLIC_URL is not set");
  });
});
