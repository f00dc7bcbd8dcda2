import { afterEach, beforeEach, vi } from "vitest";

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** In every test of the file time stands still until it is moved, for the Worker and its objects too; timers run on. */
export function useStandingClock(): void {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

/** Moves a standing clock. */
export function moveClock(milliseconds: number): void {
  vi.setSystemTime(Date.now() + milliseconds);
}

/** @returns ISO 8601 in UTC, with milliseconds */
export function ahead(milliseconds: number): string {
  return new Date(Date.now() + milliseconds).toISOString();
}
