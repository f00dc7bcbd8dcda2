import { describe, expect, it } from "vitest";
import { PLATFORM_RETRY_BASE_MILLISECONDS } from "../src/shared/limits/platform-limits.ts";
import { isLocked, isOverloaded, isRetryable } from "../src/shared/retryable.ts";
import { retryPlatform } from "../src/worker/platform.ts";

const objectError = (marks: { retryable?: boolean; overloaded?: boolean }) =>
  Object.assign(new Error("the object failed"), marks);
const wrapped = (cause: unknown) => new Error("D1 is unavailable", { cause });

describe("which failures of the platform are repeated (contract section 21)", () => {
  it.each([
    "D1_ERROR: Network connection lost.",
    "D1_ERROR: storage caused object to be reset",
    "Durable Object reset because its code was updated.",
    "Cannot resolve D1 DB due to transient issue on remote node.",
    "SQLITE_BUSY",
    "database is locked",
    "internal error",
  ])("a call is repeated after '%s', also as the cause of another error", (message) => {
    expect([new Error(message), wrapped(new Error(message))].map(isRetryable)).toEqual([true, true]);
  });

  it("a call of an object is repeated if the error says so, but not when the object is overloaded", () => {
    expect(isRetryable(objectError({ retryable: true }))).toBe(true);
    expect(isRetryable(wrapped(objectError({ retryable: true })))).toBe(true);
    expect(isRetryable(objectError({ retryable: false }))).toBe(false);
    expect(isRetryable(objectError({ retryable: true, overloaded: true }))).toBe(false);
    expect(isRetryable(objectError({ retryable: true, overloaded: false }))).toBe(true);
  });

  it("a call is not repeated once its deadline has passed: nobody waits for it any more", async () => {
    const hanging = Promise.withResolvers<never>();
    let tries = 0;
    const call = () => {
      tries++;
      return hanging.promise;
    };
    await expect(retryPlatform("D1", call, 10)).rejects.toThrow("D1 is unavailable");
    hanging.reject(new Error("Network connection lost."));
    // Longer than the first pause.
    await scheduler.wait(2 * PLATFORM_RETRY_BASE_MILLISECONDS + 50);
    expect(tries).toBe(1);
  });

  it("nothing else is repeated", () => {
    for (const error of [new Error("UNIQUE constraint failed"), "Network connection lost", undefined]) {
      expect([isRetryable(error), isLocked(error), isOverloaded(error)]).toEqual([false, false, false]);
    }
  });

  it("a locked local database is recognized, and overload by the mark of an object and by the message of D1", () => {
    expect(isLocked(wrapped(new Error("database is locked")))).toBe(true);
    expect(isLocked(new Error("Network connection lost"))).toBe(false);
    expect(isOverloaded(wrapped(objectError({ overloaded: true })))).toBe(true);
    expect(isOverloaded(new Error("D1 DB is overloaded. Requests queued for too long."))).toBe(true);
    expect(isOverloaded(objectError({ overloaded: false }))).toBe(false);
  });
});
