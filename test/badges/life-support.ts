import { expect } from "vitest";
import { createApplication, type TestApplication } from "../support/application.ts";
import { A_SIGNATURE, type Answer, callServer, requestBadge, sign } from "../support/http.ts";

export const signOn = (application: { id: string }, udid: string): Promise<Answer> =>
  sign(application, udid, A_SIGNATURE);

/** A device logs a user in and is given a badge. @returns its number */
export async function issueTo(application: { id: string }, udid: string, userId: string): Promise<string> {
  const { status, body } = await requestBadge(application, udid, { userId });
  expect(status, JSON.stringify(body)).toBe(201);
  return String(body.badgeId);
}

/** An application with a badge of alice on the device "phone". */
export async function withBadge(options: Parameters<typeof createApplication>[0] = {}) {
  const application = await createApplication(options);
  return { application, number: await issueTo(application, "phone", "alice") };
}

export const getBadge = (application: TestApplication, number: string): Promise<Answer> =>
  callServer(application, "GET", `/v1/badges/${number}`);

export type BadgeStep = "suspend" | "resume" | "revoke";

export const takeStep = (application: TestApplication, number: string, step: BadgeStep): Promise<Answer> =>
  callServer(application, "PATCH", `/v1/badges/${number}/${step}`);

/** @param expiresAt date-time, or null for no end */
export const setEnd = (application: TestApplication, number: string, expiresAt: unknown): Promise<Answer> =>
  callServer(application, "PATCH", `/v1/badges/${number}`, { expiresAt });

export const block = (application: TestApplication, userId: string): Promise<Answer> =>
  callServer(application, "PATCH", `/v1/users/${encodeURIComponent(userId)}/block`);

export const unblock = (application: TestApplication, userId: string): Promise<Answer> =>
  callServer(application, "PATCH", `/v1/users/${encodeURIComponent(userId)}/unblock`);
