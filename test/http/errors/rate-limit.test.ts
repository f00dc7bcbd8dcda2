import { describe, expect, it, onTestFinished, vi } from "vitest";
import { newPhone } from "../../bound/support.ts";
import { createApplication } from "../../support/application.ts";
import { callWith, countedLimit, UNLIMITED } from "../../support/bindings.ts";
import { ahead, HOUR } from "../../support/clock.ts";
import { runSql } from "../../support/home.ts";
import { type Answer, outcome, serverHeaders } from "../../support/http.ts";
import { invite } from "../../support/invitations.ts";
import { times } from "../support/draft.ts";
import { signIn } from "../support/people.ts";

const LIMITED = "429 RATE_LIMITED";

type Headers = Record<string, string>;
type Call = [method: string, path: string, body?: unknown];

const ISSUE: Call = ["POST", "/v1/badge", { userId: "user" }];
const SIGN: Call = ["POST", "/v1/badge/sign", { base64: "not base64" }];
const INVITE: Call = ["POST", "/v1/invitation", { expiresAt: ahead(HOUR) }];
const REVOKE: Call = ["PATCH", "/v1/invitation/inv_x/revoke"];

function send(bindings: Partial<Env>, headers: Headers, [method, path, body]: Call): Promise<Answer> {
  return callWith(bindings, method, path, { headers, body });
}

describe("calls of one device (contract section 7)", () => {
  it("calls of one device are limited in all, refused ones included, and other devices, other applications' devices and servers go on", async () => {
    const [application, other] = [await createApplication(), await createApplication()];
    const bindings = { DEVICE_LIMIT: countedLimit(5), CLIENT_IP_LIMIT: UNLIMITED };
    const device = { applicationid: application.id, udid: "phone" };
    const deviceCalls: Call[] = [ISSUE, SIGN, INVITE, ["POST", "/v1/badge", ["no object"]], REVOKE];
    const ask = async (call: Call, headers: Headers) => outcome(await send(bindings, headers, call));
    const counted: string[] = [];
    for (const call of deviceCalls) counted.push(await ask(call, device));
    expect(counted).toEqual(["201", "422 INVALID_BASE64", "201", "400 INVALID_JSON", "404 UNKNOWN_INVITATION"]);
    for (const call of deviceCalls) {
      const answer = await send(bindings, device, call);
      expect([outcome(answer), answer.headers.get("retry-after")]).toEqual([LIMITED, "60"]);
      // A web page may read that it is limited, where it may call.
      const origin = call[1].startsWith("/v1/badge") ? "*" : null;
      expect(answer.headers.get("access-control-allow-origin")).toBe(origin);
    }
    expect(await ask(ISSUE, { ...device, udid: "another phone" })).toBe("201");
    expect(await ask(ISSUE, { ...device, applicationid: other.id })).toBe("201");
    const server = { ...device, ...serverHeaders(application) };
    expect(await ask(INVITE, server)).toBe("201");
    expect(await ask(REVOKE, server)).toBe("404 UNKNOWN_INVITATION");
    expect(await ask(["GET", "/v1/badges"], server)).toBe("200");
  });

  it("calls of one device are counted with a wrong secret and with a console secret, not with the server's, and not of nobody known", async () => {
    const application = await createApplication();
    const limit = countedLimit(2);
    const ask = async (call: Call, headers: Headers) =>
      outcome(await send({ DEVICE_LIMIT: limit, CLIENT_IP_LIMIT: UNLIMITED }, { udid: "terminal", ...headers }, call));
    const byServer = serverHeaders(application);
    expect(await ask(ISSUE, byServer)).toBe("201");
    for (const _ of times(3)) expect([await ask(ISSUE, byServer), await ask(INVITE, byServer)]).toEqual(["200", "201"]);
    expect(await ask(ISSUE, { applicationid: "unknown" })).toBe("401 INVALID_APPLICATIONID");
    expect(await ask(ISSUE, { applicationid: application.id, udid: " " })).toBe("422 UNDEFINED_UDID");
    expect(limit.keys).toEqual([]);
    const wrong = { ...byServer, applicationsecret: "wrong" };
    const viewer = { ...(await signIn(application, "viewer")), udid: "terminal" };
    for (const headers of [wrong, viewer]) expect(await ask(ISSUE, headers)).toBe("200");
    for (const headers of [wrong, viewer]) expect(await ask(ISSUE, headers)).toBe(LIMITED);
    expect(await ask(INVITE, wrong)).toBe("401 INVALID_CREDENTIALS");
  });
});

