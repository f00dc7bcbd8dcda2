import { beforeEach, describe, expect, it, vi } from "vitest";
import { createProof } from "../../src/client/index.ts";
import { setEnd, takeStep } from "../badges/life-support.ts";
import { newPhone } from "../bound/support.ts";
import { hoursAhead } from "../http/support/invitations.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { call, serverHeaders, sign } from "../support/http.ts";
import { type Provider, useProviders } from "./provider.ts";
import { logIn, newUdid, outcome, ownBadges, suspendOwn } from "./support.ts";

const newProvider = useProviders();

/** When a badge was issued and changed. */
const TIMES = { issuedAt: expect.any(String), changedAt: expect.any(String) };

let provider: Provider;
let application: TestApplication;
let token: string;

beforeEach(async () => {
  vi.spyOn(console, "log").mockImplementation(() => {});
  provider = await newProvider();
  application = await createApplication(provider.columns);
  token = await provider.token("alice");
});

/** A badge of a user on a device of its own. */
async function badgeOf(userId: string, udid = newUdid()): Promise<string> {
  const issued = await logIn(application, await provider.token(userId), { userId }, { udid });
  expect(issued.status).toBe(201);
  return String(issued.body.badgeId);
}

const idsOf = async (with_ = token) => {
  const { badges } = (await ownBadges(application, with_)).body;
  return Array.isArray(badges) ? badges.map(({ id }) => id) : [];
};

describe("GET /v1/user/badges (contract section 22)", () => {
  it("lists the user's active and suspended badges on all devices, newest first, and nobody else's", async () => {
    const [first, second, third] = [await badgeOf("alice"), await badgeOf("alice"), await badgeOf("alice")];
    await badgeOf("bob");
    await takeStep(application, second, "suspend");
    const { status, body } = await ownBadges(application, token);
    expect([status, body]).toEqual([
      200,
      {
        badges: [
          { id: third, userId: "alice", state: "active", ...TIMES },
          { id: second, userId: "alice", state: "suspended", ...TIMES },
          { id: first, userId: "alice", state: "active", ...TIMES },
        ],
      },
    ]);
  });

  it("leaves out what has ended, at once", async () => {
    const [revoked, expired, active] = [await badgeOf("alice"), await badgeOf("alice"), await badgeOf("alice")];
    await takeStep(application, revoked, "revoke");
    await setEnd(application, expired, hoursAhead(-1));
    expect(await idsOf()).toEqual([active]);
  });

  it("is empty for a user without badges", async () => {
    expect((await ownBadges(application, token)).body).toEqual({ badges: [] });
  });

  it("knows the user of its own application only", async () => {
    await badgeOf("alice");
    const neighbour = await createApplication({ ...provider.columns, userAudience: "another-app" });
    const { body } = await ownBadges(neighbour, await provider.token("alice", { aud: "another-app" }));
    expect(body).toEqual({ badges: [] });
  });

  it("works while tokens are only observed", async () => {
    const observed = await createApplication({ ...provider.columns, userObserve: true });
    expect(outcome(await ownBadges(observed, token))).toBe("200");
    expect(outcome(await ownBadges(observed, null))).toBe("401 INVALID_USERTOKEN");
  });
});

describe("PATCH /v1/user/badges/{id}/suspend (contract section 22)", () => {
  it("stops a lost phone from any other device, and only the server resumes it", async () => {
    const lost = await badgeOf("alice", "lost phone");
    expect(outcome(await sign(application, "lost phone", { base64: "AAAA" }))).toBe("200");
    const suspended = await suspendOwn(application, lost, token);
    expect([suspended.status, suspended.body]).toEqual([
      200,
      { id: lost, userId: "alice", state: "suspended", ...TIMES },
    ]);
    expect(outcome(await sign(application, "lost phone", { base64: "AAAA" }))).toBe("403 SUSPENDED_BADGE");
    expect(outcome(await logIn(application, token, undefined, { udid: "lost phone" }))).toBe("403 SUSPENDED_BADGE");
    expect((await suspendOwn(application, lost, token)).body).toEqual(suspended.body);
    expect(await idsOf()).toEqual([lost]);
    await takeStep(application, lost, "resume");
    expect(outcome(await sign(application, "lost phone", { base64: "AAAA" }))).toBe("200");
  });

  it("is in the history as done by a user (section 23)", async () => {
    const lost = await badgeOf("alice");
    await suspendOwn(application, lost, token);
    const { body } = await call("GET", `/v1/history?badge=${lost}`, { headers: serverHeaders(application) });
    expect(body.history).toEqual([
      expect.objectContaining({ action: "badge:suspended", actor: { kind: "user" }, badgeId: lost, userId: "alice" }),
    ]);
  });

  it.each(["0", "1", "none", "9007199254740993", "%00", "1e9"])("knows no badge %s", async (id) => {
    expect(outcome(await suspendOwn(application, id, token))).toBe("404 UNKNOWN_BADGE");
  });

  it("knows no badge of another user or another application, and leaves it as it was", async () => {
    const bobs = await badgeOf("bob", "bob's phone");
    expect(outcome(await suspendOwn(application, bobs, token))).toBe("404 UNKNOWN_BADGE");
    const neighbour = await createApplication(provider.columns);
    expect(outcome(await suspendOwn(neighbour, bobs, await provider.token("bob")))).toBe("404 UNKNOWN_BADGE");
    expect(outcome(await sign(application, "bob's phone", { base64: "AAAA" }))).toBe("200");
  });

  it("says that a badge has ended", async () => {
    const id = await badgeOf("alice");
    await takeStep(application, id, "revoke");
    expect(outcome(await suspendOwn(application, id, token))).toBe("409 ENDED_BADGE");
  });
});

