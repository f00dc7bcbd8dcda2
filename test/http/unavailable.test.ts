import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { retryPlatform, Unavailable } from "../../src/worker/platform.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { type Answer, call, callServer, requestBadge, serverHeaders, sign } from "../support/http.ts";
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

function forgetApplications(): void {
  vi.setSystemTime(Date.now() + 30_000);
}

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

  it("calls that read the table badge use up no number while D1 lacks it, and succeed later", async () => {
    const { application, calls } = await prepare();
    const { invite: _, revoke: __, keys: ___, ...failing } = calls;
    await withoutTable("badge", async () => {
      for (const [name, newCall] of Object.entries(failing)) expectUnavailable(name, await newCall());
    });
    const { revoke: ____, ...others } = calls;
    const later: string[] = [];
    for (const [name, newCall] of Object.entries(others)) later.push(`${name} ${outcome(await newCall())}`);
    const made = ["badge 201", "claim 201", "invite 201"];
    const read = ["sign 200", "list 200", "user's list 200", "keys 200", "status list 200"];
    expect(later.toSorted()).toEqual([...made, ...read].toSorted());
    const { body } = await callServer(application, "GET", "/v1/badges");
    expect(body.badges).toHaveLength(3);
  });
});

describe("when another part of the platform fails (contract section 6)", () => {
  it("device calls respond 503 UNAVAILABLE while the application's keys cannot be opened", async () => {
    const application = await createApplication({ sealingVersion: 99 });
    expectUnavailable("badge", await requestBadge(application, "phone", { userId: "user" }));
    expectUnavailable("sign", await sign(application, "phone", { base64: "AAAA" }));
  });

  it("device calls respond 503 UNAVAILABLE while calls cannot be counted", async () => {
    const { id } = await createApplication();
    const broken: RateLimit = { limit: () => Promise.reject(new Error("rate limiter out of order")) };
    for (const bindings of [{ DEVICE_LIMIT: broken }, { CLIENT_IP_LIMIT: broken }]) {
      const request = new Request("https://badges.example/v1/badge", {
        method: "POST",
        headers: { applicationid: id, udid: "phone" },
        body: '{"userId":"user"}',
      });
      expectUnavailable("badge", await callWith(bindings, request));
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
      const requestId = headers.get("x-request-id");
      expect(requestId).toMatch(/^[\w-]{36}$/);
      expect(headers.get("cache-control")).toBe("no-store");
      const failed = logged.filter((line) => line.includes("request-failed"));
      expect(failed.some((line) => line.includes(`"requestId":"${requestId}"`))).toBe(true);
    }
  });

  it("an unexpected error leaves no secret, token or udid in the log (contract section 9)", async () => {
    const application = await createApplication();
    const invitation = await invite(application);
    const calls = newCalls(application, invitation);
    const { invite: _, revoke: __, ...reading } = calls;
    for (const table of ["application", "badge"]) {
      forgetApplications();
      await withoutTable(table, async () => {
        for (const newCall of Object.values(reading)) await newCall();
      });
    }
    // What D1 refuses to write is logged, and written later.
    let invited: Promise<Answer> | undefined;
    await withoutTable("history", async () => {
      invited = calls.invite?.();
      await until(() => expect(logged.join()).toContain("entry-refused"));
    });
    expect((await invited)?.status).toBe(201);
    for (const newCall of Object.values(calls)) await newCall();
    const log = logged.join("\n");
    expect(log).toContain("request-failed");
    for (const kept of [application.secret, invitation.id, "new phone", "old phone"]) expect(log).not.toContain(kept);
  });
});

describe("a dependency that does not respond in time (contract section 11)", () => {
  it("a call that fails after its deadline is not tried again, since nobody waits for it", async () => {
    const pause = vi.spyOn(scheduler, "wait").mockResolvedValue();
    onTestFinished(() => pause.mockRestore());
    const tries: PromiseWithResolvers<never>[] = [];
    const call = () => {
      tries.push(Promise.withResolvers());
      return tries.at(-1)?.promise ?? Promise.reject();
    };
    await expect(retryPlatform("D1", call, 1, () => true)).rejects.toThrow(Unavailable);
    tries[0]?.reject(new Error("Network connection lost."));
    // Lets everything that this triggers run first.
    await new Promise((resolve) => setTimeout(resolve));
    expect(tries).toHaveLength(1);
  });
});
