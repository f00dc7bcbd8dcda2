import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DatabaseHealth } from "../../src/worker/database-health.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { ahead, HOUR, moveClock } from "../support/clock.ts";
import { aroundD1 } from "../support/d1.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { type Answer, call, outcome, requestBadge, serverHeaders, sign } from "../support/http.ts";
import { CREATOR, invite } from "../support/invitations.ts";
import { log } from "../support/log.ts";
import { until } from "../support/until.ts";
import { NOTHING, ROUTES, type Route, requestOf } from "./support/routes.ts";

// Tables are renamed here, for a moment: what runs in this file runs alone in its storage.

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

/** The routes that name an application. */
const OF_APPLICATIONS = ROUTES.filter(({ by, path }) => by !== null || path.includes("{applicationId}"));

/** The route's call by a phone of the application that has its secret. */
function send(route: Route, application: TestApplication, invitation = NOTHING.invitation): Promise<Answer> {
  const { path, body } = requestOf(route, { ...NOTHING, application: application.id, invitation });
  const headers = { ...serverHeaders(application), udid: "a phone", invitationtoken: invitation };
  return call(route.method, path, { headers, body });
}

function expectUnavailable(name: string, { status, body, headers }: Answer): void {
  expect({ name, status, body }).toEqual({ name, status: 503, body: { error: "UNAVAILABLE" } });
  expect(headers.get("retry-after")).toBe("2");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-request-id")).toMatch(/^[\w-]{36}$/);
}

it("every route that names an application responds 503 UNAVAILABLE while the application is not cached (contract section 6)", async () => {
  const application = await createApplication();
  await withoutTable("application", async () => {
    for (const route of OF_APPLICATIONS) expectUnavailable(route.name, await send(route, application));
  });
  forgetApplications();
  for (const route of OF_APPLICATIONS) {
    expect((await send(route, application)).status, route.name).toBeLessThan(500);
  }
});

it("device calls respond 503 UNAVAILABLE while the application's keys cannot be opened, or calls cannot be counted (contract section 6)", async () => {
  const sealed = await createApplication({ sealingVersion: 99 });
  expectUnavailable("badge", await requestBadge(sealed, "phone", { userId: "user" }));
  expectUnavailable("sign", await sign(sealed, "phone", { base64: "AAAA" }));
  const { id } = await createApplication();
  const broken: RateLimit = { limit: () => Promise.reject(new Error("rate limiter out of order")) };
  for (const bindings of [{ DEVICE_LIMIT: broken }, { CLIENT_IP_LIMIT: broken }]) {
    const headers = { applicationid: id, udid: "phone" };
    const login = callWith(bindings, "POST", "/v1/badge", { headers, body: { userId: "user" } });
    expectUnavailable("badge", await login);
  }
});

describe("an unexpected error (contract section 6)", () => {
  it("an unexpected error gets 500 INTERNAL_ERROR and nothing else, and is logged with the request ID", async () => {
    const application = await createApplication();
    await runSql("DELETE FROM signing_key WHERE application_id = ?", application.id);
    for (const route of OF_APPLICATIONS) {
      const { status, body, headers } = await send(route, application);
      expect([route.name, status, body]).toEqual([route.name, 500, { error: "INTERNAL_ERROR" }]);
      expect(headers.get("cache-control")).toBe("no-store");
      const requestId = headers.get("x-request-id");
      expect(log.lines()).toContainEqual(expect.objectContaining({ event: "request-failed", requestId }));
    }
  });

  it("an unexpected error leaves no secret, token or udid in the log (contract section 9)", async () => {
    const application = await createApplication();
    const { token } = await invite(application);
    const reading = OF_APPLICATIONS.filter(({ method, name }) => method === "GET" || name.startsWith("POST /v1/badge"));
    for (const table of ["application", "badge"]) {
      forgetApplications();
      await withoutTable(table, () =>
        Promise.all([
          ...reading.map((route) => send(route, application, token)),
          requestBadge(application, "a phone", { userId: "user", invitationToken: token }),
        ]),
      );
    }
    // What D1 refuses to write is logged, and written later.
    let invited: Promise<unknown> | undefined;
    await withoutTable("history", async () => {
      invited = invite(application, ahead(HOUR), { udid: "a phone" });
      await until(() => expect(JSON.stringify(log.lines())).toContain("entry-refused"));
    });
    await invited;
    const text = JSON.stringify(log.lines());
    expect(text).toContain("request-failed");
    for (const kept of [application.secret, token, "a phone", CREATOR]) expect(text).not.toContain(kept);
  });
});

describe("/health (contract section 7)", () => {
  let now = Date.UTC(2032, 0, 1);

  beforeEach(() => {
    now += 10_000;
    vi.setSystemTime(now);
  });

  it("/health queries D1 at most once a second in each isolate, and does not say for longer to anybody that D1 responds, or that it does not", async () => {
    let isDown = false;
    let asked = 0;
    const DB = aroundD1(env.DB, async (_, send) => {
      asked++;
      if (isDown) throw new Error("down");
      return send();
    });
    const check = () => callWith({ DB }, "GET", "/health").then(outcome);
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
      const answers = await Promise.all([check(), check(), check()]);
      told.push(`${[...new Set(answers)]} ${asked}`);
    }
    expect(told).toEqual(["200 1", "503 UNAVAILABLE 2", "503 UNAVAILABLE 2", "200 3"]);
  });

  it("a call of /health does not wait longer than three seconds for one that ended without a result", async () => {
    const health = new DatabaseHealth();
    void health.check(0, () => new Promise(() => {}));
    const wait = vi.spyOn(scheduler, "wait").mockImplementation(async () => {});
    expect(await health.check(0, async () => {})).toBe(false);
    expect(wait.mock.calls).toEqual(Array(150).fill([20]));
  });

  it("/health names the deployed release in a header, so that a deployment sees its own respond (contract section 25)", async () => {
    const healthOf = (bindings: object) => callWith(bindings, "GET", "/health");
    expect((await healthOf({ RELEASE: "0.9.0+1f0c93ab77de" })).headers.get("release")).toBe("0.9.0+1f0c93ab77de");
    expect((await healthOf({})).headers.has("release")).toBe(false);
  });
});