describe("both calls (contract section 22)", () => {
  const calls = {
    list: (application: { id: string }, token: string | null, more?: Record<string, string>) =>
      ownBadges(application, token, more),
    suspend: (application: { id: string }, token: string | null, more?: Record<string, string>) =>
      suspendOwn(application, "1", token, more),
  };

  it.each(Object.entries(calls))("need a token that is right: %s", async (_, send) => {
    const wrong = [
      await provider.token("alice", { exp: 1 }),
      await provider.token("alice", { aud: "another-app" }),
      await provider.token("alice", { iss: "https://elsewhere.example.com" }),
      "nonsense",
    ];
    for (const one of wrong) {
      const refused = await send(application, one);
      expect([refused.status, refused.body]).toEqual([401, { error: "INVALID_USERTOKEN" }]);
      expect(refused.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
    }
    expect((await send(application, null)).headers.get("www-authenticate")).toBe("Bearer");
  });

  it.each(Object.entries(calls))("are refused where no issuer is named: %s", async (_, send) => {
    const open = await createApplication();
    expect(outcome(await send(open, null))).toBe("401 INVALID_USERTOKEN");
    expect(outcome(await send(open, token))).toBe("401 INVALID_USERTOKEN");
  });

  it.each(Object.entries(calls))("need an application: %s", async (_, send) => {
    expect(outcome(await send({ id: "" }, token))).toBe("401 INVALID_APPLICATIONID");
    expect(outcome(await send({ id: "app_00000000000000000000" }, token))).toBe("401 INVALID_APPLICATIONID");
    const disabled = await createApplication({ ...provider.columns, disabledAt: 1 });
    expect(outcome(await send(disabled, token))).toBe("401 INVALID_APPLICATIONID");
  });

  it.each(Object.entries(calls))("are 60 a minute for one user, whatever the address: %s", async (_, send) => {
    const outcomes = new Set<string>();
    // More than twice as many: the limit counts by the clock's minutes, and one may end meanwhile.
    for (let count = 0; count < 121; count++) outcomes.add(outcome(await send(application, token)));
    expect(outcomes).toContain("429 RATE_LIMITED");
    expect(outcome(await send(application, await provider.token("bob")))).not.toBe("429 RATE_LIMITED");
  });

  it.each(Object.entries(calls))("with a token that is bound to a key need its proof: %s", async (name, send) => {
    const [phone, stranger] = [await newPhone(application), await newPhone(application)];
    const bound = await provider.token("alice", { cnf: { jkt: await phone.thumbprint() } });
    const [method, path] = name === "list" ? ["GET", "/v1/user/badges"] : ["PATCH", "/v1/user/badges/1/suspend"];
    const prove = (key: typeof phone.key, bearer: string) =>
      createProof({ key, applicationId: application.id, method, url: `https://badges.example${path}`, udid: bearer });
    expect(outcome(await send(application, bound))).toBe("401 INVALID_USERTOKEN");
    expect(outcome(await send(application, bound, { dpop: await prove(stranger.key, bound) }))).toBe(
      "401 INVALID_USERTOKEN",
    );
    expect(outcome(await send(application, bound, { dpop: await prove(phone.key, "another token") }))).toBe(
      "401 INVALID_PROOF",
    );
    const granted = name === "list" ? "200" : "404 UNKNOWN_BADGE";
    expect(outcome(await send(application, bound, { dpop: await prove(phone.key, bound) }))).toBe(granted);
    // A token that is bound to no key needs no proof, and none that comes along is looked at.
    expect(outcome(await send(application, token, { dpop: "none" }))).toBe(granted);
  });

  it.each([
    ["GET", "/v1/user/badges"],
    ["PATCH", "/v1/user/badges/1/suspend"],
    ["POST", "/v1/badge"],
  ])("may be made by a web page of any origin: %s %s", async (method, path) => {
    const preflight = await call("OPTIONS", path);
    expect(preflight.headers.get("access-control-allow-headers")?.split(",")).toContain("authorization");
    expect(preflight.headers.get("access-control-allow-methods")?.split(",")).toContain(method);
    expect(preflight.headers.get("access-control-allow-origin")).toBe("*");
    const refused = await call(method, path, { headers: { applicationid: application.id } });
    expect(refused.headers.get("access-control-allow-origin")).toBe("*");
    expect(refused.headers.get("access-control-expose-headers")?.split(",")).toContain("www-authenticate");
  });
});
