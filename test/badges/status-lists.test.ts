import { env } from "cloudflare:workers";
import { drizzle } from "drizzle-orm/d1";
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from "jose";
import { describe, expect, it } from "vitest";
import { makeSigningKey } from "../../src/shared/credentials.ts";
import { signingKey } from "../../src/shared/schema.ts";
import { parsePublicUrl } from "../../src/shared/service-url.ts";
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
import { createApplication, type TestApplication, testSealer } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { ahead, HOUR, moveClock, useStandingClock } from "../support/clock.ts";
import { testContext } from "../support/context.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { A_SIGNATURE, SIGN } from "../support/http.ts";
import { claim, invite } from "../support/invitations.ts";
import { log } from "../support/log.ts";
import { badgeRows } from "../support/rows.ts";
import { sweep } from "../support/sweep.ts";
import { type BadgeStep, issueTo, setEnd, signOn, takeStep } from "./life-support.ts";
import { claimsOf, entriesOf, entryOf, getList, holder, indexOn, inflate, keysOf, listPath } from "./status-support.ts";

useStandingClock();

const withLists = (columns: Parameters<typeof createApplication>[0] = {}) =>
  createApplication({ statusList: true, ...columns });

/** What doors see 30 seconds from now: longer than any copy of a list may live. Moves the clock by that. */
async function entriesSoon(application: { id: string }, list = 0): Promise<(idx: number) => number> {
  moveClock(30_000);
  const { status, text } = await getList(application, list);
  expect(status).toBe(200);
  return entriesOf(text);
}

async function succeed(call: Promise<{ status: number }>): Promise<void> {
  expect((await call).status).toBeLessThan(300);
}

const turnLists = ({ id }: { id: string }, isOn: 0 | 1) =>
  runSql("UPDATE application SET status_list = ?2 WHERE id = ?1", id, isOn);

/** The application's badges get other ordinals, the same distance apart, as if many had been issued before. */
const movePositions = ({ id }: { id: string }, by: number) =>
  runSql("UPDATE badge SET ordinal = ordinal + ?2, change = change + ?2 WHERE application_id = ?1", id, by);

const setLastPosition = ({ id }: { id: string }, ordinal: number) =>
  runSql("UPDATE application_head SET last_ordinal = ?2 WHERE application_id = ?1", id, ordinal);

/** As a Worker that has just started computes it. */
async function allIndexes({ id }: TestApplication, list: number): Promise<number[]> {
  const { context } = testContext();
  const registered = await context.applicationCache.reload(context.db, id, Date.now());
  if (!registered) throw new Error("the application is there");
  const fresh = { unsealedKeys: new UnsealedKeys(new SealingKeys(env)), statusIndexes: new StatusIndexes() };
  const indexOf = await indexesOf(fresh, registered, list);
  return Array.from({ length: 131_072 }, (_, offset) => indexOf(offset));
}

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
    const head = await getList(application, 0, "", { method: "HEAD" });
    expect([head.status, head.headers.get("content-type"), head.text]).toEqual([200, "application/statuslist+jwt", ""]);
    // A disabled application keeps its lists, because doors still check its badges.
    const other = await withLists({ statusLifetimeSeconds: 900, disabledAt: 1 });
    const { iat, exp } = claimsOf((await getList(other)).text);
    expect(exp - iat).toBe(900);
  });

  it("a status list is signed by the key that signs new badges", async () => {
    const application = await withLists();
    const kidOf = async () => decodeProtectedHeader((await getList(application)).text).kid;
    const oldKid = await kidOf();
    // Keys of one millisecond have no order.
    moveClock(1);
    const { kid, ...key } = await makeSigningKey(await testSealer(), application.id);
    const more = { applicationId: application.id, createdAt: Date.now(), signsFrom: Date.now() + 600_000 };
    await drizzle(homeDatabase())
      .insert(signingKey)
      .values({ kid, ...key, ...more });
    moveClock(300_000);
    expect(await kidOf()).toBe(oldKid);
    moveClock(330_000);
    expect(await kidOf()).toBe(kid);
  });
});

