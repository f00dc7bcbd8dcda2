import { beforeEach, describe, expect, it, vi } from "vitest";
import { createApplication } from "../../support/application.ts";
import { call, requestBadge, serverHeaders, sign } from "../../support/http.ts";
import { outcome } from "../support/draft.ts";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

/** Every call of an application's server (contract sections 4, 12, 13, 15 and 19), on what the application has. */
const CALLS = [
  ["GET", "/v1/badges"],
  ["GET", "/v1/users/user/badges"],
  ["GET", "/v1/badges/NUMBER"],
  ["PATCH", "/v1/badges/NUMBER/suspend"],
  ["PATCH", "/v1/badges/NUMBER/resume"],
  ["PATCH", "/v1/badges/NUMBER"],
  ["PATCH", "/v1/badges/NUMBER/rebind"],
  ["PATCH", "/v1/badges/NUMBER/revoke"],
  ["GET", "/v1/users/user"],
  ["PATCH", "/v1/users/user/block"],
  ["PATCH", "/v1/users/user/unblock"],
  ["GET", "/v1/changes"],
  ["GET", "/v1/application"],
  ["GET", "/v1/invitations"],
  ["GET", "/v1/events"],
  ["GET", "/v1/stats"],
] as const;

async function owner() {
  const application = await createApplication();
  const { body } = await requestBadge(application, "phone", { userId: "user" });
  const send = (method: string, path: string, headers: Record<string, string>) =>
    call(method, path.replace("NUMBER", String(body.badgeId)), {
      headers,
      ...(method === "PATCH" && { body: { expiresAt: null } }),
    });
  return { application, send };
}

describe("what only an application's server may do (contract sections 4, 12, 13, 15 and 19)", () => {
  it.each(CALLS)("%s %s needs the application's own secret", async (method, path) => {
    const { application, send } = await owner();
    const foreign = await createApplication();
    const required = await createApplication({ requireSecret: true });
    const { id: applicationid, secret } = application;
    for (const headers of [
      {},
      { applicationid },
      { applicationid, udid: "phone" },
      { applicationsecret: secret },
      { applicationid, applicationsecret: "" },
      { applicationid, applicationsecret: "wrong" },
      { applicationid, applicationsecret: foreign.secret },
      { applicationid: foreign.id, applicationsecret: secret },
      { applicationid: required.id, applicationsecret: secret },
      { applicationid: "app_00000000000000000000", applicationsecret: secret },
      { applicationid, authorization: `Bearer ${secret}` },
    ]) {
      const refused = await send(method, path, { udid: "phone", ...headers });
      expect({ headers, is: outcome(refused) }).toEqual({ headers, is: "401 INVALID_CREDENTIALS" });
    }
    // Nothing of it had an effect.
    expect(outcome(await sign(application, "phone", { base64: "AAAA" }))).toBe("200");
    const other = await send("GET", "/v1/users/user", serverHeaders(application));
    expect(other.body).toEqual({ userId: "user", blocked: false });
    const granted = await send(method, path, serverHeaders(application));
    expect(outcome(granted)).toBe("200");
  });

  it.each(CALLS)("%s %s is refused to a disabled application", async (method, path) => {
    const application = await createApplication({ disabledAt: 1 });
    const refused = await call(method, path.replace("NUMBER", String(application.firstNumber)), {
      headers: serverHeaders(application),
    });
    expect(outcome(refused)).toBe("401 INVALID_CREDENTIALS");
  });

  it("another application's badge looks like one that does not exist, and does not change", async () => {
    const { application, send } = await owner();
    const stranger = await createApplication();
    const steps = CALLS.filter(([, path]) => path.includes("NUMBER"));
    for (const [method, path] of steps) {
      const foreign = await send(method, path, serverHeaders(stranger));
      expect({ path, is: outcome(foreign) }).toEqual({ path, is: "404 UNKNOWN_BADGE" });
    }
    await send("PATCH", "/v1/users/user/block", serverHeaders(stranger));
    expect((await send("GET", "/v1/changes", serverHeaders(stranger))).body).toEqual({ changes: [], more: false });
    expect(outcome(await sign(application, "phone", { base64: "AAAA" }))).toBe("200");
    expect(outcome(await requestBadge(application, "tablet", { userId: "user" }))).toBe("201");
  });
});
