import { describe, expect, it, onTestFinished, vi } from "vitest";
import wrangler from "../../../wrangler.toml?raw";
import { newPhone } from "../../bound/support.ts";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { callWith, countedLimit, UNLIMITED } from "../../support/bindings.ts";
import { runSql } from "../../support/home.ts";
import { type Answer, call, callServer, requestBadge, serverHeaders, sign } from "../../support/http.ts";
import { inParallel, outcome, tally, times } from "../support/draft.ts";
import { hoursAhead } from "../support/invitations.ts";
import { signIn } from "../support/people.ts";

const CALLS_OF_A_DEVICE = 60;
const CALLS_OF_A_CLIENT_IP = 1200;
const REFUSED_CALLS = 120;
const LIMITED = "429 RATE_LIMITED";

/**
 * The platform counts in windows of whole minutes. What was counted across the turn of one says nothing, so it is done
 * again, by another application.
 */
async function withinOneWindow<Result>(count: (application: TestApplication) => Promise<Result>): Promise<Result> {
  const window = () => Math.floor(Date.now() / 60_000);
  for (let tries = 0; tries < 3; tries++) {
    const application = await createApplication({ size: 200_000 });
    const before = window();
    const result = await count(application);
    if (window() === before) return result;
  }
  throw new Error("no minute was long enough to count in");
}

const inviteBy = (headers: Record<string, string>) =>
  call("POST", "/v1/invitation", { headers, body: { expiresAt: hoursAhead(1) } });

describe("calls of one device (contract section 7)", () => {
  it("calls of one device are limited to 60 a minute in all, refused ones included", async () => {
    const { counted, after, others } = await withinOneWindow(async (application) => {
      const device = { applicationid: application.id, udid: "phone" };
      const deviceCalls = [
        () => requestBadge(application, "phone", { userId: "user" }),
        () => sign(application, "phone", { base64: "not base64" }),
        () => inviteBy(device),
        () => requestBadge(application, "phone", "not JSON"),
        () => call("PATCH", "/v1/invitation/inv_x/revoke", { headers: device }),
      ];
      const counted = await inParallel(times(CALLS_OF_A_DEVICE), async (place) => {
        const answer = await deviceCalls[place % deviceCalls.length]?.();
        if (!answer) throw new Error("no such call");
        return answer;
      });
      const after: Answer[] = [];
      for (const deviceCall of deviceCalls) after.push(await deviceCall());
      const others = [
        await requestBadge(application, "another phone", { userId: "user" }),
        await requestBadge(await createApplication(), "phone", { userId: "user" }),
        await inviteBy({ ...device, applicationsecret: application.secret }),
        await callServer(application, "PATCH", "/v1/invitation/inv_x/revoke"),
        await callServer(application, "GET", "/v1/badges"),
      ];
      return { counted, after, others };
    });
    expect(tally(counted.map(outcome))).toEqual({
      "201": 13,
      "200": 11,
      "422 INVALID_BASE64": 12,
      "400 INVALID_JSON": 12,
      "404 UNKNOWN_INVITATION": 12,
    });
    expect(after.map(outcome)).toEqual(Array(5).fill(LIMITED));
    for (const { headers } of after) expect(headers.get("retry-after")).toBe("60");
    // A web page may read that it is limited, where it may call.
    expect(after.slice(0, 2).map(({ headers }) => headers.get("access-control-allow-origin"))).toEqual(["*", "*"]);
    // Other devices, other applications' devices and servers go on.
    expect(others.map(outcome)).toEqual(["201", "201", "201", "404 UNKNOWN_INVITATION", "200"]);
  });

  it("calls of one device are counted with a wrong secret and with a console secret, not with the server's, and not of nobody known", async () => {
    const application = await createApplication();
    const [byServer, viewer] = [serverHeaders(application), await signIn(application, "viewer")];
    const limit = countedLimit(2);
    const post = async (path: string, headers: Record<string, string>, body: object) => {
      const request = new Request(`https://badges.example${path}`, {
        method: "POST",
        headers: { udid: "terminal", ...headers },
        body: JSON.stringify(body),
      });
      return outcome(await callWith({ DEVICE_LIMIT: limit, CLIENT_IP_LIMIT: UNLIMITED }, request));
    };
    const issueBy = (headers: Record<string, string>) => post("/v1/badge", headers, { userId: "user" });
    const inviteTo = (headers: Record<string, string>) => post("/v1/invitation", headers, { expiresAt: hoursAhead(1) });
    expect(await issueBy(byServer)).toBe("201");
    for (const _ of times(3)) expect([await issueBy(byServer), await inviteTo(byServer)]).toEqual(["200", "201"]);
    expect(await issueBy({ applicationid: "unknown" })).toBe("401 INVALID_APPLICATIONID");
    expect(await issueBy({ applicationid: application.id, udid: " " })).toBe("422 UNDEFINED_UDID");
    expect(limit.keys).toEqual([]);
    const wrong = { ...byServer, applicationsecret: "wrong" };
    expect(await issueBy(wrong)).toBe("200");
    expect(await issueBy({ ...viewer, udid: "terminal" })).toBe("200");
    for (const headers of [wrong, { ...viewer, udid: "terminal" }]) expect(await issueBy(headers)).toBe(LIMITED);
    expect(await inviteTo(wrong)).toBe("401 INVALID_CREDENTIALS");
  });
});

