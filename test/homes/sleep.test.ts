import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, it, vi } from "vitest";
import { issueTo, withBadge } from "../badges/life-support.ts";
import { allocatorOf } from "../support/allocator.ts";
import { createApplication } from "../support/application.ts";
import { testHome } from "../support/home.ts";

afterEach(() => {
  vi.unstubAllGlobals();
});

/** Timers that are set and have neither fired nor been cleared, from now on. */
function pendingTimers(): ReadonlySet<unknown> {
  const pending = new Set<unknown>();
  const [set, clear, wait] = [setTimeout, clearTimeout, scheduler.wait.bind(scheduler)];
  vi.stubGlobal("setTimeout", (callback: () => void, milliseconds: number) => {
    const timer = set(() => {
      pending.delete(timer);
      callback();
    }, milliseconds);
    pending.add(timer);
    return timer;
  });
  vi.stubGlobal("clearTimeout", (timer: number) => {
    pending.delete(timer);
    clear(timer);
  });
  vi.spyOn(scheduler, "wait").mockImplementation(async (milliseconds) => {
    const timer = {};
    pending.add(timer);
    await wait(milliseconds);
    pending.delete(timer);
  });
  return pending;
}

/** Lets the object do its work, and what it goes on with when its method has returned. */
async function finish<T extends Rpc.DurableObjectBranded>(
  object: DurableObjectStub<T>,
  work: (instance: T) => Promise<void>,
): Promise<void> {
  await runInDurableObject(object, async (instance, state) => {
    const works: Promise<unknown>[] = [];
    vi.spyOn(state, "waitUntil").mockImplementation((each) => void works.push(each));
    await work(instance);
    await Promise.all(works);
  });
}

it("a home's scheduler sleeps when its tick is done: it leaves no timer, and nothing to wait for (contract section 17)", async () => {
  await issueTo(await createApplication(), "phone", "alice");
  const pending = pendingTimers();
  await finish(env.HOME_SCHEDULER.getByName(String(testHome())), (instance) => instance.tick(testHome()));
  expect(pending.size).toBe(0);
});

it("an allocator sleeps when its alarm is done: it leaves no timer, and nothing to wait for (contract section 21)", async () => {
  const { application } = await withBadge();
  const pending = pendingTimers();
  await finish(allocatorOf(application), (allocator) => allocator.alarm());
  expect(pending.size).toBe(0);
});
