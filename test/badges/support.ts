import { expect } from "vitest";
import type { ApplicationId } from "../../src/shared/identifiers.ts";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import type { Answer } from "../support/http.ts";
import { objectsSendTo, queueThat } from "../support/queue.ts";
import { badgeRows, eventRows } from "../support/rows.ts";

/** A URL whose receiver nobody asks: `requestQuietly` sends no wake-ups. */
export const WEBHOOK_URL = "https://hooks.example/badges";

const QUIETLY = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, WEBHOOKS: queueThat(() => {}) };

/** POST /v1/badge where neither limits nor deliveries are what is asked about, with some bindings replaced. */
export function requestQuietly(
  application: { id: string },
  udid: string,
  body: unknown,
  bindings: Partial<Env> = {},
): Promise<Answer> {
  const headers = { applicationid: application.id, udid };
  const init = { method: "POST", headers, body: JSON.stringify(body) };
  objectsSendTo(bindings.WEBHOOKS ?? QUIETLY.WEBHOOKS);
  return callWith({ ...QUIETLY, ...bindings }, new Request("https://badges.example/v1/badge", init));
}

export const inParallel = <T>(count: number, run: (place: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, place) => run(place)));

export function countStatuses(answers: readonly Answer[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

export function numberOf({ body }: Answer): number {
  expect(body.badgeId, JSON.stringify(body)).toMatch(/^[1-9]\d*$/);
  return Number(body.badgeId);
}

/** The numbers of as many granted requests, all of them different and in the application's range. */
export function expectDifferent(
  answers: readonly Answer[],
  { firstNumber, lastNumber }: { firstNumber: number; lastNumber: number },
): number[] {
  expect(countStatuses(answers)).toEqual({ 201: answers.length });
  const numbers = answers.map(numberOf);
  expect(new Set(numbers).size).toBe(answers.length);
  expect(numbers.every((number) => number >= firstNumber && number <= lastNumber)).toBe(true);
  return numbers;
}

/**
 * What holds for an application with one user device and a webhook URL, whatever failed on the way: one number in all
 * answers, told as new at most once; one badge, and one event.
 */
export async function expectOneBadge(application: { id: ApplicationId }, answers: readonly Answer[]): Promise<number> {
  const granted = answers.filter(({ status }) => status < 300);
  const [number, ...others] = new Set(granted.map(numberOf));
  if (number === undefined) expect.fail("no request was granted");
  expect(others).toEqual([]);
  expect(granted.filter(({ status }) => status === 201).length).toBeLessThanOrEqual(1);
  const refused = answers.filter(({ status }) => status >= 300);
  expect(refused.map(({ status, body, headers }) => [status, body, headers.has("retry-after")])).toEqual(
    refused.map(({ status }) =>
      status === 500 ? [500, { error: "INTERNAL_ERROR" }, false] : [503, { error: "UNAVAILABLE" }, true],
    ),
  );
  const badges = await badgeRows(application);
  expect(badges.map((badge) => badge.number)).toEqual([number]);
  expect((await eventRows(application)).map(({ id }) => id)).toEqual(badges.map(({ eventId }) => eventId));
  return number;
}
