import { beforeAll, describe, expect, it } from "vitest";
import { RECORDED_EVENTS, readRows } from "../../invitations/support/storage.ts";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { call, callServer, requestBadge, serverHeaders, sign } from "../../support/http.ts";
import { outcome } from "../support/draft.ts";
import { invite } from "../support/invitations.ts";
import { NOTHING, ROUTES, type Route, requestOf } from "../support/routes.ts";

const CALLS = ROUTES.filter(({ by }) => by === "server");

async function owner() {
  const application = await createApplication({ ...RECORDED_EVENTS, statusList: true });
  const { body } = await requestBadge(application, "phone", { userId: "user" });
  const [event] = (await readRows(application)).events;
  const invitation = (await invite(application)).id;
  const subjects = { ...NOTHING, badge: String(body.badgeId), event: event?.id ?? "", invitation };
  const send = (route: Route, headers: Record<string, string>) => {
    const { path, body: sent } = requestOf(route, subjects);
    return call(route.method, path, { headers: { udid: "phone", ...headers }, body: sent });
  };
  return { application, send };
}

describe("what only an application's server may do (contract sections 4, 12, 13, 15, 19 and 24)", () => {
  let foreign: TestApplication;
  let required: TestApplication;
  let disabled: TestApplication;

  beforeAll(async () => {
    foreign = await createApplication();
    required = await createApplication({ requireSecret: true });
    disabled = await createApplication({ disabledAt: 1 });
  });

  it.each(CALLS)("$name needs the application's own secret", async (route) => {
    const { application, send } = await owner();
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
      serverHeaders(disabled),
    ]) {
      const refused = await send(route, headers);
      expect({ headers, is: outcome(refused) }).toEqual({ headers, is: "401 INVALID_CREDENTIALS" });
    }
    const { path } = requestOf(route, { ...NOTHING, badge: "nonsense" });
    const unread = await call(route.method, `${path.replace(/\?.*/, "")}?state=nonsense&per_page=0`, {
      headers: { applicationid },
      ...(route.method !== "GET" && { body: "{" }),
    });
    expect(outcome(unread), "whatever else is wrong").toBe("401 INVALID_CREDENTIALS");
    // Nothing of it had an effect.
    expect(outcome(await sign(application, "phone", { base64: "AAAA" }))).toBe("200");
    const { body } = await callServer(application, "GET", "/v1/users/user");
    expect(body).toEqual({ userId: "user", blocked: false });
    const granted = await send(route, serverHeaders(application));
    expect(outcome(granted)).toMatch(/^20\d$/);
  });

  it("another application's badge looks like one that does not exist, and does not change", async () => {
    const { application, send } = await owner();
    const stranger = await createApplication();
    for (const route of CALLS.filter(({ path }) => path.includes("/badges/{id}"))) {
      const foreign = await send(route, serverHeaders(stranger));
      expect({ name: route.name, is: outcome(foreign) }).toEqual({ name: route.name, is: "404 UNKNOWN_BADGE" });
    }
    const headers = serverHeaders(stranger);
    await call("PATCH", "/v1/users/user/block", { headers });
    expect((await call("GET", "/v1/changes", { headers })).body).toEqual({ changes: [], more: false });
    expect(outcome(await sign(application, "phone", { base64: "AAAA" }))).toBe("200");
    expect(outcome(await requestBadge(application, "tablet", { userId: "user" }))).toBe("201");
  });
});