describe("the value of a badge (contract section 14)", () => {
  it("the value is 0 for an active badge, 1 for a revoked or replaced one, 2 for a suspended or expired one", async () => {
    const application = await withLists();
    const times = (until: number) => (number: string) => setEnd(application, number, ahead(until));
    const step = (name: BadgeStep) => (number: string) => takeStep(application, number, name);
    const expire = times(-HOUR);
    const cases: [value: number, ...acts: ((number: string) => Promise<{ status: number }>)[]][] = [
      [0],
      [2, step("suspend")],
      [0, step("suspend"), step("resume")],
      [1, step("revoke")],
      [1, expire, step("revoke")],
      [2, expire],
      [0, expire, times(24 * HOUR)],
    ];
    const indexes = [];
    for (const [place, [, ...acts]] of cases.entries()) {
      const { number, idx } = await holder(application, `phone-${place}`);
      for (const act of acts) await succeed(act(number));
      indexes.push(idx);
    }
    const { idx: replaced } = await holder(application, "replaced");
    const { token } = await invite(application);
    await succeed(claim(application, "replaced", "user of replaced", token));
    const { idx: replacing } = await indexOn(application, "replaced");
    const valueAt = await entriesSoon(application);
    const expected = cases.map(([value]) => value);
    expect([...indexes, replaced, replacing].map(valueAt)).toEqual([...expected, 1, 0]);
    const all = Array.from({ length: 131_072 }, (_, idx) => valueAt(idx));
    expect([1, 2, 3].map((value) => all.filter((each) => each === value).length)).toEqual([3, 2, 0]);
  });

  it("the value becomes 2 at the badge's end by the clock, before any sweep", async () => {
    const application = await withLists();
    const { number, idx } = await holder(application, "phone");
    const paused = await holder(application, "suspended phone");
    await succeed(takeStep(application, paused.number, "suspend"));
    for (const each of [number, paused.number]) await succeed(setEnd(application, each, ahead(HOUR)));
    const valuesSoon = async () => {
      const valueAt = await entriesSoon(application);
      return [idx, paused.idx].map(valueAt);
    };
    expect(await valuesSoon()).toEqual([0, 2]);
    moveClock(HOUR);
    expect(await valuesSoon()).toEqual([2, 2]);
    expect((await badgeRows(application)).map(({ endedAt }) => endedAt)).toEqual([null, null]);
    await sweep();
    expect((await badgeRows(application)).map(({ endedAt }) => endedAt)).not.toContain(null);
    // The clock goes back before the end that was recorded.
    moveClock(-HOUR);
    expect(await valuesSoon()).toEqual([2, 2]);
    moveClock(HOUR);
    await succeed(setEnd(application, number, null));
    expect(await valuesSoon()).toEqual([0, 2]);
  });

  it("lists exist within a second of turning them on, with the badges issued before, and none 30 seconds after turning them off; a badge keeps its index", async () => {
    const application = await createApplication();
    const ended = await issueTo(application, "first", "alice");
    await issueTo(application, "second", "bob");
    await succeed(takeStep(application, ended, "revoke"));
    const claims = async () => decodeJwt(String((await signOn(application, "second")).body.signature));
    expect(await claims()).not.toHaveProperty("status");
    expect((await getList(application)).status).toBe(404);
    await turnLists(application, 1);
    moveClock(1000);
    const valueAt = await entriesOf((await getList(application)).text);
    expect(Array.from({ length: 131_072 }, (_, idx) => valueAt(idx)).filter((value) => value === 1)).toHaveLength(1);
    moveClock(30_000);
    const { idx } = await indexOn(application, "second");
    expect(valueAt(idx)).toBe(0);
    await turnLists(application, 0);
    moveClock(30_000);
    expect((await getList(application)).status).toBe(404);
    expect(await claims()).not.toHaveProperty("status");
    await turnLists(application, 1);
    moveClock(30_000);
    expect((await indexOn(application, "second")).idx).toBe(idx);
  });

  it("a badge's value is in the list that its signature names", async () => {
    const application = await withLists();
    const names = ["one", "two", "three"];
    const numbers = await Promise.all(names.map((name) => issueTo(application, name, name)));
    // Positions are 1 to 3: the second of them is to be the first of list 7.
    await movePositions(application, 7 * 131_072 - 2);
    const places = await Promise.all(names.map((name) => indexOn(application, name)));
    const orders = { 6: await allIndexes(application, 6), 7: await allIndexes(application, 7) };
    const rows = await badgeRows(application);
    for (const [place, number] of numbers.entries()) {
      const ordinal = rows.find((row) => row.number === Number(number))?.ordinal ?? Number.NaN;
      const list = ordinal < 7 * 131_072 ? 6 : 7;
      const uri = `http://localhost:8787${listPath(application, list)}`;
      expect(places[place]).toEqual({ idx: orders[list][ordinal % 131_072], uri });
      await succeed(takeStep(application, number, "revoke"));
    }
    // With each change D1 gets the allocator's counters, which were not moved.
    await setLastPosition(application, 7 * 131_072 + 1);
    for (const list of [6, 7]) {
      const valueAt = await entriesSoon(application, list);
      const revoked = Array.from({ length: 131_072 }, (_, idx) => idx).filter((idx) => valueAt(idx) === 1);
      const own = places.filter(({ uri }) => uri.endsWith(`/${list}`)).map(({ idx }) => idx);
      expect(own).toHaveLength(list - 5);
      expect(revoked).toEqual(own.toSorted((one, other) => one - other));
    }
    expect((await getList(application, 8)).status).toBe(404);
  });
});

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
  const compressed = await packBits(bytes);
  expect(await unpackBits(compressed)).toEqual(bytes);
  expect(await inflate(compressed)).toEqual(bytes);
});

