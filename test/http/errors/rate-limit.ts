import { beforeEach, describe, expect, it, vi } from "vitest";
import wrangler from "../../../wrangler.toml?raw";
import { createApplication, type TestApplication } from "../../support/application.ts";
import { callWith } from "../../support/bindings.ts";
import { type Answer, call, requestBadge, serverHeaders, sign } from "../../support/http.ts";
import { inParallel, outcome } from "../support/draft.ts";
import { hoursAhead } from "../support/invitations.ts";
import { signIn } from "../support/people.ts";

const CALLS_OF_A_DEVICE = 60;
const CALLS_OF_A_CLIENT_IP = 1200;
const LIMITED = "429 RATE_LIMITED";

beforeEach(() => {
  vi.spyOn(console, "log").mockImplementation(() => {});
});

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

function tally(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const answer of answers) counts[outcome(answer)] = (counts[outcome(answer)] ?? 0) + 1;
  return counts;
}

const times = (count: number) => Array.from({ length: count }, (_, place) => place);

const inviteBy = (headers: Record<string, string>) =>
  call("POST", "/v1/invitation", { headers, body: { expiresAt: hoursAhead(1) } });

describe("calls of one device (contract section 7)", () => {
  it("are limited to 60 a minute in all, refused ones included", async () => {
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
        await call("PATCH", "/v1/invitation/inv_x/revoke", { headers: serverHeaders(application) }),
        await call("GET", "/v1/badges", { headers: serverHeaders(application) }),
      ];
      return { counted, after, others };
    });
    expect(tally(counted)).toEqual({
      "201": 13,
      "200": 11,
      "422 INVALID_BASE64": 12,
      "400 INVALID_JSON": 12,
      "404 UNKNOWN_INVITATION": 12,
    });
    expect(after.map(outcome)).toEqual(Array(5).fill(LIMITED));
    for (const { headers } of after) expect(headers.get("retry-after")).toBe("60");
    // Other devices, other applications' devices and servers go on.
    expect(others.map(outcome)).toEqual(["201", "201", "201", "404 UNKNOWN_INVITATION", "200"]);
  });

  it("can be read by a web page when they are limited", async () => {
    const limited = await withinOneWindow(async (application) => {
      const deviceCall = () => sign(application, "phone", {});
      await inParallel(times(CALLS_OF_A_DEVICE), deviceCall);
      return deviceCall();
    });
    expect(outcome(limited)).toBe(LIMITED);
    expect(limited.headers.get("access-control-allow-origin")).toBe("*");
    expect(limited.headers.get("access-control-expose-headers")).toMatch(/retry-after/i);
  });

  it("are not counted if they name no known application or no device", async () => {
    const answer = await withinOneWindow(async (application) => {
      await inParallel(times(CALLS_OF_A_DEVICE), () => requestBadge({ id: "unknown" }, "phone", { userId: "user" }));
      return requestBadge(application, "phone", { userId: "user" });
    });
    expect(outcome(answer)).toBe("201");
  });

  it("are limited with a wrong secret and with a console secret, not with the server's", async () => {
    const { granted, wrong, viewing, wrongInvitation } = await withinOneWindow(async (application) => {
      // Before the application is looked up for the first time, and cached.
      const viewer = await signIn(application, "viewer");
      const headers = { ...serverHeaders(application), udid: "terminal" };
      const issueBy = (by: Record<string, string>) =>
        call("POST", "/v1/badge", { headers: by, body: { userId: "user" } });
      const granted = await inParallel(times(2 * CALLS_OF_A_DEVICE + 10), (place) =>
        place % 2 === 0 ? inviteBy(headers) : issueBy(headers),
      );
      const withWrong = { ...headers, applicationsecret: "wrong" };
      await inParallel(times(CALLS_OF_A_DEVICE), () => issueBy(withWrong));
      const viewing = await issueBy({ ...viewer, udid: "terminal" });
      return { granted, wrong: await issueBy(withWrong), viewing, wrongInvitation: await inviteBy(withWrong) };
    });
    // One badge, which all later requests answer again, and 65 invitations.
    expect(tally(granted)).toEqual({ "201": 66, "200": 64 });
    expect([wrong, viewing].map(outcome)).toEqual([LIMITED, LIMITED]);
    expect(outcome(wrongInvitation)).toBe("401 INVALID_CREDENTIALS");
  });
});

