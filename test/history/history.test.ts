import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { issueTo, runSweep } from "../badges/life-support.ts";
import { signIn } from "../http/support/people.ts";
import { ahead, MINUTE, SECOND } from "../invitations/support/clock.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { call, callServer, requestBadge, serverHeaders } from "../support/http.ts";

useQuietLog();

/** Newest first. */
async function historyOf(application: TestApplication): Promise<Record<string, unknown>[]> {
  const { status, body } = await callServer(application, "GET", "/v1/history");
  expect(status).toBe(200);
  return Array.isArray(body.history) ? body.history : [];
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
  const badgeId = await issueTo(application, "phone", "ada");
  const device = { applicationid: application.id, udid: "visitor" };
  const server = { ...serverHeaders(application), udid: "reception", actor: "Ann%20Lee" };
  const actor = { kind: "server", name: "Ann Lee" };
  const invite = async () => {
    const { body } = await call("POST", "/v1/invitation", { headers: device, body: { expiresAt: ahead(10 * MINUTE) } });
    return { id: String(body.id), badgeId: String(body.badgeId) };
  };
  const [claimed, revoked, erased] = [await invite(), await invite(), await invite()];
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
      ...{
        route: "POST /v1/invitation",
        path: "/v1/invitation",
        headers: device,
        body: { expiresAt: ahead(10 * MINUTE) },
      },
      row: { action: "invitation:created", actor: DEVICE },
    },
    {
      ...{ route: "POST /v1/invitations", path: "/v1/invitations", headers: server },
      body: { invitations: [{ expiresAt: ahead(10 * MINUTE), userId: "eve" }, { expiresAt: ahead(10 * MINUTE) }] },
      row: [invitation, { ...invitation, userId: "eve" }],
    },
    {
      ...{ route: "PATCH /v1/invitation/{id}/revoke", path: `/v1/invitation/${revoked.id}/revoke`, headers: server },
      row: { action: "invitation:revoked", actor, badgeId: revoked.badgeId },
    },
    {
      ...{ route: "PATCH /v1/invitation/{id}/erase", path: `/v1/invitation/${erased.id}/erase`, headers: server },
      row: { action: "invitation:revoked", actor, badgeId: erased.badgeId },
    },
    {
      ...{ route: "POST /v1/badge", path: "/v1/badge", headers: { applicationid: application.id, udid: "tablet" } },
      body: { userId: "bob", invitationToken: claimed.id },
      row: { action: "badge:created", actor: DEVICE, badgeId: claimed.badgeId, userId: "bob" },
    },
    step("/suspend", "badge:suspended"),
    step("/resume", "badge:resumed"),
    step("", "badge:rescheduled", { expiresAt: ahead(10 * MINUTE) }),
    step("/rebind", "badge:rebound"),
    step("/revoke", "badge:revoked"),
    ofUser("block", { action: "user:blocked", userId: "ada", reason: "because" }),
    ofUser("unblock", { action: "user:unblocked", userId: "ada", reason: "because" }),
    ofUser("erase", { action: "user:erased", userId: expect.stringMatching(/^erased:/) }),
    {
      ...{ route: "POST /v1/events/{id}/replay", path: `/v1/events/${event}/replay`, headers: server },
      row: { action: "event:replayed", actor, detail: { eventId: event } },
    },
  ];
}

/** The events of contract section 18 are in no test of history: the application subscribes to none of these. */
const QUIET = { webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1 };

describe("who did what (contract section 23)", () => {
  it("the history has exactly one row for each change, from every route that changes something", async () => {
    const application = await createApplication(QUIET);
    await issueTo(application, "first", "carol");
    const { body } = await callServer(application, "GET", "/v1/events");
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
      // A reason might name the person (contract section 24).
      if (route === "PATCH /v1/users/{id}/erase") expect(rows[0]).not.toHaveProperty("reason");
    }
    const routes = Object.entries(openApiDocument(Date.now()).paths).flatMap(([path, item]) => [
      ...(item.post ? [`POST ${path}`] : []),
      ...(item.patch ? [`PATCH ${path}`] : []),
    ]);
    expect([...changes.map(({ route }) => route), ...ELSEWHERE].sort()).toEqual(routes.sort());
  });

  it("the history has no row for logins, signatures, badges without an invitation, and calls that change nothing", async () => {
    const application = await createApplication();
    const badgeId = await issueTo(application, "phone", "ada");
    await requestBadge(application, "phone", { userId: "ada", metadata: { os: "iOS" } });
    for (const path of [`/v1/badges/${badgeId}/resume`, "/v1/users/ada/unblock", "/v1/badges/17/suspend"]) {
      await callServer(application, "PATCH", path);
    }
    expect(await historyOf(application)).toEqual([]);
    const badge = await callServer(application, "GET", `/v1/badges/${badgeId}`);
    expect(badge.body).toMatchObject({ issuedAt: expect.any(String), changedAt: expect.any(String) });
  });

  it("the history names the person of a console secret despite an `actor` header, and the service for expiries", async () => {
    const application = await createApplication();
    const badgeId = await issueTo(application, "phone", "ada");
    const person = { ...(await signIn(application, "operator")), actor: "Ann" };
    await call("PATCH", `/v1/badges/${badgeId}`, { headers: person, body: { expiresAt: ahead(SECOND) } });
    vi.setSystemTime(Date.now() + SECOND);
    onTestFinished(() => void vi.useRealTimers());
    await runSweep();
    const name = expect.stringMatching(/^The operator /);
    expect(await historyOf(application)).toMatchObject([
      { action: "badge:expired", actor: { kind: "service" }, badgeId },
      { action: "badge:rescheduled", actor: { kind: "person", name }, badgeId },
    ]);
  });

  it("the history has both the rescheduling of a badge and the expiry or return that it causes", async () => {
    const application = await createApplication();
    const badgeId = await issueTo(application, "phone", "ada");
    const startsAt = "2019-01-01T00:00:00.000Z";
    for (const times of [{ startsAt, expiresAt: "2020-01-01T00:00:00Z" }, { expiresAt: null }]) {
      await callServer(application, "PATCH", `/v1/badges/${badgeId}`, times);
    }
    const actor = { kind: "server" };
    expect(await historyOf(application)).toMatchObject([
      { action: "badge:resumed", actor, badgeId },
      { action: "badge:rescheduled", actor, badgeId, detail: { startsAt, expiresAt: null } },
      { action: "badge:expired", actor, badgeId },
      { action: "badge:rescheduled", actor, badgeId, detail: { startsAt, expiresAt: "2020-01-01T00:00:00.000Z" } },
    ]);
  });

  it("the history has the reason of a PATCH, of 1 to 500 characters", async () => {
    const application = await createApplication();
    const badgeId = await issueTo(application, "phone", "ada");
    const suspend = (reason: unknown) => callServer(application, "PATCH", `/v1/badges/${badgeId}/suspend`, { reason });
    for (const wrong of ["x".repeat(501), 17]) expect((await suspend(wrong)).status).toBe(400);
    expect((await suspend("ä".repeat(500))).status).toBe(200);
    expect(await historyOf(application)).toMatchObject([{ reason: "ä".repeat(500) }]);
  });
});
