import { expect, vi } from "vitest";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { call, callServer, requestBadge } from "../../support/http.ts";

const HOUR_MILLISECONDS = 3600 * 1000;

/** @returns ISO 8601, in UTC */
export function hoursAhead(hours: number): string {
  return new Date(Date.now() + hours * HOUR_MILLISECONDS).toISOString();
}

export interface Invitation {
  id: string;
  badgeId: string;
}

/** Invitations are created by this udid, without a secret. */
export const CREATOR = "creator of invitations";

export async function invite(
  application: { id: string },
  expiresAt: string = hoursAhead(1),
  headers: Record<string, string> = {},
): Promise<Invitation> {
  const { status, body } = await call("POST", "/v1/invitation", {
    headers: { applicationid: application.id, udid: CREATOR, ...headers },
    body: { expiresAt },
  });
  expect(status).toBe(201);
  return { id: String(body.id), badgeId: String(body.badgeId) };
}

/** An invitation that another user device has claimed. */
export async function claimedInvitation(application: { id: string }): Promise<Invitation> {
  const invitation = await invite(application);
  const claim = await requestBadge(application, "claimer", { userId: "claimer", invitationToken: invitation.id });
  expect(claim.status).toBe(201);
  return invitation;
}

export async function revokedInvitation(application: TestApplication): Promise<Invitation> {
  const invitation = await invite(application);
  const path = `/v1/invitation/${invitation.id}/revoke`;
  expect(await callServer(application, "PATCH", path)).toMatchObject({ status: 200 });
  return invitation;
}

/** An invitation of two hours ago whose hour is over; the sweep has not come by. */
export async function expiredInvitation(application: { id: string }): Promise<Invitation> {
  const now = Date.now();
  vi.setSystemTime(now - 2 * HOUR_MILLISECONDS);
  try {
    return await invite(application);
  } finally {
    vi.useRealTimers();
  }
}

/** An application with a badge and an invitation, both of the device `CREATOR`. */
export async function tenant(): Promise<{ application: TestApplication; invitation: string }> {
  const application = await createApplication();
  expect((await requestBadge(application, CREATOR, { userId: "user" })).status).toBe(201);
  return { application, invitation: (await invite(application)).id };
}