/** Lets so many calls of each key through. */
function limitOf(calls: number): RateLimit {
  const counts = new Map<string, number>();
  return {
    limit: async ({ key }) => {
      counts.set(key, (counts.get(key) ?? 0) + 1);
      return { success: (counts.get(key) ?? 0) <= calls };
    },
  };
}

describe("calls of one client IP (contract section 7)", () => {
  const callFrom = (ip: string, application: { id: string }, udid: string, limit: RateLimit) => {
    const headers = { applicationid: application.id, udid, "cf-connecting-ip": ip };
    const request = new Request("https://badges.example/v1/badge/sign", { method: "POST", headers });
    return callWith({ CLIENT_IP_LIMIT: limit }, request);
  };

  it("are counted together for all devices of one application, separately for each application", async () => {
    const twoEach = limitOf(2);
    const application = await createApplication();
    const answers: Answer[] = [];
    for (const udid of ["one", "two", "three"]) answers.push(await callFrom("192.0.2.1", application, udid, twoEach));
    answers.push(await callFrom("192.0.2.2", application, "three", twoEach));
    answers.push(await callFrom("192.0.2.1", await createApplication(), "three", twoEach));
    const counted = "422 UNDEFINED_BASE64";
    expect(answers.map(outcome)).toEqual([counted, counted, LIMITED, counted, counted]);
    expect(answers[2]?.headers.get("retry-after")).toBe("60");
  });

  it("are counted apart when they are malformed, so those do not use up the limit of well-formed ones", async () => {
    const twoEach = limitOf(2);
    const application = await createApplication();
    const send = async (method: string, path: string, udid: string, body?: unknown) => {
      const headers = { applicationid: application.id, udid, "cf-connecting-ip": "192.0.2.9" };
      const request = new Request(`https://badges.example${path}`, { method, headers, body: JSON.stringify(body) });
      return outcome(await callWith({ CLIENT_IP_LIMIT: twoEach }, request));
    };
    expect(await send("POST", "/v1/badge", "one", {})).toBe("422 UNDEFINED_USERID");
    expect(await send("POST", "/v1/invitation", "two", {})).toBe("422 UNDEFINED_EXPIRESAT");
    expect(await send("POST", "/v1/badge/sign", "three", [])).toBe(LIMITED);
    expect(await send("POST", "/v1/badge", "four", { userId: "user" })).toBe("201");
    expect(await send("PATCH", "/v1/invitation/inv_x/revoke", "five")).toBe("404 UNKNOWN_INVITATION");
    expect(await send("POST", "/v1/badge", "six", { userId: "user" })).toBe(LIMITED);
  });

  it("are counted together for all IPv6 addresses of one /64, which one customer has", async () => {
    const keys: string[] = [];
    const counting: RateLimit = {
      limit: async ({ key }) => {
        keys.push(key);
        return { success: true };
      },
    };
    const application = await createApplication();
    for (const ip of ["2001:db8:1:2::1", "2001:db8:1:2:ffff:0:0:9", "2001:db8:1:3::1"]) {
      await callFrom(ip, application, "one", counting);
    }
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
    expect(keys).toHaveLength(3);
  });

  it("are limited to 1,200 a minute, those of a device to 60, locally and in production", () => {
    const limits = (name: string) =>
      [...wrangler.matchAll(/ratelimits\]\]\nname = "(\w+)"\n.*\nsimple = \{ limit = (\d+), period = (\d+) \}/g)]
        .filter(([, found]) => found === name)
        .map(([, , limit, period]) => ({ limit, period }));
    const twice = (limit: number) => Array.from({ length: 2 }, () => ({ limit: String(limit), period: "60" }));
    expect(limits("DEVICE_LIMIT")).toEqual(twice(CALLS_OF_A_DEVICE));
    expect(limits("CLIENT_IP_LIMIT")).toEqual(twice(CALLS_OF_A_CLIENT_IP));
  });
});
