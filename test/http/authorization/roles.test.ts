import { describe, expect, it } from "vitest";
import { createApplication } from "../../support/application.ts";
import { call, callServer, outcome, requestBadge, serverHeaders } from "../../support/http.ts";
import { invite } from "../../support/invitations.ts";
import { signIn } from "../support/people.ts";
import { NOTHING, ROUTES, requestOf } from "../support/routes.ts";

const OF_SERVERS = ROUTES.filter(({ by }) => by === "server");

describe("what a console secret may do (contract section 24)", () => {
  it.each([
    ["viewer", "changes nothing", "403 READ_ONLY"],
    ["reception", "creates and revokes invitations", "403 READ_ONLY"],
    ["operator", "changes everything and reads who else has access", "200"],
  ] as const)("a %s reads and %s, and is named with the role", async (role, _, answer) => {
    // Without lists there is nothing to wait for.
    const application = await createApplication({ statusList: true, requireSecret: true });
    const headers = await signIn(application, role);
    const own = serverHeaders(application);
    for (const route of OF_SERVERS) {
      const { body } = await requestBadge(application, `phone for ${route.name}`, { userId: "user" });
      const { path, body: sent } = requestOf(route, { ...NOTHING, badge: String(body.badgeId) });
      const found = outcome(await call(route.method, path, { headers, body: sent }));
      const isRead = route.method === "GET" && path !== "/v1/access";
      const isAllowed = isRead || (role === "reception" && path === "/v1/invitations");
      const unknown = /\/(event|invitation)s?\/\w/.exec(path)?.[1];
      const granted = unknown && answer === "200" ? `404 UNKNOWN_${unknown.toUpperCase()}` : answer;
      expect({ path, found }).toEqual({ path, found: isAllowed ? "200" : granted });
      if (granted !== "403 READ_ONLY" || body.badgeId === undefined) continue;
      const { body: badge } = await callServer(application, "GET", `/v1/badges/${body.badgeId}`);
      expect(badge).toMatchObject({ state: "active" });
    }
    const mayInvite = role === "viewer" ? "403 READ_ONLY" : "200";
    const [invitation] = [await invite(application, undefined, own)];
    expect(outcome(await call("PATCH", `/v1/invitation/${invitation.token}/revoke`, { headers }))).toBe(mayInvite);
    // HEAD is GET without the body (RFC 9110 section 9.3.2).
    expect((await call("HEAD", "/v1/badges", { headers })).status).toBe(200);
    const { body: shown } = await call("GET", "/v1/application", { headers });
    expect(shown.signedIn).toEqual({ name: expect.stringContaining(`The ${role}`), role });
  });
});

// What is no such name: test/http/errors/order.test.ts.
it("the actor is a name in percent-encoding of at most 100 characters, ignored with a console secret (contract section 23)", async () => {
  const application = await createApplication();
  const calling = async (headers: Record<string, string>, actor: string) =>
    outcome(await call("PATCH", "/v1/users/user/unblock", { headers: { ...headers, actor } }));
  for (const actor of ["Ann Lee", "Ann%20Lee", "%E6%9D%8E", encodeURIComponent("ä".repeat(100)), " "]) {
    expect(`${actor} ${await calling(serverHeaders(application), actor)}`).toBe(`${actor} 200`);
  }
  expect(await calling(await signIn(application, "operator"), "%")).toBe("200");
});
