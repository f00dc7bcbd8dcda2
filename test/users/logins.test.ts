import { beforeEach, describe, expect, it, vi } from "vitest";
import { readStatistics } from "../../src/worker/applications/read-statistics.ts";
import { LoginCounter } from "../../src/worker/users/login-counter.ts";
import { newPhone } from "../bound/support.ts";
import { signIn } from "../http/support/people.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { ahead, HOUR, moveClock, SECOND, useStandingClock } from "../support/clock.ts";
import { testContext } from "../support/context.ts";
import { runSql } from "../support/home.ts";
import { call, callServer, outcome } from "../support/http.ts";
import { invite } from "../support/invitations.ts";
import { log } from "../support/log.ts";
import { until } from "../support/until.ts";
import { hangs, type Provider, useProviders } from "./provider.ts";
import { logIn, newUdid } from "./support.ts";

useStandingClock();
const newProvider = useProviders();

let provider: Provider;
let application: TestApplication;

beforeEach(async () => {
  provider = await newProvider();
  application = await createApplication(provider.columns);
});

describe("a login to an application that has its users verified (contract section 22)", () => {
  it("a refused login does not say why; the log does", async () => {
    const refusals: [string, Record<string, unknown>][] = [
      ["other-issuer", { iss: "https://elsewhere.example.com" }],
      ["other-user", { sub: "bob" }],
      ["no-user-claim", { sub: undefined }],
    ];
    for (const [detail, claims] of refusals) {
      const requestId = crypto.randomUUID();
      const token = await provider.token("alice", claims);
      const refused = await logIn(application, token, undefined, { "x-request-id": requestId });
      expect([refused.status, refused.body]).toEqual([401, { error: "INVALID_USERTOKEN" }]);
      expect(refused.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
      const [line] = log.lines().filter((one) => one.requestId === requestId);
      expect(line).toMatchObject({ code: "INVALID_USERTOKEN", detail });
      expect(JSON.stringify(line)).not.toContain(token);
    }
    for (const authorization of ["", "Bearer", "Basic dTpw"]) {
      const without = await logIn(application, null, undefined, { authorization });
      expect([authorization, without.headers.get("www-authenticate")]).toEqual([authorization, "Bearer"]);
    }
  });

  it("the user is in the claim that the application sets", async () => {
    const byMail = await createApplication({ ...provider.columns, userClaim: "email" });
    const token = await provider.token("0815", { email: "alice@example.com" });
    // The scheme may be in any case.
    const authorization = `BEARER  ${token}`;
    expect(outcome(await logIn(byMail, null, { userId: "alice@example.com" }, { authorization }))).toBe("201");
    expect(outcome(await logIn(byMail, token, { userId: "0815" }))).toBe("401 INVALID_USERTOKEN");
  });
});

describe("an invitation (contract section 22)", () => {
  it("an invitation created with the secret needs no user token, also when its claim is repeated", async () => {
    const { token } = await invite(application, undefined, { applicationsecret: application.secret });
    const body = { userId: "visitor", invitationToken: token };
    const claimed = await logIn(application, null, body, { udid: "visitor's phone" });
    expect(claimed.status).toBe(201);
    const repeated = await logIn(application, null, body, { udid: "visitor's phone" });
    expect([repeated.status, repeated.body]).toEqual([200, { badgeId: claimed.body.badgeId }]);
    expect(outcome(await logIn(application, null, body))).toBe("409 CLAIMED_INVITATION");
    // The next login is one like any other.
    const login = await logIn(application, null, { userId: "visitor" }, { udid: "visitor's phone" });
    expect(outcome(login)).toBe("401 INVALID_USERTOKEN");
  });

  it("an invitation that a person created with the role reception, unlike an operator, vouches for visitors only", async () => {
    const claimOf = async (role: "reception" | "operator", userId: string) => {
      const { token } = await invite(application, undefined, await signIn(application, role));
      return outcome(await logIn(application, null, { userId, invitationToken: token }));
    };
    for (const userId of ["alice", "Visitor-1", "a visitor-1"]) {
      expect(await claimOf("reception", userId)).toBe("401 INVALID_USERTOKEN");
    }
    expect([await claimOf("reception", "visitor-1"), await claimOf("operator", "bob")]).toEqual(["201", "201"]);
  });

  it("creating and revoking an invitation need the secret (contract section 5)", async () => {
    const device = { applicationid: application.id, udid: "a device" };
    const create = (headers: Record<string, string>) =>
      call("POST", "/v1/invitation", { headers, body: { expiresAt: ahead(HOUR) } });
    expect(outcome(await create(device))).toBe("401 INVALID_CREDENTIALS");
    expect(outcome(await create({ ...device, applicationsecret: application.secret }))).toBe("201");
    const observed = await createApplication({ ...provider.columns, userObserve: true });
    expect(outcome(await create({ ...device, applicationid: observed.id }))).toBe("401 INVALID_CREDENTIALS");
    const revoked = await call("PATCH", "/v1/invitation/inv_x/revoke", { headers: device });
    expect(outcome(revoked)).toBe("401 INVALID_CREDENTIALS");
    const shown = await callServer(application, "GET", "/v1/application");
    expect(shown.body).toMatchObject({ requireSecret: true });
    expect(shown.body).not.toHaveProperty("userIssuer");
  });

  it("an invitation created without the secret, before there was an issuer, needs a user token, and so the provider; a refusal does not consume it", async () => {
    const application = await createApplication();
    const unvouched = await invite(application);
    const vouched = await invite(application, undefined, { applicationsecret: application.secret });
    const { userIssuer, userAudience } = provider.columns;
    const sql = "UPDATE application SET user_issuer = ?, user_audience = ? WHERE id = ?";
    await runSql(sql, userIssuer, userAudience, application.id);
    moveClock(30 * SECOND);
    const claim = (token: string | null, invitationToken = unvouched.token) =>
      logIn(application, token, { userId: "alice", invitationToken });
    const { discovery } = provider;
    provider.discovery = () => new Response(null, { status: 500 });
    const token = await provider.token("alice");
    expect([await claim(token), await claim(token, vouched.token)].map(outcome)).toEqual(["503 UNAVAILABLE", "201"]);
    provider.discovery = discovery;
    moveClock(2 * SECOND);
    expect(outcome(await claim(null))).toBe("401 INVALID_USERTOKEN");
    const wrong = await claim(await provider.token("bob"));
    expect(outcome(wrong)).toBe("401 INVALID_USERTOKEN");
    expect(wrong.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
    expect(outcome(await claim(token))).toBe("201");
  });
});

describe("a token that is bound to a key (contract section 22, RFC 9449 section 6.1)", () => {
  const FOREIGN_NONCE = "1800000000.0123456789012345678901";

  it("a token that is bound to a key needs a fresh proof by that key", async () => {
    const phone = await newPhone(application, newUdid());
    const stranger = await phone.withOtherKey();
    const token = await provider.token("alice", { cnf: { jkt: await phone.thumbprint() } });
    const text = JSON.stringify({ userId: "alice" });
    const send = async (dpop: string | undefined) => {
      const headers = { authorization: `Bearer ${token}`, ...(dpop !== undefined && { dpop }) };
      return outcome(await phone.send("/v1/badge", text, headers));
    };
    expect(await send(undefined)).toBe("401 INVALID_USERTOKEN");
    expect(await send(await stranger.prove("/v1/badge", text))).toBe("401 INVALID_USERTOKEN");
    expect(await send(await stranger.prove("/v1/badge", text, FOREIGN_NONCE))).toBe("401 INVALID_USERTOKEN");
    // What is wrong with the proof itself is said of the proof, so that a phone with a wrong clock gets its nonce.
    expect(await send("none")).toBe("401 INVALID_PROOF");
    expect(await send(await phone.prove("/v1/badge", text, FOREIGN_NONCE))).toBe("401 USE_DPOP_NONCE");
    expect(await send(await phone.prove("/v1/badge", text))).toBe("201");
  });
});

describe("settings that have just changed (contract section 22)", () => {
  const set = (columns: string) => runSql(`UPDATE application SET ${columns} WHERE id = ?`, application.id);

  it("changed settings let a login pass within a second, because a refusal re-reads them", async () => {
    expect(outcome(await logIn(application, await provider.token("alice")))).toBe("201");
    await set("user_audience = 'renamed-app'");
    moveClock(1500);
    expect(outcome(await logIn(application, await provider.token("alice", { aud: "renamed-app" })))).toBe("201");
    await set("user_issuer = NULL");
    moveClock(1500);
    expect(outcome(await logIn(application, null))).toBe("201");
  });

  it("a corrected issuer lets a login pass within a second, also when the wrong one had no keys", async () => {
    provider.discovery = () => new Response(null, { status: 500 });
    expect(outcome(await logIn(application, await provider.token("alice")))).toBe("503 UNAVAILABLE");
    const right = await newProvider();
    await set(`user_issuer = '${right.issuer}'`);
    moveClock(1500);
    expect(outcome(await logIn(application, await right.token("alice")))).toBe("201");
  });
});

describe("observing (contract section 22)", () => {
  it("an isolate writes together what it has observed of an application, and that counts for 24 hours", async () => {
    const observed = await createApplication();
    const halfPast = Date.UTC(2031, 0, 1, 10, 30);
    const { context, deferred } = testContext({ now: () => halfPast });
    const wait = vi.spyOn(scheduler, "wait").mockImplementation(async () => {});
    const counter = new LoginCounter();
    for (const kind of ["withToken", "withToken", "withoutToken"] as const) counter.count(context, observed.id, kind);
    expect(deferred).toHaveLength(1);
    await Promise.all(deferred);
    const loginsAfter = async (hours: number) =>
      (await readStatistics({ ...context, now: () => halfPast + hours * HOUR }, observed.id)).logins;
    expect(await loginsAfter(23)).toEqual({ withToken: 2, withoutToken: 1, withWrongToken: 0 });
    expect(await loginsAfter(24)).toEqual({ withToken: 0, withoutToken: 0, withWrongToken: 0 });
    counter.count({ ...context, now: () => halfPast + 25 * HOUR }, observed.id, "withToken");
    await Promise.all(deferred);
    const { results } = await runSql("SELECT hour FROM observed_logins WHERE application_id = ?", observed.id);
    expect(results).toHaveLength(1);
    // The platform may end an invocation before it has written: after 20 s another one writes.
    wait.mockImplementation(() => new Promise(() => {}));
    const writersAfter = (milliseconds: number) => {
      counter.count({ ...context, now: () => halfPast + milliseconds }, observed.id, "withToken");
      return deferred.length;
    };
    expect([0, 19_999, 20_000].map(writersAfter)).toEqual([3, 3, 4]);
  });

  it("observing refuses nothing and counts logins by token, with few writes of an isolate", async () => {
    const { wait } = scheduler;
    vi.spyOn(scheduler, "wait").mockImplementation((milliseconds) => {
      return wait.call(scheduler, milliseconds === 5000 ? 300 : milliseconds);
    });
    const observed = await createApplication({ ...provider.columns, userObserve: true });
    const [token, wrong] = [await provider.token("alice"), await provider.token("alice", { exp: 1 })];
    const logins = [token, token, null, wrong, "nonsense", null, null];
    for (const one of logins) expect(outcome(await logIn(observed, one))).toBe("201");
    expect(outcome(await logIn(observed, await provider.token("bob")))).toBe("201");
    const expected = { withToken: 2, withoutToken: 3, withWrongToken: 3 };
    await until(async () => {
      expect((await callServer(observed, "GET", "/v1/stats")).body.logins).toEqual(expected);
    });
  });

  it("observing does not wait for an unreachable provider, and does not count its tokens as wrong", async () => {
    const observed = await createApplication({ ...provider.columns, userObserve: true });
    const discovery = vi.fn(hangs);
    provider.discovery = discovery;
    expect(outcome(await logIn(observed, await provider.token("alice")))).toBe("201");
    expect(discovery.mock.calls[0]?.[0].aborted).not.toBe(true);
    const broken = await newProvider();
    broken.discovery = () => new Response(null, { status: 500 });
    const other = await createApplication({ ...broken.columns, userObserve: true });
    const count = vi.spyOn(LoginCounter.prototype, "count");
    const headers = { applicationid: other.id, udid: newUdid(), authorization: "Bearer token" };
    // It returns when the token has been looked at, too.
    expect(outcome(await callWith({}, "POST", "/v1/badge", { headers, body: { userId: "alice" } }))).toBe("201");
    expect(count).not.toHaveBeenCalledWith(expect.anything(), other.id, expect.anything());
  });
});
