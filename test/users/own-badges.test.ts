import { beforeEach, describe, expect, it } from "vitest";
import { createDpopProof } from "../../src/client/index.ts";
import { setEnd, takeStep } from "../badges/life-support.ts";
import { newPhone } from "../bound/support.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, countedLimit, UNLIMITED } from "../support/bindings.ts";
import { ahead, HOUR } from "../support/clock.ts";
import { runSql } from "../support/home.ts";
import { call, callServer, outcome, sign } from "../support/http.ts";
import { type Provider, useProviders } from "./provider.ts";
import { logIn, newUdid, ownBadges, suspendOwn } from "./support.ts";

const newProvider = useProviders();

/** When a badge was issued and changed. */
const TIMES = { issuedAt: expect.any(String), changedAt: expect.any(String) };

let provider: Provider;
let application: TestApplication;
let token: string;

beforeEach(async () => {
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

const idsOf = async () => {
  const { badges } = (await ownBadges(application, token)).body;
  return Array.isArray(badges) ? badges.map(({ id }) => id) : [];
};

describe("GET /v1/user/badges (contract section 22)", () => {
  it("a user sees their own active and suspended badges of the application on all devices, newest first", async () => {
    const [first, second, third] = [await badgeOf("alice"), await badgeOf("alice"), await badgeOf("alice")];
    const [revoked, expired] = [await badgeOf("alice"), await badgeOf("alice")];
    await badgeOf("bob");
    await takeStep(application, second, "suspend");
    await takeStep(application, revoked, "revoke");
    await setEnd(application, expired, ahead(-HOUR));
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
    const observed = await createApplication({ ...provider.columns, userObserve: true });
    expect((await ownBadges(observed, token)).body).toEqual({ badges: [] });
    expect(outcome(await ownBadges(observed, null))).toBe("401 INVALID_USERTOKEN");
  });

  it("a user with 1,002 badges sees all of them, also that of a lost phone", async () => {
    const lost = await badgeOf("alice");
    await runSql(
      `WITH RECURSIVE place (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM place WHERE n < 1000)
       INSERT INTO badge (number, application_id, device, user_id, ordinal, login_sequence, state, change, changed_at, signing_key_id, issued_at)
       SELECT 8100000000000 + n, ?1, 'd' || n, 'alice', 100 + n, 1, 'active', 1000 + n, 1, 1, 1 FROM place`,
      application.id,
    );
    const ids = await idsOf();
    expect([ids.length, ids.at(-1)]).toEqual([1002, lost]);
  });
});

describe("PATCH /v1/user/badges/{id}/suspend (contract section 22)", () => {
  it("a user suspends a lost phone's badge from any other device, and only the server resumes it", async () => {
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

  it("the history has the suspension as done by a user, with a reason of up to 500 characters (section 23)", async () => {
    for (const [reason, kept] of [
      ["Left in the tram", { reason: "Left in the tram" }],
      // Even then, the lost phone's badge is suspended.
      ["x".repeat(501), {}],
    ] as const) {
      const lost = await badgeOf("alice");
      expect((await suspendOwn(application, lost, token, { reason })).status).toBe(200);
      const { body } = await callServer(application, "GET", `/v1/history?badge=${lost}`);
      const row = { action: "badge:suspended", actor: { kind: "user" }, badgeId: lost, userId: "alice" };
      expect(body.history).toEqual([{ ...row, at: expect.any(String), requestId: expect.any(String), ...kept }]);
    }
  });

  it("suspending an unknown badge, or another user's, gets 404 and changes nothing", async () => {
    for (const id of ["1", "none", "9007199254740993", "%00"]) {
      expect(`${id} ${outcome(await suspendOwn(application, id, token))}`).toBe(`${id} 404 UNKNOWN_BADGE`);
    }
    const bobs = await badgeOf("bob", "bob's phone");
    expect(outcome(await suspendOwn(application, bobs, token))).toBe("404 UNKNOWN_BADGE");
    expect(outcome(await sign(application, "bob's phone", { base64: "AAAA" }))).toBe("200");
  });
});

// Who may make them: test/http/errors/order.test.ts.
describe("both calls (contract section 22)", () => {
  const LIST = ["GET", "/v1/user/badges", "200"] as const;
  const SUSPEND = ["PATCH", "/v1/user/badges/1/suspend", "404 UNKNOWN_BADGE"] as const;

  it("both calls share one limit per user across addresses, equal to a device's", async () => {
    const twice = countedLimit(2);
    const bindings = { DEVICE_LIMIT: twice, CLIENT_IP_LIMIT: UNLIMITED };
    const send = async ([method, path]: typeof LIST | typeof SUSPEND, user: string) => {
      const headers = { applicationid: application.id, authorization: `Bearer ${await provider.token(user)}` };
      return outcome(await callWith(bindings, method, path, { headers }));
    };
    // A bound token without its key is not counted for the user.
    const bound = await provider.token("alice", { cnf: { jkt: await (await newPhone(application)).thumbprint() } });
    const headers = { applicationid: application.id, authorization: `Bearer ${bound}`, dpop: "x" };
    expect(outcome(await callWith(bindings, "GET", "/v1/user/badges", { headers }))).toMatch("401");
    expect(await send(LIST, "alice")).toBe("200");
    expect(await send(SUSPEND, "alice")).toBe("404 UNKNOWN_BADGE");
    expect(await send(LIST, "bob")).toBe("200");
    for (const one of [LIST, SUSPEND]) expect(await send(one, "alice")).toBe("429 RATE_LIMITED");
    const [ofAlice, again, ofBob, ...others] = twice.keys;
    expect([again, ...others]).toEqual([ofAlice, ofAlice, ofAlice]);
    expect(ofBob).not.toBe(ofAlice);
  });

  it.each([LIST, SUSPEND, ["POST", "/v1/badge", "201"] as const])(
    "both calls, and a login, count as refused for their address only without a valid token: %s %s",
    async (method, path, granted) => {
      const twice = countedLimit(2);
      const send = async (authorization: string) => {
        const headers = { applicationid: application.id, authorization, "cf-connecting-ip": "192.0.2.1" };
        const login = { headers: { ...headers, udid: "phone" }, body: { userId: "alice" } };
        const options = method === "POST" ? login : { headers };
        return outcome(await callWith({ DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: twice }, method, path, options));
      };
      const wrong = "401 INVALID_USERTOKEN";
      expect([await send(""), await send("Bearer made-up")]).toEqual([wrong, wrong]);
      for (const made of ["", "Bearer made-up"]) expect(await send(made)).toBe("429 RATE_LIMITED");
      // The phone must learn that it needs a new token.
      expect(await send(`Bearer ${await provider.token("alice", { exp: 1 })}`)).toBe(wrong);
      // Nobody at the address stops a person's emergency suspend.
      expect(await send(`Bearer ${token}`)).toBe(granted);
      const refused = `${application.id}:192.0.2.1:refused`;
      expect(new Set(twice.keys.slice(0, 4))).toEqual(new Set([refused]));
      expect(twice.keys.slice(4)).not.toContain(refused);
    },
  );

  it.each([LIST, SUSPEND])(
    "both calls with a token that is bound to a key need its proof: %s %s",
    async (method, path, granted) => {
      const [phone, stranger] = [await newPhone(application), await newPhone(application)];
      const bound = await provider.token("alice", { cnf: { jkt: await phone.thumbprint() } });
      const proveBy = ({ key }: typeof phone, udid: string) =>
        createDpopProof({ key, applicationId: application.id, method, url: `https://badges.example${path}`, udid });
      for (const [bearer, dpop, expected] of [
        [bound, "", "401 INVALID_USERTOKEN"],
        [bound, await proveBy(stranger, bound), "401 INVALID_USERTOKEN"],
        [bound, await proveBy(phone, "another token"), "401 INVALID_PROOF"],
        [bound, await proveBy(phone, bound), granted],
        // A token that is bound to no key needs no proof, and none that comes along is looked at.
        [token, "none", granted],
      ] as const) {
        const headers = { applicationid: application.id, authorization: `Bearer ${bearer}`, dpop };
        expect(outcome(await call(method, path, { headers }))).toBe(expected);
      }
    },
  );
});