it("an index belongs to one badge, every list has its own order, and none reveals the order of issue (contract section 14)", async () => {
  const [one, other] = [await withLists(), await withLists()];
  const indexes = await allIndexes(one, 0);
  expect(new Set(indexes).size).toBe(131_072);
  for (const each of [await allIndexes(one, 1), await allIndexes(other, 0)]) {
    // Of two unrelated orders about one index is the same by chance.
    expect(indexes.filter((idx, offset) => idx === each[offset]).length).toBeLessThan(20);
  }
  // Of two neighbours, the later has the higher index about half the time.
  const rising = indexes.filter((idx, offset) => offset > 0 && idx > (indexes[offset - 1] ?? 0)).length;
  expect(Math.abs(rising / 131_072 - 0.5)).toBeLessThan(0.01);
});

it("a malformed list number or application ID gets 404, and a status list of a past time is refused: 501 NOT_IMPLEMENTED (contract section 14)", async () => {
  const application = await withLists();
  for (const list of ["00", "-1", "1.5", "0x0", "%20", "9".repeat(30)]) {
    expect((await getList(application, list)).text, list).toBe('{"error":"UNKNOWN_STATUSLIST"}');
  }
  expect((await getList({ id: "constructor" })).status).toBe(404);
  for (const query of ["?time=1800000000", "?time"]) {
    expect((await getList(application, 0, query)).status, query).toBe(501);
  }
});

describe("PUBLIC_URL (contract section 14)", () => {
  it.each([
    ["https://Example.com:443/door//", "https://example.com/door"],
    ["badges.example.com", null],
    ["ftp://badges.example.com", null],
    ["https://user@badges.example.com", null],
    ["https://badges.example.com/?a=b", null],
    ["https://badges.example.com/#a", null],
  ])("PUBLIC_URL %j is read as %j", (text, expected) => {
    expect(parsePublicUrl(text)).toBe(expected);
  });

  it.each<object>([{ PUBLIC_URL: "" }, { PUBLIC_URL: undefined }])(
    "without PUBLIC_URL lists are unavailable, doors use theirs, and no phone is locked out: %j",
    async (lost) => {
      const application = await withLists();
      await issueTo(application, "phone", "alice");
      const headers = { applicationid: application.id, udid: "phone" };
      const { status, body } = await callWith(lost, "POST", SIGN, { headers, body: A_SIGNATURE });
      expect(status).toBe(200);
      expect(decodeJwt(String(body.signature))).not.toHaveProperty("status");
      expect(log.lines()).toContainEqual(expect.objectContaining({ event: "signed-without-status" }));
      const list = await callWith(lost, "GET", listPath(application, 0));
      expect([list.status, list.body]).toEqual([503, { error: "UNAVAILABLE" }]);
      expect(JSON.stringify(log.lines().findLast(({ level }) => level === "error"))).toContain("PUBLIC_URL is not set");
    },
  );
});
