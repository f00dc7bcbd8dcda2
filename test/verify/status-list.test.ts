import { describe, expect, it } from "vitest";
import { verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { encodeBase64Url } from "../../src/verify/encoding.ts";
import { readStatusList, statusAt, unpackStatuses } from "../../src/verify/status-list.ts";
import { expectEach, nameOf } from "./each-case.ts";
import { CASES, expectationsOf, LIST_OUTCOMES, resultOf, STATUS_LIST_ENCODINGS, type Vector } from "./vectors.ts";

/** The only list of a case, with its URI. */
function onlyList({ statusLists = {} }: Vector): { uri: string; jwt: string } {
  const [[uri, jwt] = ["", ""], ...more] = Object.entries(statusLists);
  if (more.length > 0) throw new Error("more than one list");
  return { uri, jwt };
}

const UNREADABLE = CASES.filter(({ statusListFailure }) => statusListFailure !== undefined);
const WITH_STATUS = CASES.filter((vector) => vector.claims?.status !== undefined && vector.statusLists !== undefined);
const [good] = WITH_STATUS;
if (good === undefined) throw new Error("no list");
const { uri, jwt } = onlyList(good);
const { keys } = expectationsOf(good);

describe("a status list that is read separately (contract section 14)", () => {
  it("a status list is refused as the vectors say", async () => {
    await expectEach(UNREADABLE, nameOf, {
      actual: (vector) => {
        const { uri, jwt } = onlyList(vector);
        return readStatusList(jwt, { keys: expectationsOf(vector).keys, uri });
      },
      expected: ({ statusListFailure }) => ({ ok: false, reason: statusListFailure }),
    });
    expect(new Set(UNREADABLE.map(({ statusListFailure }) => statusListFailure))).toEqual(new Set(LIST_OUTCOMES));
  });

  it("a status list is refused when it is longer than 524,288 characters", async () => {
    const [header = "", payload = "", signature = ""] = jwt.split(".");
    const longest = (length: number) => `${header}.${payload.padEnd(length - header.length - 88, "A")}.${signature}`;
    for (const [length, reason] of [
      [524_288, "bad-signature"],
      [524_292, "malformed"],
    ] as const) {
      expect(longest(length)).toHaveLength(length);
      expect(await readStatusList(longest(length), { keys, uri })).toEqual({ ok: false, reason });
    }
  });

  it("a status list has its times in milliseconds, how often to download it, and no last change if it does not say one (section 26)", async () => {
    expect(await readStatusList(jwt, { keys, uri })).toMatchObject({
      ok: true,
      list: { uri, issuedAt: 1_800_000_000_000, expiresAt: 1_800_086_400_000, ttlSeconds: 60, change: null },
    });
  });
});

describe("a status list that was read before (contract section 14)", () => {
  it("a status list that was read before decides each vector as the JWT does", async () => {
    const actual = async (vector: Vector) => {
      const expected = expectationsOf(vector);
      const kept = Object.entries(vector.statusLists ?? {}).map(async ([uri, jwt]) => {
        const read = await readStatusList(jwt, { keys: expected.keys, uri });
        if (!read.ok) throw new Error(`${vector.name}: ${read.reason}`);
        return [uri, read.list] as const;
      });
      const statusLists = Object.fromEntries(await Promise.all(kept));
      return verifyBadgeSignature(vector.jwt, { ...expected, statusLists });
    };
    await expectEach(WITH_STATUS, nameOf, { actual, expected: resultOf });
  });

  it("a status list that was read before is not accepted for another uri", async () => {
    const read = await readStatusList(jwt, { keys, uri });
    if (!read.ok) throw new Error(read.reason);
    const statusLists = { [uri]: { ...read.list, uri: `${uri}1` } };
    expect(await verifyBadgeSignature(good.jwt, { ...expectationsOf(good), statusLists })).toEqual({
      ok: false,
      reason: "status-unknown",
    });
  });
});

describe("the bytes of a status list (draft-ietf-oauth-status-list section 4)", () => {
  it("a list in which every badge is revoked is read: the sum of its bytes is beyond the checksum's modulus", async () => {
    const bytes = new Uint8Array(32_768).fill(0b01_01_01_01);
    const compressed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
    expect(await unpackStatuses(encodeBase64Url(await new Response(compressed).bytes()))).toEqual(bytes);
  });

  it.each(STATUS_LIST_ENCODINGS)("are read index by index: $name", async ({ lst, bits, entries, statuses }) => {
    const bytes = await unpackStatuses(lst);
    if (bytes === null) throw new Error("not a list");
    expect(bytes.length * 8).toBe(entries * bits);
    const found: Record<string, number> = {};
    for (let index = 0; index < entries; index++) {
      const status = statusAt(bytes, index, bits);
      if (status !== 0) found[index] = status ?? -1;
    }
    expect(found).toEqual(statuses);
    expect(statusAt(bytes, entries, bits)).toBeUndefined();
  });
});
