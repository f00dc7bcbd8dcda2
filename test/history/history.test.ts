import { drizzle } from "drizzle-orm/d1";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { makeConsoleSecret } from "../../src/shared/credentials.ts";
import { consoleSecret } from "../../src/shared/schema.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { testContext } from "../support/context.ts";
import { homeDatabase } from "../support/home.ts";
import { type Answer, call, requestBadge, serverHeaders } from "../support/http.ts";
import { sweep } from "../support/sweep.ts";

beforeEach(() => {
  for (const method of ["log", "warn", "error"] as const) vi.spyOn(console, method).mockImplementation(() => {});
});

const ahead = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString();

async function pageOf(application: TestApplication, query = ""): Promise<Answer & { rows: Record<string, unknown>[] }> {
  const answer = await call("GET", `/v1/history${query}`, { headers: serverHeaders(application) });
  expect(answer.status).toBe(200);
  return { ...answer, rows: Array.isArray(answer.body.history) ? answer.body.history : [] };
}

/** Newest first. */
const historyOf = async (application: TestApplication, query = "") => (await pageOf(application, query)).rows;

async function signIn({ id: applicationid }: TestApplication, name: string): Promise<Record<string, string>> {
  const { row, secret } = await makeConsoleSecret();
  await drizzle(homeDatabase())
    .insert(consoleSecret)
    .values({ ...row, applicationId: applicationid, name, createdAt: 1 });
  return { applicationid, applicationsecret: secret };
}

async function issue(application: TestApplication, udid: string, userId: string): Promise<string> {
  const { status, body } = await requestBadge(application, udid, { userId });
  expect(status).toBe(201);
  return String(body.badgeId);
}

/** A call that changes something, and the row that history has of it. */
interface Change {
  route: string;
  path: string;
  body?: object;
  headers?: Record<string, string>;
  row: Record<string, unknown> | Record<string, unknown>[];
}

/** Routes whose calls history does not have, or that need an identity provider (test/users). */
const ELSEWHERE = ["POST /v1/badge/sign", "PATCH /v1/user/badges/{id}/suspend"];

const DEVICE = { kind: "device" };

/** Every call that changes something, in an order in which each is granted. */
async function changesOf(application: TestApplication, event: string): Promise<Change[]> {
  const badgeId = await issue(application, "phone", "ada");
  const device = { applicationid: application.id, udid: "visitor" };
  const server = { ...serverHeaders(application), udid: "reception", actor: "Ann%20Lee" };
  const actor = { kind: "server", name: "Ann Lee" };
  const invite = async () => {
    const { body } = await call("POST", "/v1/invitation", { headers: device, body: { expiresAt: ahead(600) } });
    return { id: String(body.id), badgeId: String(body.badgeId) };
  };
  const [claimed, revoked] = [await invite(), await invite()];
  const step = (name: string, action: string, body: object = {}): Change => ({
    route: `PATCH /v1/badges/{id}${name}`,
    path: `/v1/badges/${badgeId}${name}`,
    body: { ...body, reason: "because" },
    headers: server,
    row: { action, actor, badgeId, userId: "ada", reason: "because" },
  });
  const ofUser = (name: string, row: object): Change => ({
    route: `PATCH /v1/users/{id}/${name}`,
    path: `/v1/users/ada/${name}`,
    body: { reason: "because" },
    headers: server,
    row: { actor, ...row },
  });
  const invitation = { action: "invitation:created", actor };
  return [
    {
      ...{ route: "POST /v1/invitation", path: "/v1/invitation", headers: device, body: { expiresAt: ahead(600) } },
      row: { action: "invitation:created", actor: DEVICE },
    },
    {
      ...{ route: "POST /v1/invitations", path: "/v1/invitations", headers: server },
      body: { invitations: [{ expiresAt: ahead(600), userId: "eve" }, { expiresAt: ahead(600) }] },
      row: [invitation, { ...invitation, userId: "eve" }],
    },
    {
      ...{ route: "PATCH /v1/invitation/{id}/revoke", path: `/v1/invitation/${revoked.id}/revoke`, headers: server },
      row: { action: "invitation:revoked", actor, badgeId: revoked.badgeId },
    },
    {
      ...{ route: "POST /v1/badge", path: "/v1/badge", headers: { applicationid: application.id, udid: "tablet" } },
      body: { userId: "bob", invitationToken: claimed.id },
      row: { action: "badge:created", actor: DEVICE, badgeId: claimed.badgeId, userId: "bob" },
    },
    step("/suspend", "badge:suspended"),
    step("/resume", "badge:resumed"),
    step("", "badge:rescheduled", { expiresAt: ahead(600) }),
    step("/rebind", "badge:rebound"),
    step("/revoke", "badge:revoked"),
    ofUser("block", { action: "user:blocked", userId: "ada", reason: "because" }),
    ofUser("unblock", { action: "user:unblocked", userId: "ada", reason: "because" }),
    ofUser("erase", { action: "user:erased", userId: expect.stringMatching(/^erased:/) }),
    {
      ...{ route: "POST /v1/events/{id}/replay", path: `/v1/events/${event}/replay`, headers: server },
      row: { action: "event:replayed", actor },
    },
  ];
}

/** The events of contract section 18 are in no test of history: the application subscribes to none of these. */
const QUIET = { webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1 };

