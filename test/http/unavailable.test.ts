import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { DatabaseHealth } from "../../src/worker/database-health.ts";
import { moveClock } from "../invitations/support/clock.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { aroundD1 } from "../support/d1.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { type Answer, call, requestBadge, serverHeaders, sign } from "../support/http.ts";
import { until } from "../support/until.ts";
import { outcome } from "./support/draft.ts";
import { hoursAhead, type Invitation, invite } from "./support/invitations.ts";
import { NOTHING, ROUTES, type Route, requestOf } from "./support/routes.ts";

// Tables are renamed here, for a moment: what runs in this file runs alone in its storage.

let logged: string[];

beforeEach(() => {
  logged = [];
  const keep = (line: unknown) => void logged.push(String(line));
  for (const level of ["log", "warn", "error"] as const) vi.spyOn(console, level).mockImplementation(keep);
});

afterEach(() => {
  vi.useRealTimers();
});

async function withoutTable<Result>(table: string, act: () => Promise<Result>): Promise<Result> {
  await homeDatabase().exec(`ALTER TABLE ${table} RENAME TO ${table}_away`);
  try {
    return await act();
  } finally {
    await homeDatabase().exec(`ALTER TABLE ${table}_away RENAME TO ${table}`);
  }
}

const forgetApplications = () => moveClock(30_000);

/** Calls of each kind, none of which was made before. */
function newCalls(application: TestApplication, invitation: Invitation): Record<string, () => Promise<Answer>> {
  const device = { applicationid: application.id, udid: "new phone" };
  const server = serverHeaders(application);
  return {
    badge: () => requestBadge(application, "new phone", { userId: "user" }),
    claim: () => requestBadge(application, "other phone", { userId: "user", invitationToken: invitation.id }),
    sign: () => sign(application, "old phone", { base64: "AAAA" }),
    list: () => call("GET", "/v1/badges", { headers: server }),
    "user's list": () => call("GET", "/v1/users/user/badges", { headers: server }),
    invite: () => call("POST", "/v1/invitation", { headers: device, body: { expiresAt: hoursAhead(1) } }),
    revoke: () => call("PATCH", `/v1/invitation/${invitation.id}/revoke`, { headers: server }),
    keys: () => call("GET", `/v1/applications/${application.id}/jwks.json`),
    "status list": () => call("GET", `/v1/applications/${application.id}/status/0`),
  };
}

async function prepare(): Promise<{ application: TestApplication; calls: ReturnType<typeof newCalls> }> {
  const application = await createApplication({ statusList: true });
  expect((await requestBadge(application, "old phone", { userId: "user" })).status).toBe(201);
  return { application, calls: newCalls(application, await invite(application)) };
}

function expectUnavailable(name: string, { status, body, headers }: Answer): void {
  expect({ name, status, body }).toEqual({ name, status: 503, body: { error: "UNAVAILABLE" } });
  expect(headers.get("retry-after")).toBe("2");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
}

describe("when D1 fails (contract section 6)", () => {
  it("every route that names an application responds 503 UNAVAILABLE while the application is not cached", async () => {
    const { application } = await prepare();
    const headers = { ...serverHeaders(application), udid: "old phone" };
    const routes = ROUTES.filter(({ by, path }) => by !== null || path.includes("{applicationId}"));
    const send = (route: Route) => {
      const { path, body } = requestOf(route, { ...NOTHING, application: application.id });
      return call(route.method, path, { headers, body });
    };
    forgetApplications();
    await withoutTable("application", async () => {
      for (const route of routes) expectUnavailable(route.name, await send(route));
    });
    forgetApplications();
    for (const route of routes) expect((await send(route)).status, route.name).toBeLessThan(500);
  });
});

describe("when another part of the platform fails (contract section 6)", () => {
  it("device calls respond 503 UNAVAILABLE while the application's keys cannot be opened, or calls cannot be counted", async () => {
    const sealed = await createApplication({ sealingVersion: 99 });
    expectUnavailable("badge", await requestBadge(sealed, "phone", { userId: "user" }));
    expectUnavailable("sign", await sign(sealed, "phone", { base64: "AAAA" }));
    const { id } = await createApplication();
    const broken: RateLimit = { limit: () => Promise.reject(new Error("rate limiter out of order")) };
    for (const bindings of [{ DEVICE_LIMIT: broken }, { CLIENT_IP_LIMIT: broken }]) {
      const headers = { applicationid: id, udid: "phone" };
      const init = { method: "POST", headers, body: '{"userId":"user"}' };
      expectUnavailable("badge", await callWith(bindings, new Request("https://badges.example/v1/badge", init)));
    }
  });
});

