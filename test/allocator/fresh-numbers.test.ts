import { expect, it, vi } from "vitest";
import { applicationId } from "../../src/shared/identifiers.ts";
import { INITIAL_HEAD } from "../../src/shared/initial-head.ts";
import type { RangeSegment } from "../../src/shared/schema.ts";
import { FreshNumbers } from "../../src/worker/allocator/fresh-numbers.ts";
import { randomBelow } from "../../src/worker/allocator/random.ts";
import { highest } from "../../src/worker/allocator/replica/republish.ts";
import { issueTo } from "../badges/life-support.ts";
import { createApplication } from "../support/application.ts";
import { log } from "../support/log.ts";
import { request } from "./decide/support.ts";

const APPLICATION = applicationId.parse("app_00000000000000000000");

const hmacKey = () =>
  crypto.subtle.importKey("raw", new Uint8Array(32), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);

const newInstance = () => new FreshNumbers(APPLICATION, { rootKey: hmacKey });

/** All numbers of a part, in the order in which they are handed out. */
async function orderOf(numbers: FreshNumbers, size: number): Promise<number[]> {
  const part: RangeSegment = { first: 1000, size, used: 0 };
  const numberAt = await numbers.forCommands([request()]);
  return Array.from({ length: size }, (_, index) => numberAt(part, index));
}

it("a range segment is used in one order, whatever size it had in a group that D1 did not apply (contract section 5)", async () => {
  const instance = newInstance();
  expect((await orderOf(instance, 6)).sort()).toEqual([1000, 1001, 1002, 1003, 1004, 1005]);
  // The range has grown further before anything of that was stored.
  const grown = await orderOf(instance, 9);
  expect(grown.toSorted()).toEqual([1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008]);
  expect(await orderOf(newInstance(), 9)).toEqual(grown);
});

it("a warning is logged once when 90 % of a range's numbers are used, and once when 99 % are (docs/operations.md)", async () => {
  const application = await createApplication({ size: 10 });
  const warnings = () =>
    log.lines().filter(({ event, application: id }) => event === "range-fills-up" && id === application.id);
  for (let count = 1; count <= 8; count++) await issueTo(application, `phone-${count}`, "alice");
  expect(warnings()).toEqual([]);
  await issueTo(application, "phone-9", "alice");
  expect(warnings()).toMatchObject([{ level: "warn", usedPercent: 90, left: 1 }]);
  await issueTo(application, "phone-10", "alice");
  expect(warnings()).toMatchObject([{ usedPercent: 90 }, { level: "warn", usedPercent: 99, left: 0 }]);
});

it("each freed number is drawn equally often: random bytes that would favour some are drawn again (contract section 5)", () => {
  const drawOf = (...draws: number[][]): number => {
    vi.spyOn(crypto, "getRandomValues").mockImplementation((bytes) => {
      if (bytes instanceof Uint8Array) bytes.set(draws.shift() ?? []);
      return bytes;
    });
    return randomBelow(10);
  };
  expect(drawOf([1, 2, 3, 4, 5, 6])).toBe(0x010203040506 % 10);
  // 2^48 ends in a 6: of the six highest values none is used, or six of ten numbers would come more often.
  expect(drawOf([255, 255, 255, 255, 255, 249])).toBe(9);
  expect(drawOf([255, 255, 255, 255, 255, 250], [0, 0, 0, 0, 0, 7])).toBe(7);
});

it.each([
  { other: { size: 4, used: 3 }, expected: { size: 4, used: 3 } },
  { other: { size: 6, used: 1 }, expected: { size: 6, used: 6 } },
  { other: { size: 3, used: 1 }, expected: { size: 4, used: 4 } },
])("a republication uses none of a segment's numbers again: D1's $other makes it $expected", ({ other, expected }) => {
  const counters = (segment: object) => ({
    ...INITIAL_HEAD,
    rangeSegments: [{ first: 1000, size: 4, used: 2, ...segment }],
    lastSigningKey: 1,
  });
  expect(highest(counters({}), counters(other)).rangeSegments).toEqual([{ first: 1000, ...expected }]);
});
