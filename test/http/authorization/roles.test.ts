import { describe, expect, it } from "vitest";
import { ROLES } from "../../../src/shared/roles.ts";
import { createApplication } from "../../support/application.ts";
import { call, callServer, requestBadge, serverHeaders } from "../../support/http.ts";
import { outcome } from "../support/draft.ts";
import { hoursAhead } from "../support/invitations.ts";
import { signIn } from "../support/people.ts";
import { NOTHING, ROUTES, requestOf } from "../support/routes.ts";

const OF_SERVERS = ROUTES.filter(({ by }) => by === "server");
const READS = OF_SERVERS.filter(({ method }) => method === "GET");
/** Reception may invite. */
const CHANGES = OF_SERVERS.filter(({ method, path }) => method !== "GET" && path !== "/v1/invitations");

describe("what a console secret may do (contract section 24)", () => {
  it.each(ROLES)("a %s reads, who else has access as an operator alone, and is named with the role", async (role) => {
    // Without lists there is nothing to wait for.
    const application = await createApplication({ statusList: true });
    const { body } = await requestBadge(application, "phone", { userId: "user" });
    const headers = await signIn(application, role);
    for (const route of READS) {
      const { path } = requestOf(route, { ...NOTHING, badge: String(body.badgeId) });
      const answer = await call("GET", path, { headers });
      const isAllowed = role === "operator" || path !== "/v1/access";
      expect({ path, is: outcome(answer) }).toEqual({ path, is: isAllowed ? "200" : "403 READ_ONLY" });
    }
    // HEAD is GET without the body (RFC 9110 section 9.3.2).
    expect((await call("HEAD", "/v1/badges", { headers })).status).toBe(200);
    const { body: shown } = await call("GET", "/v1/application", { headers });
    expect(shown.signedIn).toEqual({ name: expect.stringContaining(`The ${role}`), role });
  });

  it.each([
    ["viewer", "nothing", "403 READ_ONLY", "403 READ_ONLY"],
    ["reception", "nothing but invitations", "403 READ_ONLY", "200"],
    ["operator", "everything", "200", "200"],
  ] as const)("a %s changes %s: others' badges %s, an invitation %s", async (role, _, changes, invites) => {
    const application = await createApplication({ requireSecret: true });
    const headers = await signIn(application, role);
    for (const route of CHANGES) {
      const { body } = await requestBadge(application, `phone for ${route.name}`, { userId: "user" });
      const { path, body: sent } = requestOf(route, { ...NOTHING, badge: String(body.badgeId) });
      const answer = await call(route.method, path, { headers, body: sent });
      const unknown = /\/(event|invitation)s?\//.exec(path)?.[1];
      const isUnknown = unknown !== undefined && changes === "200";
      expect({ path, is: outcome(answer) }).toEqual({
        path,
        is: isUnknown ? `404 UNKNOWN_${unknown.toUpperCase()}` : changes,
      });
    }
    const created = await call("POST", "/v1/invitation", { headers, body: { expiresAt: hoursAhead(1) } });
    expect(outcome(created)).toBe(invites === "200" ? "201" : invites);
    const revocable = await call("POST", "/v1/invitation", {
      headers: { ...serverHeaders(application), udid: "server" },
      body: { expiresAt: hoursAhead(1) },
    });
    const revoked = await call("PATCH", `/v1/invitation/${revocable.body.id}/revoke`, { headers });
    expect(outcome(revoked)).toBe(invites);
  });

  it("a refused change has no effect, and is refused before its body is read", async () => {
    const application = await createApplication();
    const { body } = await requestBadge(application, "phone", { userId: "user" });
    const headers = await signIn(application, "viewer");
    const refused = await call("PATCH", `/v1/badges/${body.badgeId}`, { headers, body: "{" });
    expect(outcome(refused)).toBe("403 READ_ONLY");
    const { body: badge } = await callServer(application, "GET", `/v1/badges/${body.badgeId}`);
    expect(badge).toMatchObject({ state: "active" });
  });
});

describe("for whom a server calls (contract section 23)", () => {
  const calling = async (headers: Record<string, string>, actor: string): Promise<string> =>
    outcome(await call("PATCH", "/v1/users/user/unblock", { headers: { ...headers, actor } }));

  it("is a name in percent-encoding, of at most 100 characters", async () => {
    const application = await createApplication();
    for (const actor of ["Ann Lee", "Ann%20Lee", "%E6%9D%8E", encodeURIComponent("ä".repeat(100)), " "]) {
      expect(`${actor} ${await calling(serverHeaders(application), actor)}`).toBe(`${actor} 200`);
    }
  });

  it.each([
    ["of broken encoding", "%"],
    ["of bytes that are not UTF-8", "%ff"],
    ["with a control character", "%0A"],
    ["of 101 characters", encodeURIComponent("ä".repeat(101))],
    ["of a blank", "%20"],
    ["of other blanks", "%E3%80%80%C2%A0"],
  ])(
    "a name %s gets 422 INVALID_ACTOR, without a valid secret 401, and is ignored with a console secret",
    async (_, actor) => {
      const application = await createApplication();
      const server = serverHeaders(application);
      expect(await calling(server, actor)).toBe("422 INVALID_ACTOR");
      expect(outcome(await call("GET", "/v1/badges", { headers: { ...server, actor } }))).toBe("422 INVALID_ACTOR");
      expect(await calling({ ...server, applicationsecret: "wrong" }, actor)).toBe("401 INVALID_CREDENTIALS");
      expect(await calling(await signIn(application, "operator"), actor)).toBe("200");
    },
  );
});
