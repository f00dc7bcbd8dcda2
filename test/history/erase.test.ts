import { beforeEach, describe, expect, it, vi } from "vitest";
import { createApplication, type TestApplication } from "../support/application.ts";
import { homeDatabase } from "../support/home.ts";
import { type Answer, call, requestBadge, serverHeaders, sign } from "../support/http.ts";
import { everythingStored } from "../support/stored.ts";

beforeEach(() => {
  for (const method of ["log", "warn", "error"] as const) vi.spyOn(console, method).mockImplementation(() => {});
});

const USER = "ada.lovelace@example.com";
const NAME = "Ada Lovelace";
const MODEL = "Analytical Engine";
const REASON = "lost in the Difference Engine";

const ahead = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString();

const asServer = (application: TestApplication, method: string, path: string, body?: object): Promise<Answer> =>
  call(method, path, { headers: { ...serverHeaders(application), udid: "reception" }, ...(body && { body }) });

const erase = (application: TestApplication, userId = USER): Promise<Answer> =>
  asServer(application, "PATCH", `/v1/users/${encodeURIComponent(userId)}/erase`, { reason: "asked" });

/** An application that tells and keeps all it can of one person: badges in several states, invitations, a block, events. */
async function remember(): Promise<{ application: TestApplication; numbers: string[] }> {
  const events = "badge:created,badge:suspended,badge:revoked,badge:replaced,invitation:revoked,invitation:expired";
  const application = await createApplication({ webhookUrl: "https://hooks.example/x", webhookHeldAt: 1, events });
  const invite = async (body: object) =>
    (
      await asServer(application, "POST", "/v1/invitation", {
        expiresAt: ahead(600),
        name: NAME,
        userId: USER,
        ...body,
      })
    ).body;
  const metadata = { deviceModel: MODEL };
  const [visited, pending, revoked] = [await invite({}), await invite({}), await invite({})];
  const plain = await requestBadge(application, "phone", { userId: USER, metadata });
  const claim = { userId: USER, metadata, invitationToken: visited.id };
  expect((await requestBadge(application, "phone", claim)).status).toBe(201);
  const tablet = await requestBadge(application, "tablet", { userId: USER, metadata });
  expect(
    (await asServer(application, "PATCH", `/v1/badges/${tablet.body.badgeId}/suspend`, { reason: REASON })).status,
  ).toBe(200);
  expect((await asServer(application, "PATCH", `/v1/invitation/${revoked.id}/revoke`)).status).toBe(200);
  expect(typeof pending.id).toBe("string");
  return {
    application,
    numbers: [plain, tablet].map(({ body }) => String(body.badgeId)).concat(String(visited.badgeId)),
  };
}

/** Tables of D1 in which a text stands. */
async function tablesWith(text: string): Promise<string[]> {
  const stored = await everythingStored([]);
  return Object.entries(stored).flatMap(([name, rows]) => (JSON.stringify(rows).includes(text) ? [name] : []));
}

describe("PATCH /v1/users/{id}/erase (contract section 24)", () => {
  it("leaves nothing of the person in any table of D1", async () => {
    const { application } = await remember();
    const before = await Promise.all([USER, NAME, MODEL, REASON].map(tablesWith));
    expect(before.map((tables) => tables.length > 0)).toEqual([true, true, true, true]);
    expect((await erase(application)).status).toBe(200);
    expect(await Promise.all([USER, NAME, MODEL, REASON].map(tablesWith))).toEqual([[], [], [], []]);
  });

  it("revokes the badges, keeps their numbers taken, and shows in changes and in history", async () => {
    const { application, numbers } = await remember();
    const { body } = await erase(application);
    expect(body).toEqual({ userId: expect.stringMatching(/^erased:.{10,}/), erased: 3 });
    const { body: feed } = await asServer(application, "GET", "/v1/changes");
    const changes: Record<string, unknown>[] = Array.isArray(feed.changes) ? feed.changes : [];
    expect(changes.map(({ id }) => id).toSorted()).toEqual(numbers.toSorted());
    for (const change of changes) {
      expect(change).toMatchObject({ userId: body.userId, state: expect.stringMatching(/^(revoked|replaced)$/) });
      expect(change).not.toHaveProperty("metadata");
      expect(change).not.toHaveProperty("name");
    }
    expect((await sign(application, "tablet", { base64: "AAAA" })).status).toBe(403);
    const { body: page } = await asServer(application, "GET", "/v1/history");
    const rows: Record<string, unknown>[] = Array.isArray(page.history) ? page.history : [];
    expect(rows[0]).toMatchObject({ action: "user:erased", actor: { kind: "server" }, userId: body.userId });
    const again = await requestBadge(application, "tablet", { userId: USER });
    expect(again.status).toBe(201);
    expect(numbers).not.toContain(again.body.badgeId);
  });

  it("is 200 with 0 when it is repeated, and for a user that nobody knows", async () => {
    const { application } = await remember();
    expect((await erase(application)).body.erased).toBe(3);
    expect(await erase(application)).toMatchObject({ status: 200, body: { erased: 0 } });
    expect(await erase(application, "nobody")).toMatchObject({ status: 200, body: { erased: 0 } });
  });

  it("leaves another user and another application as they were", async () => {
    const [{ application }, other] = [await remember(), await remember()];
    expect((await requestBadge(application, "third", { userId: "bob", metadata: { os: "iOS" } })).status).toBe(201);
    await erase(application);
    const { body } = await asServer(application, "GET", "/v1/users/bob/badges");
    expect(body).toMatchObject({ badges: [{ userId: "bob", metadata: { os: "iOS" } }] });
    const { results } = await homeDatabase()
      .prepare("SELECT DISTINCT application_id AS id FROM badge WHERE user_id = ?1 AND application_id IN (?2, ?3)")
      .bind(USER, application.id, other.application.id)
      .all();
    expect(results).toEqual([{ id: other.application.id }]);
  });

  it("erases all badges of a user with forty devices", async () => {
    const application = await createApplication();
    const asked = Array.from({ length: 40 }, (_, place) =>
      requestBadge(application, `phone ${place}`, { userId: USER, metadata: { deviceModel: MODEL.repeat(15) } }),
    );
    expect((await Promise.all(asked)).every(({ status }) => status === 201)).toBe(true);
    expect((await erase(application)).body.erased).toBe(40);
    const { body } = await asServer(application, "GET", `/v1/users/${USER}/badges`);
    expect(body).toEqual({ badges: [] });
  });
});
