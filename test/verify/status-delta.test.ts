import { decodeJwt } from "jose";
import { expect, it } from "vitest";
import { applyStatusDelta, readStatusDelta } from "../../src/verify/status-delta.ts";
import { readStatusList, statusAt } from "../../src/verify/status-list.ts";
import { expectEach, nameOf } from "./each-case.ts";
import { LIST_OUTCOMES, STATUS_DELTAS } from "./vectors.ts";

type Case = (typeof STATUS_DELTAS)[number];

/** What a door makes of a case: its list with the delta, or why there is none. */
async function outcomeOf({ jwt, uri, publicKeys: keys, list, listUri }: Case): Promise<object> {
  const read = await readStatusDelta(jwt, { keys, uri });
  if (!read.ok) return { expected: read.reason };
  expect(read.delta.issuedAt).toBe(Number(decodeJwt(jwt).iat) * 1000);
  const kept = await readStatusList(list, { keys, uri: listUri });
  if (!kept.ok) throw new Error(kept.reason);
  const before = Uint8Array.from(kept.list.statuses);
  const applied = applyStatusDelta(kept.list, read.delta);
  expect(kept.list.statuses).toEqual(before);
  if (applied === null) return { expected: "does-not-fit" };
  const indexes = Array.from({ length: applied.statuses.length * 4 }, (_, index) => index);
  const found = indexes.map((index) => [String(index), statusAt(applied.statuses, index)] as const);
  const statuses = Object.fromEntries(found.filter(([, status]) => status !== 0));
  return { expected: "ok", change: applied.change, statuses };
}

it("a delta of statuses is refused or applied as the vectors say, has its time in milliseconds, and leaves the list as it was (contract section 26)", async () => {
  await expectEach(STATUS_DELTAS, nameOf, {
    actual: outcomeOf,
    expected: ({ expected, change, statuses }) => (expected === "ok" ? { expected, change, statuses } : { expected }),
  });
  const reasons = new Set(STATUS_DELTAS.map(({ expected }) => expected));
  expect(reasons).toEqual(new Set(["ok", "does-not-fit", ...LIST_OUTCOMES]));
});
