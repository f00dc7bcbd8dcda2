import { expect } from "vitest";
import { callWith, UNLIMITED } from "../support/bindings.ts";
import { type Answer, BADGE } from "../support/http.ts";
import { objectsSendTo, queueThat } from "../support/queue.ts";

/** A URL whose receiver nobody asks: `requestQuietly` sends no wake-ups. */
export const WEBHOOK_URL = "https://hooks.example/badges";

export const QUIETLY = { DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: UNLIMITED, WEBHOOKS: queueThat(() => {}) };

/** POST /v1/badge where neither limits nor deliveries are what is asked about, with some bindings replaced. */
export function requestQuietly(
  application: { id: string },
  udid: string,
  body: unknown,
  bindings: Partial<Env> = {},
): Promise<Answer> {
  const headers = { applicationid: application.id, udid };
  objectsSendTo(bindings.WEBHOOKS ?? QUIETLY.WEBHOOKS);
  return callWith({ ...QUIETLY, ...bindings }, "POST", BADGE, { headers, body });
}

export function numberOf({ body }: Answer): number {
  expect(body.badgeId, JSON.stringify(body)).toMatch(/^[1-9]\d*$/);
  return Number(body.badgeId);
}
