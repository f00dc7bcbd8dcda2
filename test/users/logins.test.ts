import { afterEach, beforeEach, describe, expect, it, type Mock, onTestFinished, vi } from "vitest";
import { OBSERVED_WRITE_MILLISECONDS } from "../../src/shared/limits/user-token-limits.ts";
import { readStatistics } from "../../src/worker/applications/read-statistics.ts";
import { addObservedLogins } from "../../src/worker/storage/observed-logins.ts";
import { LoginCounter } from "../../src/worker/users/login-counter.ts";
import { newPhone } from "../bound/support.ts";
import { outcome } from "../http/support/draft.ts";
import { hoursAhead, invite } from "../http/support/invitations.ts";
import { signIn } from "../http/support/people.ts";
import { aroundAllocators } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith, countedLimit, UNLIMITED } from "../support/bindings.ts";
import { testContext } from "../support/context.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { call, callServer, sign } from "../support/http.ts";
import { linesOf } from "../support/log-lines.ts";
import { until } from "../support/until.ts";
import { hangs, type Provider, useProviders } from "./provider.ts";
import { logIn, newUdid } from "./support.ts";

const newProvider = useProviders();

let provider: Provider;
let application: TestApplication;
let logged: Mock;

beforeEach(async () => {
  logged = vi.spyOn(console, "log").mockImplementation(() => {});
  vi.spyOn(console, "warn").mockImplementation(() => {});
  provider = await newProvider();
  application = await createApplication(provider.columns);
});

afterEach(() => {
  vi.useRealTimers();
});

