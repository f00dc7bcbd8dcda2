import { expect, vi } from "vitest";
import type { TestApplication } from "./application.ts";
import { ahead, HOUR } from "./clock.ts";
import { type Answer, call, callServer, requestBadge, serverHeaders } from "./http.ts";

export interface Invitation {
  token: string;
  number: number;
}

/** The device that creates invitations where a test does not say which. */
export const CREATOR = "creator of invitations";

/** POST /v1/invitation, without a secret unless `headers` has one. */
export function requestInvitation(
  application: { id: string },
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return call("POST", "/v1/invitation", {
    headers: { applicationid: application.id, udid: CREATOR, ...headers },
    body,
  });
}

/** An invitation that is granted. */
export async function invite(
  application: { id: string },
  expiresAt: string = ahead(HOUR),
  headers: Record<string, string> = {},
): Promise<Invitation> {
  const { status, body } = await requestInvitation(application, { expiresAt }, headers);
  expect(status, JSON.stringify(body)).toBe(201);
  return { token: String(body.id), number: Number(body.badgeId) };
}

/** POST /v1/badge with an invitation token. */
export function claim(
  application: { id: string },
  udid: string,
  userId: string,
  invitationToken: unknown,
): Promise<Answer> {
  return requestBadge(application, udid, { userId, invitationToken });
}

/** PATCH /v1/invitation/:id/revoke, by the application's server unless other headers are given. */
export function revoke(
  application: TestApplication,
  token: string,
  headers: Record<string, string> = serverHeaders(application),
): Promise<Answer> {
  return call("PATCH", `/v1/invitation/${encodeURIComponent(token)}/revoke`, { headers });
}

/** An invitation that another user device has claimed. */
export async function claimedInvitation(application: { id: string }): Promise<Invitation> {
  const invitation = await invite(application);
  expect((await claim(application, "claimer", "claimer", invitation.token)).status).toBe(201);
  return invitation;
}

export async function revokedInvitation(application: TestApplication): Promise<Invitation> {
  const invitation = await invite(application);
  expect((await revoke(application, invitation.token)).status).toBe(200);
  return invitation;
}

/** An invitation of two hours ago whose hour is over; the sweep has not come by. */
export async function expiredInvitation(application: { id: string }): Promise<Invitation> {
  vi.setSystemTime(Date.now() - 2 * HOUR);
  try {
    return await invite(application);
  } finally {
    vi.useRealTimers();
  }
}

/** The numbers that the application's server lists, oldest first. */
export async function listedNumbers(application: TestApplication): Promise<number[]> {
  const { body } = await callServer(application, "GET", "/v1/badges?per_page=1000");
  if (!Array.isArray(body.badges)) throw new Error("a page has badges");
  return body.badges.map(({ id }) => Number(id));
}
