import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openApiDocument } from "../../src/docs-page/openapi/document.ts";
import { issueTo } from "../badges/life-support.ts";
import { signIn } from "../http/support/people.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { ahead, MINUTE, SECOND } from "../support/clock.ts";
import { call, callServer, requestBadge, serverHeaders } from "../support/http.ts";
import { RECORDED_EVENTS } from "../support/rows.ts";
import { sweep } from "../support/sweep.ts";

/** Newest first. */
async function historyOf(application: TestApplication): Promise<Record<string, unknown>[]> {
  const { status, body } = await callServer(application, "GET", "/v1/history");
  expect(status).toBe(200);
  return Array.isArray(body.history) ? body.history : [];
}

/** A call that changes something by its route, and the row that history has of it. */
interface Change {
  route: string;
  id?: string;
  body?: object;
  headers?: Record<string, string>;
  row: Record<string, unknown> | Record<string, unknown>[];
}

/** Routes whose calls history does not have, or that need an identity provider (test/users). */
const ELSEWHERE = ["POST /v1/badge/sign", "PATCH /v1/user/badges/{id}/suspend"];

/** Every call that changes something, in an order in which each is granted. */
async function changesOf(application: TestApplication, eventId: string): Promise<Change[]> {
  const badgeId = await issueTo(application, "phone", "ada");
  const device = { applicationid: application.id, udid: "visitor" };
  const body = { expiresAt: ahead(10 * MINUTE) };
  const actor = { kind: "server", name: "Ann Lee" };
  const invite = async () => {
    const made = await call("POST", "/v1/invitation", { headers: device, body });
    return { id: String(made.body.id), badgeId: made.body.badgeId };
  };
  const [claimed, revoked, erased] = [await invite(), await invite(), await invite()];
  const step = (name: string, action: string, more: object = {}): Change => ({
    ...{ route: `PATCH /v1/badges/{id}${name}`, id: badgeId, body: { ...more, reason: "because" } },
    row: { action, actor, badgeId, userId: "ada", reason: "because" },
  });
  const ofUser = (name: string, row: object): Change => ({
    ...{ route: `PATCH /v1/users/{id}/${name}`, id: "ada", body: { reason: "because" }, row: { actor, ...row } },
  });
  const revocation = { action: "invitation:revoked", actor };
  const invitation = { action: "invitation:created", actor };
  return [
    {
      ...{ route: "POST /v1/invitation", headers: device, body },
      row: { ...invitation, actor: { kind: "device" } },
    },
    {
      ...{ route: "POST /v1/invitations", body: { invitations: [{ ...body, userId: "eve" }, body] } },
      row: [invitation, { ...invitation, userId: "eve" }],
    },
    { route: "PATCH /v1/invitation/{id}/revoke", id: revoked.id, row: { ...revocation, badgeId: revoked.badgeId } },
    { route: "PATCH /v1/invitation/{id}/erase", id: erased.id, row: { ...revocation, badgeId: erased.badgeId } },
    {
      ...{ route: "POST /v1/badge", headers: device, body: { userId: "bob", invitationToken: claimed.id } },
      row: { action: "badge:created", actor: { kind: "device" }, badgeId: claimed.badgeId, userId: "bob" },
    },
    step("/suspend", "badge:suspended"),
    step("/resume", "badge:resumed"),
    step("", "badge:rescheduled", body),
    step("/rebind", "badge:rebound"),
    step("/revoke", "badge:revoked"),
    ofUser("block", { action: "user:blocked", userId: "ada", reason: "because" }),
    ofUser("unblock", { action: "user:unblocked", userId: "ada", reason: "because" }),
    ofUser("erase", { action: "user:erased", userId: expect.stringMatching(/^erased:/) }),
    {
      route: "POST /v1/events/{id}/replay",
      id: eventId,
      row: { action: "event:replayed", actor, detail: { eventId } },
    },
  ];
}

describe("who did what (contract section 23)", () => {
  it("the history has exactly one row for each change, from every route that changes something", async () => {
    const application = await createApplication(RECORDED_EVENTS);
    await issueTo(application, "first", "carol");
    const { body } = await callServer(application, "GET", "/v1/events");
    const event = Array.isArray(body.events) ? String(body.events[0]?.id) : "";
    const changes = await changesOf(application, event);
    const server = { ...serverHeaders(application), udid: "reception", actor: "Ann%20Lee" };
    for (const { route, id = "", body: sent = {}, headers = server, row } of changes) {
      const before = await historyOf(application);
      const requestId = crypto.randomUUID();
      const [method = "", path = ""] = route.replace("{id}", id).split(" ");
      const answer = await call(method, path, { headers: { ...headers, "x-request-id": requestId }, body: sent });
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

  it("the history names the person of a console secret despite an `actor` header, with a reason of 1 to 500 characters, and the service for expiries", async () => {
    const application = await createApplication();
    const badgeId = await issueTo(application, "phone", "ada");
    const person = { ...(await signIn(application, "operator")), actor: "Ann" };
    const reschedule = (reason: unknown) =>
      call("PATCH", `/v1/badges/${badgeId}`, { headers: person, body: { expiresAt: ahead(SECOND), reason } });
    for (const wrong of ["x".repeat(501), 17]) expect((await reschedule(wrong)).status).toBe(400);
    expect((await reschedule("ä".repeat(500))).status).toBe(200);
    vi.setSystemTime(Date.now() + SECOND);
    onTestFinished(() => void vi.useRealTimers());
    await sweep();
    const name = expect.stringMatching(/^The operator /);
    expect(await historyOf(application)).toMatchObject([
      { action: "badge:expired", actor: { kind: "service" }, badgeId },
      { action: "badge:rescheduled", actor: { kind: "person", name }, badgeId, reason: "ä".repeat(500) },
    ]);
  });
});