describe("a login to an application that has its users verified (contract section 22)", () => {
  it("a login needs a token that names its user", async () => {
    const token = await provider.token("alice");
    const issued = await logIn(application, token, { userId: "alice" }, { udid: "phone" });
    expect(issued.status).toBe(201);
    expect((await logIn(application, token, { userId: "alice" }, { udid: "phone" })).body).toEqual({
      badgeId: issued.body.badgeId,
    });
    expect(outcome(await logIn(application, token, { userId: "bob" }))).toBe("401 INVALID_USERTOKEN");
    // To sign it needs none: the badge is there already.
    expect(outcome(await sign(application, "phone", { base64: "AAAA" }))).toBe("200");
  });

  it("a refused login does not say why; the log does", async () => {
    const refusals: [string, Record<string, unknown>][] = [
      ["other-issuer", { iss: "https://elsewhere.example.com" }],
      ["other-audience", { aud: "another-app" }],
      ["expired-token", { exp: 1 }],
      ["early-token", { nbf: 99_999_999_999 }],
      ["early-token", { iat: 99_999_999_999 }],
      ["other-user", { sub: "bob" }],
      ["no-user-claim", { sub: undefined }],
    ];
    for (const [detail, claims] of refusals) {
      const requestId = crypto.randomUUID();
      const token = await provider.token("alice", claims);
      const refused = await logIn(application, token, undefined, { "x-request-id": requestId });
      expect([refused.status, refused.body]).toEqual([401, { error: "INVALID_USERTOKEN" }]);
      expect(refused.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
      const [line] = linesOf(logged).filter((one) => one.requestId === requestId);
      expect(line).toMatchObject({ code: "INVALID_USERTOKEN", detail });
      expect(JSON.stringify(line)).not.toContain(token);
    }
  });

  it("a login without a token gets a Bearer challenge", async () => {
    for (const authorization of [undefined, " ", "Bearer", "Basic YWxpY2U6c2VjcmV0"]) {
      const headers = authorization === undefined ? {} : { authorization };
      const refused = await logIn(application, null, undefined, headers);
      expect(outcome(refused)).toBe("401 INVALID_USERTOKEN");
      expect(refused.headers.get("www-authenticate"), authorization).toBe("Bearer");
    }
  });

  it("a login with a missing or wrong token has a separate count for its address", async () => {
    const twice = countedLimit(2);
    const token = await provider.token("alice");
    const send = async (udid: string, authorization: string, more: object = {}) => {
      const headers = { applicationid: application.id, udid, authorization, "cf-connecting-ip": "192.0.2.1" };
      const body = JSON.stringify({ userId: "alice", ...more });
      const request = new Request("https://badges.example/v1/badge", { method: "POST", headers, body });
      return outcome(await callWith({ DEVICE_LIMIT: UNLIMITED, CLIENT_IP_LIMIT: twice }, request));
    };
    const refused = "401 INVALID_USERTOKEN";
    expect([await send("one", ""), await send("two", "Bearer made-up")]).toEqual([refused, refused]);
    expect(await send("three", "Bearer made-up")).toBe("429 RATE_LIMITED");
    expect(await send("four", `Bearer ${token}`)).toBe("201");
    const [first, second, third, accepted, ...others] = twice.keys;
    expect([second, third, others]).toEqual([first, first, []]);
    expect(accepted).not.toBe(first);
  });

  it("logins with a made-up invitation and proof are limited before the allocator is called", async () => {
    let calls = 0;
    const bindings = {
      DEVICE_LIMIT: UNLIMITED,
      CLIENT_IP_LIMIT: countedLimit(2),
      ALLOCATOR: aroundAllocators((_, work) => {
        calls++;
        return work();
      }),
    };
    const outcomes: string[] = [];
    for (const udid of ["one", "two", "three", "four"]) {
      const phone = await newPhone(application, udid);
      const more = { invitationToken: `inv_${udid}` };
      outcomes.push(outcome(await phone.logInTo(bindings, { more, address: "192.0.2.1" })));
    }
    const [refused, limited] = ["401 INVALID_USERTOKEN", "429 RATE_LIMITED"];
    expect(outcomes).toEqual([refused, refused, limited, limited]);
    expect(calls).toBe(2);
  });

  it("the Authorization scheme may be in any case", async () => {
    const token = await provider.token("alice");
    expect(outcome(await logIn(application, null, undefined, { authorization: `bearer ${token}` }))).toBe("201");
    expect(outcome(await logIn(application, null, undefined, { authorization: `BEARER  ${token}` }))).toBe("201");
  });

  it("a refused login uses up nothing", async () => {
    const small = await createApplication({ ...provider.columns, size: 1 });
    for (let count = 0; count < 3; count++) await logIn(small, null);
    expect(outcome(await logIn(small, await provider.token("alice")))).toBe("201");
  });

  it("the user is in the claim that the application sets", async () => {
    const byMail = await createApplication({ ...provider.columns, userClaim: "email" });
    const token = await provider.token("0815", { email: "alice@example.com" });
    expect(outcome(await logIn(byMail, token, { userId: "alice@example.com" }))).toBe("201");
    expect(outcome(await logIn(byMail, token, { userId: "0815" }))).toBe("401 INVALID_USERTOKEN");
  });
});

describe("an invitation (contract section 22)", () => {
  const bySecret = () => invite(application, undefined, { applicationsecret: application.secret });

  /** An application that got its issuer half a minute ago, and an invitation that a device had created. */
  async function inviteBeforeIssuer(): Promise<{ application: TestApplication; id: string }> {
    const { userIssuer, userAudience } = provider.columns;
    const application = await createApplication();
    const { id } = await invite(application);
    const sql = "UPDATE application SET user_issuer = ?, user_audience = ? WHERE id = ?";
    await runSql(sql, userIssuer, userAudience, application.id);
    vi.setSystemTime(Date.now() + 30_000);
    return { application, id };
  }

  it("an invitation created with the secret needs no user token, also when its claim is repeated", async () => {
    const { id } = await bySecret();
    const body = { userId: "visitor", invitationToken: id };
    const claimed = await logIn(application, null, body, { udid: "visitor's phone" });
    expect(claimed.status).toBe(201);
    const repeated = await logIn(application, null, body, { udid: "visitor's phone" });
    expect([repeated.status, repeated.body]).toEqual([200, { badgeId: claimed.body.badgeId }]);
    expect(outcome(await logIn(application, "nonsense", body))).toBe("409 CLAIMED_INVITATION");
    // The next login is one like any other.
    const login = await logIn(application, null, { userId: "visitor" }, { udid: "visitor's phone" });
    expect(outcome(login)).toBe("401 INVALID_USERTOKEN");
  });

  it("an invitation created by reception vouches for visitors only, and a refused claim does not consume it", async () => {
    const byReception = async () => (await invite(application, undefined, await signIn(application, "reception"))).id;
    const claimAs = async (userId: string, invitationToken: string, token: string | null = null) =>
      outcome(await logIn(application, token, { userId, invitationToken }));
    const invited = await byReception();
    for (const userId of ["alice", "Visitor-1", "a visitor-1"]) {
      expect(await claimAs(userId, invited)).toBe("401 INVALID_USERTOKEN");
    }
    expect(await claimAs("visitor-1", invited)).toBe("201");
    expect(await claimAs("alice", await byReception(), await provider.token("alice"))).toBe("201");
    const { id: byOperator } = await invite(application, undefined, await signIn(application, "operator"));
    expect(await claimAs("bob", byOperator)).toBe("201");
  });

  it("creating and revoking an invitation need the secret (contract section 5)", async () => {
    const device = { applicationid: application.id, udid: "a device" };
    const create = (headers: Record<string, string>) =>
      call("POST", "/v1/invitation", { headers, body: { expiresAt: hoursAhead(1) } });
    expect(outcome(await create(device))).toBe("401 INVALID_CREDENTIALS");
    expect(outcome(await create({ ...device, applicationsecret: application.secret }))).toBe("201");
    const revoked = await call("PATCH", "/v1/invitation/inv_x/revoke", { headers: device });
    expect(outcome(revoked)).toBe("401 INVALID_CREDENTIALS");
    const observed = await createApplication({ ...provider.columns, userObserve: true });
    expect(outcome(await create({ ...device, applicationid: observed.id }))).toBe("401 INVALID_CREDENTIALS");
    const shown = await callServer(application, "GET", "/v1/application");
    expect(shown.body).toMatchObject({ requireSecret: true });
    expect(shown.body).not.toHaveProperty("userIssuer");
  });

  it("an invitation created without the secret, before there was an issuer, needs a user token, and a refusal does not consume it", async () => {
    const { application, id } = await inviteBeforeIssuer();
    const body = { userId: "alice", invitationToken: id };
    expect(outcome(await logIn(application, null, body))).toBe("401 INVALID_USERTOKEN");
    const wrong = await logIn(application, await provider.token("bob"), body);
    expect(outcome(wrong)).toBe("401 INVALID_USERTOKEN");
    expect(wrong.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
    expect(outcome(await logIn(application, await provider.token("alice"), body))).toBe("201");
  });

  it("an invitation created with the secret can be claimed while the provider cannot be reached", async () => {
    const early = await inviteBeforeIssuer();
    provider.discovery = () => new Response(null, { status: 500 });
    const token = await provider.token("alice");
    const { id: vouched } = await bySecret();
    expect(outcome(await logIn(application, token, { userId: "alice", invitationToken: vouched }))).toBe("201");
    expect(outcome(await logIn(early.application, token, { userId: "alice", invitationToken: early.id }))).toBe(
      "503 UNAVAILABLE",
    );
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
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 1500 });
    expect(outcome(await logIn(application, await provider.token("alice", { aud: "renamed-app" })))).toBe("201");
    await set("user_issuer = NULL");
    vi.setSystemTime(Date.now() + 1500);
    expect(outcome(await logIn(application, null))).toBe("201");
  });

  it("a login passes within a second after the check is turned off because the provider cannot be reached", async () => {
    provider.discovery = () => new Response(null, { status: 500 });
    const token = await provider.token("alice");
    expect(outcome(await logIn(application, token))).toBe("503 UNAVAILABLE");
    await set("user_issuer = NULL");
    vi.setSystemTime(Date.now() + 1500);
    expect(outcome(await logIn(application, token))).toBe("201");
  });
});