describe("calls of one client IP (contract section 7)", () => {
  /** One call after the other, each of a device of its own unless it says which. */
  async function outcomesFrom(
    limit: RateLimit,
    calls: readonly { of: { id: string }; call: Call; ip?: string; udid?: string }[],
  ) {
    const outcomes: string[] = [];
    for (const [place, { of, call, ip = "192.0.2.1", udid = `device ${place}` }] of calls.entries()) {
      const headers = { applicationid: of.id, udid, "cf-connecting-ip": ip };
      outcomes.push(outcome(await send({ CLIENT_IP_LIMIT: limit }, headers, call)));
    }
    return outcomes;
  }

  it("calls of one client IPv4 address or IPv6 /64 are counted together for all devices of one application, separately for each application", async () => {
    const [of, other] = [await createApplication(), await createApplication()];
    const counted = "422 UNDEFINED_BASE64";
    const call: Call = ["POST", "/v1/badge/sign", {}];
    const one = { of, call };
    const calls = [one, one, one, { ...one, ip: "192.0.2.2" }, { of: other, call }];
    expect(await outcomesFrom(countedLimit(2), calls)).toEqual([counted, counted, LIMITED, counted, counted]);
    const ips = ["2001:db8:1:2::1", "2001:db8:1:2:ffff:0:0:9", "2001:db8:1:3::1"];
    const ofCustomers = ips.map((ip) => ({ of, call, ip }));
    expect(await outcomesFrom(countedLimit(1), ofCustomers)).toEqual([counted, LIMITED, counted]);
  });

  it("malformed calls of one client IP, also those without a udid, are counted apart, so they do not use up the limit of well-formed ones", async () => {
    const of = await createApplication();
    const limit = countedLimit(2);
    const malformed: Call = ["POST", "/v1/badge", {}];
    const calls = [malformed, malformed, malformed, ISSUE, REVOKE, ISSUE].map((call) => ({ of, call }));
    const answers = ["422 UNDEFINED_USERID", "422 UNDEFINED_USERID", LIMITED, "201", "404 UNKNOWN_INVITATION", LIMITED];
    expect(await outcomesFrom(limit, calls)).toEqual(answers);
    const nameless = countedLimit(2);
    const ofNobody = [ISSUE, INVITE, SIGN].map((call) => ({ of, call, udid: " " }));
    const undefinedUdid = "422 UNDEFINED_UDID";
    expect(await outcomesFrom(nameless, ofNobody)).toEqual([undefinedUdid, undefinedUdid, LIMITED]);
    expect(new Set(nameless.keys)).toEqual(new Set([`${of.id}:192.0.2.1:refused`]));
  });
});

describe("the platform's limits (contract section 7)", () => {
  it("a phone's own earlier token does not count as a guess, even at an address over its limit (contract section 7)", async () => {
    const of = await createApplication();
    const phone = await newPhone(of);
    const [first, second] = [await invite(of), await invite(of)];
    for (const { token } of [first, second]) await phone.logInTo({}, { more: { invitationToken: token } });
    const again = await phone.logInTo({ CLIENT_IP_LIMIT: countedLimit(0) }, { more: { invitationToken: first.token } });
    expect([again.status, again.body.badgeId]).toEqual([200, String(second.number)]);
    // After a year it may be deleted.
    await runSql("DELETE FROM invitation WHERE application_id = ?", of.id);
    const present = await phone.logInTo(
      { CLIENT_IP_LIMIT: countedLimit(0) },
      { more: { invitationToken: second.token } },
    );
    expect(present.status).toBe(200);
  });

  it.each([
    ["for a new badge", {}],
    ["with a made-up invitation token", { invitationToken: "inv_made_up" }],
  ])("a call %s over its client IP's limit is refused even if a setting has just changed", async (_, more) => {
    const of = await createApplication();
    const phone = await newPhone(of);
    const attempt = async () => outcome(await phone.logInTo({ CLIENT_IP_LIMIT: countedLimit(0) }, { more }));
    expect(await attempt()).toBe(LIMITED);
    await runSql("UPDATE application SET reuse_after_seconds = 7200 WHERE id = ?", of.id);
    // Before a refusal, settings are read again that are a second old.
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 2000 });
    onTestFinished(() => void vi.useRealTimers());
    expect(await attempt()).toBe(LIMITED);
  });
});