describe("calls of one client IP (contract section 7)", () => {
  /** One call after the other, from an address. */
  const outcomesFrom = async (
    limit: RateLimit,
    calls: readonly {
      ip?: string;
      of: { id: string };
      udid?: string;
      method?: string;
      path?: string;
      body?: unknown;
    }[],
  ): Promise<string[]> => {
    const outcomes: string[] = [];
    for (const { ip = "192.0.2.1", of, udid = "one", method = "POST", path = "/v1/badge/sign", body } of calls) {
      const headers = { applicationid: of.id, udid, "cf-connecting-ip": ip };
      const request = new Request(`https://badges.example${path}`, { method, headers, body: JSON.stringify(body) });
      outcomes.push(outcome(await callWith({ CLIENT_IP_LIMIT: limit }, request)));
    }
    return outcomes;
  };

  it("calls of one client IP are counted together for all devices of one application, separately for each application", async () => {
    const [of, other] = [await createApplication(), await createApplication()];
    const calls = [
      ...["one", "two", "three"].map((udid) => ({ of, udid })),
      ...[
        { of, udid: "three", ip: "192.0.2.2" },
        { of: other, udid: "three" },
      ],
    ];
    const counted = "422 UNDEFINED_BASE64";
    expect(await outcomesFrom(countedLimit(2), calls)).toEqual([counted, counted, LIMITED, counted, counted]);
  });

  it("malformed calls of one client IP are counted apart, so they do not use up the limit of well-formed ones", async () => {
    const of = await createApplication();
    const [badge, body] = ["/v1/badge", { userId: "user" }];
    const outcomes = await outcomesFrom(countedLimit(2), [
      { of, udid: "one", path: badge, body: {} },
      { of, udid: "two", path: "/v1/invitation", body: {} },
      { of, udid: "three", body: [] },
      { of, udid: "four", path: badge, body },
      { of, udid: "five", method: "PATCH", path: "/v1/invitation/inv_x/revoke" },
      { of, udid: "six", path: badge, body },
    ]);
    const malformed = ["422 UNDEFINED_USERID", "422 UNDEFINED_EXPIRESAT", LIMITED];
    expect(outcomes).toEqual([...malformed, "201", "404 UNKNOWN_INVITATION", LIMITED]);
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

  it("calls without a udid, which have no count of a device, are counted with the malformed ones", async () => {
    const of = await createApplication();
    const limit = countedLimit(2);
    const outcomes = await outcomesFrom(limit, [
      { of, udid: "", path: "/v1/badge" },
      { of, udid: " ", path: "/v1/invitation" },
      { of, udid: "" },
    ]);
    expect(outcomes).toEqual(["422 UNDEFINED_UDID", "422 UNDEFINED_UDID", LIMITED]);
    expect(new Set(limit.keys)).toEqual(new Set([`${of.id}:192.0.2.1:refused`]));
  });

  it("calls of all IPv6 addresses of one /64, which one customer has, are counted together", async () => {
    const of = await createApplication();
    const ips = ["2001:db8:1:2::1", "2001:db8:1:2:ffff:0:0:9", "2001:db8:1:3::1"];
    const outcomes = await outcomesFrom(
      countedLimit(1),
      ips.map((ip) => ({ of, ip })),
    );
    expect(outcomes).toEqual(["422 UNDEFINED_BASE64", LIMITED, "422 UNDEFINED_BASE64"]);
  });
});

describe("the platform's limits (contract section 7)", () => {
  it.each([
    ["DEVICE_LIMIT", CALLS_OF_A_DEVICE],
    ["CLIENT_IP_LIMIT", CALLS_OF_A_CLIENT_IP],
    ["REFUSED_CALL_LIMIT", REFUSED_CALLS],
  ])("limits of %s are %d a minute, counted apart locally and in production", (name, limit) => {
    const binding = `name = "${name}"\nnamespace_id = "(\\d+)"\nsimple = \\{ (.*) \\}`;
    const found = [...wrangler.matchAll(new RegExp(binding, "g"))];
    expect(found.map(([, , simple]) => simple)).toEqual(Array(2).fill(`limit = ${limit}, period = 60`));
    expect(new Set(found.map(([, namespace]) => namespace)).size).toBe(2);
  });
});