describe("what a login with a token costs (contract section 22)", () => {
  it("a login with a token costs one round trip to D1, like one without", async () => {
    const token = await provider.token("alice");
    await logIn(application, token, undefined, { udid: "phone" });
    const requestId = crypto.randomUUID();
    await logIn(application, token, undefined, { udid: "phone", "x-request-id": requestId });
    const [line] = linesOf(logged).filter((one) => one.requestId === requestId);
    expect(line).toMatchObject({ status: 200, roundTrips: 1 });
    expect(provider.keySetFetches).toBe(1);
  });
});

describe("observing (contract section 22)", () => {
  const counts = async (observed: TestApplication) =>
    homeDatabase()
      .prepare(
        `SELECT sum(with_token) AS withToken, sum(without_token) AS withoutToken, sum(with_wrong_token) AS withWrongToken
         FROM observed_logins WHERE application_id = ?`,
      )
      .bind(observed.id)
      .first();

  it("logins are counted also after an invocation that was to write them was ended", () => {
    let [now, writes] = [1_800_000_000_000, 0];
    const waits = vi.spyOn(scheduler, "wait").mockReturnValue(new Promise(() => {}));
    const counter = new LoginCounter();
    const defer = () => void writes++;
    const count = () => counter.count({ ...testContext().context, now: () => now, defer }, application.id, "withToken");
    for (let logins = 0; logins < 3; logins++) count();
    expect(writes).toBe(1);
    now += 20_000;
    count();
    waits.mockRestore();
    expect(writes).toBe(2);
  });

  it("observing refuses nothing and counts logins by token, with few writes of an isolate", async () => {
    const { wait } = scheduler;
    const waits = vi.spyOn(scheduler, "wait").mockImplementation((milliseconds) => {
      return wait.call(scheduler, milliseconds === OBSERVED_WRITE_MILLISECONDS ? 300 : milliseconds);
    });
    const observed = await createApplication({ ...provider.columns, userObserve: true });
    const [token, wrong] = [await provider.token("alice"), await provider.token("alice", { exp: 1 })];
    const logins = [token, token, null, wrong, "nonsense", null, null];
    for (const one of logins) expect(outcome(await logIn(observed, one))).toBe("201");
    expect(outcome(await logIn(observed, await provider.token("bob")))).toBe("201");
    const expected = { withToken: 2, withoutToken: 3, withWrongToken: 3 };
    await until(async () => expect(await counts(observed)).toEqual(expected));
    waits.mockRestore();
    const { body } = await callServer(observed, "GET", "/v1/stats");
    expect(body.logins).toEqual(expected);
  });

  it("a login counts in the statistics of the day after it, and no longer", async () => {
    const at = Date.UTC(2031, 0, 1, 12, 30);
    const { context } = testContext();
    await addObservedLogins(context.db, application.id, { withToken: 2, withoutToken: 0, withWrongToken: 0 }, at);
    const hoursLater = async (hours: number) => {
      const { logins } = await readStatistics({ ...context, now: () => at + hours * 3_600_000 }, application.id);
      return logins.withToken;
    };
    expect([await hoursLater(0), await hoursLater(23), await hoursLater(24)]).toEqual([2, 2, 0]);
  });

  it("observing does not wait for an unreachable provider, and does not count its tokens as wrong", async () => {
    const observed = await createApplication({ ...provider.columns, userObserve: true });
    let isGivenUp = false;
    provider.discovery = (signal) => {
      signal.addEventListener("abort", () => {
        isGivenUp = true;
      });
      return hangs(signal);
    };
    expect(outcome(await logIn(observed, await provider.token("alice")))).toBe("201");
    expect(isGivenUp).toBe(false);
    const broken = await newProvider();
    broken.discovery = () => new Response(null, { status: 500 });
    const other = await createApplication({ ...broken.columns, userObserve: true });
    const count = vi.spyOn(LoginCounter.prototype, "count");
    onTestFinished(() => count.mockRestore());
    const headers = { applicationid: other.id, udid: newUdid(), authorization: "Bearer token" };
    const init = { method: "POST", headers, body: JSON.stringify({ userId: "alice" }) };
    // It returns when the token has been looked at, too.
    expect(outcome(await callWith({}, new Request("https://badges.example/v1/badge", init)))).toBe("201");
    expect(count).not.toHaveBeenCalledWith(expect.anything(), other.id, expect.anything());
  });
});