describe("an unexpected error (contract section 6)", () => {
  it("an unexpected error gets 500 INTERNAL_ERROR and nothing else, and is logged with the request ID", async () => {
    const { application, calls } = await prepare();
    await runSql("DELETE FROM signing_key WHERE application_id = ?", application.id);
    forgetApplications();
    for (const [name, newCall] of Object.entries(calls)) {
      const { status, body, headers } = await newCall();
      expect({ name, status, body }).toEqual({ name, status: 500, body: { error: "INTERNAL_ERROR" } });
      expect(headers.get("cache-control")).toBe("no-store");
      const failed = logged.filter((line) => line.includes("request-failed"));
      expect(failed.join()).toContain(`"requestId":"${headers.get("x-request-id")}"`);
    }
  });

  it("an unexpected error leaves no secret, token or udid in the log (contract section 9)", async () => {
    const application = await createApplication();
    const invitation = await invite(application);
    const { invite: inviting, revoke: _, ...reading } = newCalls(application, invitation);
    for (const table of ["application", "badge"]) {
      forgetApplications();
      await withoutTable(table, () => Promise.all(Object.values(reading).map((newCall) => newCall())));
    }
    // What D1 refuses to write is logged, and written later.
    let invited: Promise<Answer> | undefined;
    await withoutTable("history", async () => {
      invited = inviting?.();
      await until(() => expect(logged.join()).toContain("entry-refused"));
    });
    expect((await invited)?.status).toBe(201);
    const log = logged.join("\n");
    expect(log).toContain("request-failed");
    for (const kept of [application.secret, invitation.id, "new phone", "old phone"]) expect(log).not.toContain(kept);
  });
});

/** Health checks of one isolate, whose round trips to D1 are counted. */
function checks(respond: () => Promise<void> = async () => {}) {
  let asked = 0;
  const DB = aroundD1(env.DB, async (_, send) => {
    asked++;
    await respond();
    return send();
  });
  const ask = () => callWith({ DB }, new Request("https://badges.example/health"));
  return { ask, check: () => ask().then(outcome), asked: () => asked };
}

describe("/health (contract section 7)", () => {
  let now = Date.UTC(2032, 0, 1);

  beforeEach(() => {
    now += 10_000;
    vi.setSystemTime(now);
  });

  it("/health queries D1 at most once a second in each isolate, and does not say for longer that D1 responds, or that it does not", async () => {
    let isDown = false;
    const { check, asked } = checks(async () => {
      if (isDown) throw new Error("down");
    });
    expect(new Set(await Promise.all(Array.from({ length: 200 }, check)))).toEqual(new Set(["200"]));
    const told: string[] = [];
    for (const [milliseconds, down] of [
      [999, true],
      [1000, true],
      [1999, false],
      [2000, false],
    ] as const) {
      isDown = down;
      vi.setSystemTime(now + milliseconds);
      told.push(`${await check()} ${asked()}`);
    }
    expect(told).toEqual(["200 1", "503 UNAVAILABLE 2", "503 UNAVAILABLE 2", "200 3"]);
  });

  it("a call of /health does not wait longer than three seconds for one that ended without a result", async () => {
    const health = new DatabaseHealth();
    void health.check(0, () => new Promise(() => {}));
    const wait = vi.spyOn(scheduler, "wait").mockImplementation(async () => {});
    onTestFinished(() => wait.mockRestore());
    expect(await health.check(0, async () => {})).toBe(false);
    expect(wait.mock.calls).toEqual(Array(150).fill([20]));
  });

  it("all waiting calls of /health get 503 while D1 does not respond", async () => {
    const { ask, asked } = checks(async () => {
      await scheduler.wait(50);
      throw new Error("down");
    });
    const answers = await Promise.all([ask(), ask(), ask()]);
    expect(answers.map(outcome)).toEqual(Array(3).fill("503 UNAVAILABLE"));
    for (const { headers } of answers) expect(headers.get("retry-after")).toBe("2");
    expect(asked()).toBe(1);
  });

  it("/health names the deployed release in a header, so that a deployment sees its own respond (contract section 25)", async () => {
    const healthOf = (bindings: object) => callWith(bindings, new Request("https://badges.example/health"));
    expect((await healthOf({ RELEASE: "0.9.0+1f0c93ab77de" })).headers.get("release")).toBe("0.9.0+1f0c93ab77de");
    expect((await healthOf({})).headers.has("release")).toBe(false);
  });
});
