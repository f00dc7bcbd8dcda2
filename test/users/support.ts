import { type Answer, call } from "../support/http.ts";

let devices = 0;

export const newUdid = (): string => `phone-${++devices}`;

/** A login from a device of its own, with a token or without. */
export function logIn(
  { id }: { id: string },
  token: string | null,
  body: Record<string, unknown> = { userId: "alice" },
  { udid = newUdid(), ...more }: Record<string, string> = {},
): Promise<Answer> {
  return call("POST", "/v1/badge", { headers: { applicationid: id, udid, ...bearer(token), ...more }, body });
}

export const ownBadges = ({ id }: { id: string }, token: string | null) =>
  call("GET", "/v1/user/badges", { headers: { applicationid: id, ...bearer(token) } });

export const suspendOwn = ({ id }: { id: string }, badgeId: string, token: string, body?: object) =>
  call("PATCH", `/v1/user/badges/${badgeId}/suspend`, { headers: { applicationid: id, ...bearer(token) }, body });

const bearer = (token: string | null): Record<string, string> =>
  token === null ? {} : { authorization: `Bearer ${token}` };
