import { describe, expect, it } from "vitest";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { call, serverHeaders } from "../../support/http.ts";
import { newProviderKey, type Provider, useProviders } from "../../users/provider.ts";
import { outcome } from "../support/draft.ts";

const newProvider = useProviders();

interface Scene {
  provider: Provider;
  application: TestApplication;
  neighbour: TestApplication;
}

type Headers = Record<string, string>;

/** Who presents what, for a badge of alice. */
const CALLERS = {
  alice: async ({ provider }) => bearer(await provider.token("alice")),
  bob: async ({ provider }) => bearer(await provider.token("bob")),
  /** Knows application ID, udid, user ID and badge number, which is enough where users are not verified. */
  stranger: async () => ({}),
  /** Makes tokens with a key of his own. */
  forger: async ({ provider }) =>
    bearer(await provider.token("alice", {}, { key: await newProviderKey("ES256", "key") })),
  /** Alice has logged in to another app of the same provider. */
  "another app": async ({ provider }) => bearer(await provider.token("alice", { aud: "another-app" })),
  /** Has a provider of his own, whose name alone differs. */
  "another provider": async ({ provider }) =>
    bearer(await provider.token("alice", { iss: "https://else.example.com" })),
  /** Has found an old token in a log. */
  finder: async ({ provider }) => bearer(await provider.token("alice", { exp: Math.floor(Date.now() / 1000) - 61 })),
  /** The server's secret is no user's token. */
  server: async ({ application }) => ({ ...bearer(application.secret), ...serverHeaders(application) }),
  "another server": async ({ neighbour }) => bearer(neighbour.secret),
} satisfies Record<string, (scene: Scene) => Promise<Headers>>;

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });

const REFUSED = "401 INVALID_USERTOKEN";
const NOBODY_ELSE = Object.fromEntries(Object.keys(CALLERS).map((name) => [name, REFUSED]));

/** What each may do, of: a login as alice, a look at alice's badges, suspending her badge. */
const EXPECTED: Record<string, Record<string, string>> = {
  "POST /v1/badge": { ...NOBODY_ELSE, alice: "200" },
  "GET /v1/user/badges": { ...NOBODY_ELSE, alice: "200", bob: "200" },
  "PATCH /v1/user/badges/NUMBER/suspend": { ...NOBODY_ELSE, alice: "200", bob: "404 UNKNOWN_BADGE" },
};

describe("what a person may do, and nobody else for them (contract section 22)", () => {
  it.each(Object.entries(EXPECTED))("%s", async (route, expected) => {
    const provider = await newProvider();
    const application = await createApplication(provider.columns);
    const scene = { provider, application, neighbour: await createApplication(provider.columns) };
    const own = { applicationid: application.id, udid: "alice's phone" };
    const aliceToken = bearer(await provider.token("alice"));
    const issued = await call("POST", "/v1/badge", { headers: { ...own, ...aliceToken }, body: { userId: "alice" } });
    const [method = "", path = ""] = route.split(" ");
    const outcomes: Record<string, string> = {};
    for (const [name, present] of Object.entries(CALLERS)) {
      const answer = await call(method, path.replace("NUMBER", String(issued.body.badgeId)), {
        headers: { ...own, ...(await present(scene)) },
        ...(method === "POST" && { body: { userId: "alice" } }),
      });
      outcomes[name] = outcome(answer);
      const challenge = name === "stranger" ? "Bearer" : 'Bearer error="invalid_token"';
      expect(answer.headers.get("www-authenticate")).toBe(outcomes[name] === REFUSED ? challenge : null);
      // Bob sees his own badges, and has none.
      if (name === "bob" && method === "GET") expect(answer.body).toEqual({ badges: [] });
    }
    expect(outcomes).toEqual(expected);
  });

  it.each([
    ["GET", "/v1/user/badges"],
    ["PATCH", "/v1/user/badges/1/suspend"],
  ])("%s %s needs an application, which names an issuer", async (method, path) => {
    const provider = await newProvider();
    const authorization = `Bearer ${await provider.token("alice")}`;
    const disabled = await createApplication({ ...provider.columns, disabledAt: 1 });
    for (const applicationid of ["", "app_00000000000000000000", disabled.id]) {
      const refused = await call(method, path, { headers: { applicationid, authorization } });
      expect(outcome(refused)).toBe("401 INVALID_APPLICATIONID");
    }
    const { id: applicationid } = await createApplication();
    for (const headers of [{ applicationid }, { applicationid, authorization }]) {
      expect(outcome(await call(method, path, { headers }))).toBe(REFUSED);
    }
  });

  it("without an issuer, whoever knows an application ID can name any user, as the check-list says", async () => {
    const { id: applicationid } = await createApplication();
    for (const [udid, more] of [
      ["a stranger's phone", {}],
      ["a forger's phone", bearer("nonsense")],
    ] as const) {
      const headers = { applicationid, udid, ...more };
      expect(outcome(await call("POST", "/v1/badge", { headers, body: { userId: "alice" } }))).toBe("201");
    }
  });
});
