import { describe, expect, it } from "vitest";
import { GroupCommit } from "../../src/worker/allocator/group-commit.ts";
import { byEffort } from "../support/effort.ts";
import { fc } from "../support/random.ts";

/** A writer whose groups wait until the test lets them through, one after the other. */
function createWriter() {
  const groups: (readonly number[])[] = [];
  const open: PromiseWithResolvers<readonly string[]>[] = [];
  let inFlight = 0;
  let mostInFlight = 0;
  return {
    groups,
    /** Groups being written at this moment, and the most there ever were. */
    inFlight: () => inFlight,
    mostInFlight: () => mostInFlight,
    async write(items: readonly number[]): Promise<readonly string[]> {
      const answer = Promise.withResolvers<readonly string[]>();
      groups.push(items);
      open.push(answer);
      inFlight++;
      mostInFlight = Math.max(mostInFlight, inFlight);
      try {
        return await answer.promise;
      } finally {
        inFlight--;
      }
    },
    /** Ends the oldest group that is being written. */
    succeed(): void {
      const place = groups.length - open.length;
      open.shift()?.resolve((groups[place] ?? []).map(String));
    },
    fail(error: unknown): void {
      open.shift()?.reject(error);
    },
    answer(results: readonly string[]): void {
      open.shift()?.resolve(results);
    },
  };
}

/** Lets everything run that waits for nothing but its turn. */
const settle = () => scheduler.wait(0);

/** Adds an item, and the others when that one's group is being written. */
async function addAll(group: GroupCommit<number, string>, [first, ...others]: readonly number[]) {
  const results = first === undefined ? [] : [group.add(first)];
  await settle();
  return [...results, ...others.map((item) => group.add(item))];
}

const numbers = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, place) => first + place);

describe("badges requested at the same time are written together (contract section 1)", () => {
  it("writes a single item after one turn of the event loop, with all that arrived in that turn", async () => {
    const writer = createWriter();
    const group = new GroupCommit(10, writer.write);
    void group.add(1);
    await Promise.resolve();
    void group.add(2);
    expect(writer.groups).toEqual([]);
    await settle();
    expect(writer.groups).toEqual([[1, 2]]);
  });

  it("collects the items that arrive while a group is being written, and writes them next", async () => {
    const writer = createWriter();
    const group = new GroupCommit(10, writer.write);
    const results = await addAll(group, numbers(1, 4));
    await settle();
    expect(writer.groups).toEqual([[1]]);
    writer.succeed();
    await settle();
    expect(writer.groups).toEqual([[1], [2, 3, 4]]);
    writer.succeed();
    expect(await Promise.all(results)).toEqual(["1", "2", "3", "4"]);
  });

  it("never writes more than the maximum at once, in the order of arrival", async () => {
    const writer = createWriter();
    const group = new GroupCommit(3, writer.write);
    const results = await addAll(group, numbers(1, 8));
    for (const _ of [1, 2, 3, 4]) {
      writer.succeed();
      await settle();
    }
    expect(writer.groups).toEqual([[1], [2, 3, 4], [5, 6, 7], [8]]);
    expect(await Promise.all(results)).toEqual(numbers(1, 8).map(String));
  });

  it("accepts items at the very moment when a group ends", async () => {
    const writer = createWriter();
    const group = new GroupCommit(10, writer.write);
    const second = group.add(1).then(() => group.add(2));
    await settle();
    writer.succeed();
    await settle();
    await settle();
    expect(writer.groups).toEqual([[1], [2]]);
    writer.succeed();
    expect(await second).toBe("2");
  });

  it("starts again after it was idle", async () => {
    const writer = createWriter();
    const group = new GroupCommit(10, writer.write);
    for (const item of [1, 2, 3]) {
      const result = group.add(item);
      await settle();
      writer.succeed();
      expect(await result).toBe(String(item));
      await settle();
    }
    expect(writer.groups).toEqual([[1], [2], [3]]);
  });
});

describe("a group that fails", () => {
  it("rejects its own items and no others", async () => {
    const writer = createWriter();
    const group = new GroupCommit(2, writer.write);
    const settled = Promise.allSettled(await addAll(group, numbers(1, 5)));
    const fault = new Error("D1 is away");
    writer.succeed();
    await settle();
    writer.fail(fault);
    await settle();
    writer.succeed();
    expect(await settled).toEqual([
      { status: "fulfilled", value: "1" },
      { status: "rejected", reason: fault },
      { status: "rejected", reason: fault },
      { status: "fulfilled", value: "4" },
      { status: "fulfilled", value: "5" },
    ]);
  });

  it("does not affect the next item, even when the writer throws synchronously", async () => {
    const fault = new Error("broken");
    const group = new GroupCommit<number, string>(10, (items) => {
      if (items.includes(1)) throw fault;
      return Promise.resolve(items.map(String));
    });
    await expect(group.add(1)).rejects.toBe(fault);
    expect(await group.add(2)).toBe("2");
  });

  it("rejects an item for which the writer returned no result", async () => {
    const writer = createWriter();
    const group = new GroupCommit(10, writer.write);
    const settled = Promise.allSettled(await addAll(group, [0, 1, 2]));
    writer.succeed();
    await settle();
    writer.answer(["1"]);
    expect((await settled).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
  });
});

describe("items in any order and timing", () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.constant("add" as const) },
    { weight: 2, arbitrary: fc.constantFrom("succeed" as const, "fail" as const, "pause" as const) },
  );

  it("are all settled with their own results, one group at a time", async () => {
    const steps = fc.array(step, { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 5 }), async (moments, maxItems) => {
        const writer = createWriter();
        const group = new GroupCommit(maxItems, writer.write);
        const settled: Promise<PromiseSettledResult<string>[]>[] = [];
        const failed = new Set<number>();
        const endGroup = (how: "succeed" | "fail") => {
          if (writer.inFlight() === 0) return;
          if (how === "fail") for (const item of writer.groups.at(-1) ?? []) failed.add(item);
          if (how === "fail") writer.fail(new Error("D1 is away"));
          else writer.succeed();
        };
        for (const moment of moments) {
          if (moment === "add") settled.push(Promise.allSettled([group.add(settled.length)]));
          else if (moment === "pause") await Promise.resolve();
          else {
            endGroup(moment);
            await settle();
          }
        }
        await settle();
        while (writer.inFlight() > 0) {
          endGroup("succeed");
          await settle();
        }
        expect(writer.mostInFlight()).toBeLessThanOrEqual(1);
        expect(writer.groups.every((items) => items.length >= 1 && items.length <= maxItems)).toBe(true);
        expect(writer.groups.flat()).toEqual([...settled.keys()]);
        for (const [item, results] of (await Promise.all(settled)).entries()) {
          const own = { status: "fulfilled", value: String(item) };
          expect(results).toMatchObject([failed.has(item) ? { status: "rejected" } : own]);
        }
      }),
      { numRuns: byEffort(100, 3000) },
    );
  });
});