describe("who did what (contract section 23)", () => {
  it("has exactly one row for each change, from every route that changes something", async () => {
    const application = await createApplication(QUIET);
    await issue(application, "first", "carol");
    const { body } = await call("GET", "/v1/events", { headers: serverHeaders(application) });
    const event = Array.isArray(body.events) ? String(body.events[0]?.id) : "";
    const changes = await changesOf(application, event);
    for (const { route, path, body: sent, headers = {}, row } of changes) {
      const before = await historyOf(application);
      const requestId = crypto.randomUUID();
      const method = route.split(" ")[0] ?? "";
      const answer = await call(method, path, { headers: { ...headers, "x-request-id": requestId }, body: sent ?? {} });
      expect(answer.status, `${route}: ${JSON.stringify(answer.body)}`).toBeLessThan(300);
      const rows = await historyOf(application);
      const expected = [row].flat().map((each) => ({ at: expect.any(String), requestId, ...each }));
      expect(rows.slice(0, rows.length - before.length), route).toMatchObject(expected);
    }
    const routes = Object.entries(openApiDocument(Date.now()).paths).flatMap(([path, item]) => [
      ...(item.post ? [`POST ${path}`] : []),
      ...(item.patch ? [`PATCH ${path}`] : []),
    ]);
    expect([...changes.map(({ route }) => route), ...ELSEWHERE].sort()).toEqual(routes.sort());
  });

  it("has no row for logins, signatures, badges without an invitation, and calls that change nothing", async () => {
    const application = await createApplication();
    const badgeId = await issue(application, "phone", "ada");
    await requestBadge(application, "phone", { userId: "ada", metadata: { os: "iOS" } });
    for (const path of [`/v1/badges/${badgeId}/resume`, "/v1/users/ada/unblock", "/v1/badges/17/suspend"]) {
      await call("PATCH", path, { headers: serverHeaders(application) });
    }
    expect(await historyOf(application)).toEqual([]);
    const badge = await call("GET", `/v1/badges/${badgeId}`, { headers: serverHeaders(application) });
    expect(badge.body).toMatchObject({ issuedAt: expect.any(String), changedAt: expect.any(String) });
  });

  it("names the person of a console secret, whatever `actor` says, and the clock", async () => {
    const application = await createApplication();
    const badgeId = await issue(application, "phone", "ada");
    const person = { ...(await signIn(application, "Bea")), actor: "Ann" };
    const soon = new Date(Date.now() + 1000).toISOString();
    await call("PATCH", `/v1/badges/${badgeId}`, { headers: person, body: { expiresAt: soon } });
    await scheduler.wait(1100);
    await sweep([testContext().context]);
    expect(await historyOf(application)).toMatchObject([
      { action: "badge:expired", actor: { kind: "service" }, badgeId },
      { action: "badge:rescheduled", actor: { kind: "person", name: "Bea" }, badgeId },
    ]);
  });

  it("has the end or return of a badge that another end brings about, besides that it was rescheduled", async () => {
    const application = await createApplication();
    const badgeId = await issue(application, "phone", "ada");
    for (const expiresAt of ["2020-01-01T00:00:00Z", null]) {
      await call("PATCH", `/v1/badges/${badgeId}`, { headers: serverHeaders(application), body: { expiresAt } });
    }
    const actor = { kind: "server" };
    expect(await historyOf(application)).toMatchObject([
      { action: "badge:resumed", actor, badgeId },
      { action: "badge:rescheduled", actor, badgeId, detail: { expiresAt: null } },
      { action: "badge:expired", actor, badgeId },
      { action: "badge:rescheduled", actor, badgeId, detail: { expiresAt: "2020-01-01T00:00:00.000Z" } },
    ]);
  });

  it("has the reason of a PATCH, of 1 to 500 characters", async () => {
    const application = await createApplication();
    const badgeId = await issue(application, "phone", "ada");
    const suspend = (reason: unknown) =>
      call("PATCH", `/v1/badges/${badgeId}/suspend`, { headers: serverHeaders(application), body: { reason } });
    for (const wrong of ["x".repeat(501), 17]) expect((await suspend(wrong)).status).toBe(400);
    expect((await suspend("ä".repeat(500))).status).toBe(200);
    expect(await historyOf(application)).toMatchObject([{ reason: "ä".repeat(500) }]);
  });

  it("is filtered by badge and by user, and paged newest first without gaps", async () => {
    const application = await createApplication();
    const [ada, bob] = [await issue(application, "phone", "ada"), await issue(application, "tablet", "bob")];
    for (const badgeId of [ada, bob, ada]) {
      for (const step of ["suspend", "resume"]) {
        await call("PATCH", `/v1/badges/${badgeId}/${step}`, { headers: serverHeaders(application) });
      }
    }
    await call("PATCH", "/v1/users/ada/block", { headers: serverHeaders(application) });
    const all = await historyOf(application);
    expect(all).toHaveLength(8);
    const badgeOf = (rows: readonly Record<string, unknown>[]) => rows.map(({ badgeId }) => badgeId);
    expect(badgeOf(await historyOf(application, `?badge=${bob}`))).toEqual([bob, bob]);
    expect(await historyOf(application, "?user=ada")).toEqual(all.filter(({ userId }) => userId === "ada"));
    expect(await historyOf(application, `?user=bob&badge=${ada}`)).toEqual([]);
    expect(await historyOf(application, `?user=bob&badge=${bob}`)).toHaveLength(2);
    const found: Record<string, unknown>[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: Awaited<ReturnType<typeof pageOf>> = await pageOf(
        application,
        `?per_page=3${cursor && `&cursor=${cursor}`}`,
      );
      expect(page.rows.length).toBeLessThanOrEqual(3);
      found.push(...page.rows);
      cursor = page.headers.get("pagination-cursor");
    }
    expect(found).toEqual(all);
    expect(await historyOf(await createApplication())).toEqual([]);
  });
});
