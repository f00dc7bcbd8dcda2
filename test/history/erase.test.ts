import { describe, expect, it } from "vitest";
import { ERASE_CHUNK_HISTORY, ERASE_CHUNK_INVITATIONS, USER_CHUNK_BADGES } from "../../src/shared/limits.ts";
import { recordAttempts } from "../../src/worker/storage/webhook-attempts.ts";
import { claimEvents } from "../../src/worker/storage/webhook-events.ts";
import { ENTRY, putIntoInbox, resultOf, wake } from "../allocator/support.ts";
import { useQuietLog } from "../invitations/support/log.ts";
import { aroundObjectD1 } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { billOf } from "../support/bill.ts";
import { testContext } from "../support/context.ts";
import { isAbout } from "../support/faults.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { type Answer, call, requestBadge, serverHeaders, sign } from "../support/http.ts";
import { everythingStored } from "../support/stored.ts";

useQuietLog();

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
  it("leaves nothing of the person in any table, and keeps the revoked badges' numbers, changes and history", async () => {
    const { application, numbers } = await remember();
    const before = await Promise.all([USER, NAME, MODEL, REASON].map(tablesWith));
    expect(before.map((tables) => tables.length > 0)).toEqual([true, true, true, true]);
    const { status, body } = await erase(application);
    expect([status, body]).toEqual([200, { userId: expect.stringMatching(/^erased:.{10,}/), erased: 3 }]);
    expect(await Promise.all([USER, NAME, MODEL, REASON].map(tablesWith))).toEqual([[], [], [], []]);
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
    expect((await erase(application)).body.erased).toBe(1);
    // Repeated, or of somebody whom nobody knows.
    for (const userId of [USER, "nobody"]) {
      expect(await erase(application, userId)).toMatchObject({ status: 200, body: { erased: 0 } });
    }
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
});

describe("erasing a person whom much names (contract section 24)", () => {
  const BADGES = 3 * USER_CHUNK_BADGES + 1;
  const INVITATIONS = 4 * ERASE_CHUNK_INVITATIONS + 1;
  const HISTORY = 3 * ERASE_CHUNK_HISTORY + 1;

  /** Rows of one user, made by SQLite. */
  async function rememberMuch(columns: Parameters<typeof createApplication>[0] = {}) {
    const application = await createApplication(columns);
    const [user, name] = [`user ${crypto.randomUUID()}`, `name ${crypto.randomUUID()}`];
    const fill = (count: number, insert: string) =>
      homeDatabase()
        .prepare(
          `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ${count}) ${insert}`,
        )
        .bind(application.id, user, name);
    const taken = 7_000_000_000 + application.firstNumber;
    await homeDatabase().batch([
      fill(
        BADGES,
        `INSERT INTO badge (number, application_id, device, user_id, name, metadata, position, turn, issued_at,
           change, changed_at, state, ended_at)
         SELECT ${taken} + n, ?1, 'device ' || n, ?2, ?3, json_object('deviceModel', ?3), n, 1, 1,
           n, 1, iif(n % 2, 'active', 'revoked'), iif(n % 2, NULL, 1)
         FROM place`,
      ),
      fill(
        INVITATIONS,
        `INSERT INTO invitation (digest, application_id, number, state, creator_device, expires_at, expires_at_time, name, user_id,
           created_at)
         SELECT ?1 || n, ?1, n, 'revoked', 'd', '', 1, ?3, ?2, 1 FROM place`,
      ),
      fill(
        HISTORY,
        `INSERT INTO history (application_id, id, at, action, actor_kind, user_id, reason)
         SELECT ?1, 'his_' || printf('%026d', n), 1, 'user:unblocked', 'server', ?2, ?3 FROM place`,
      ),
      homeDatabase()
        .prepare("UPDATE position SET last_position = ?2, last_change = ?2 WHERE application_id = ?1")
        .bind(application.id, BADGES),
    ]);
    const namedIn = () => Promise.all([user, name].map(tablesWith));
    return { application, user, namedIn, last: taken + BADGES - 1 };
  }

  /** @param dieAt before this entry is written, the object ends */
  async function watchEntries(application: TestApplication, dieAt = 0) {
    const entries: { characters: number; rowsRead: number; rowsWritten: number }[] = [];
    let rowsRead = 0;
    await aroundObjectD1(application, (state) => async (statements, send) => {
      const isEntry = isAbout(statements, ENTRY);
      if (isEntry && entries.length + 1 === dieAt) {
        state.abort("the object dies");
        return new Promise(() => {});
      }
      const result = await send();
      const bill = await billOf(statements, result);
      rowsRead += bill.rowsRead;
      if (!isEntry) return result;
      const characters = JSON.stringify(statements.map(({ parameters }) => parameters)).length;
      entries.push({ characters, rowsRead, rowsWritten: bill.rowsWritten });
      rowsRead = 0;
      return result;
    });
    return entries;
  }

  it("takes several entries, none of which grows with the rows, and leaves nothing", { timeout: 60_000 }, async () => {
    const { application, user, namedIn } = await rememberMuch();
    const entries = await watchEntries(application);
    expect(await erase(application, user)).toMatchObject({ status: 200, body: { erased: BADGES } });
    expect(entries).toHaveLength(5);
    for (const { characters, rowsRead, rowsWritten } of entries) {
      expect(characters).toBeLessThan(200_000);
      expect(rowsRead).toBeLessThan(6000);
      expect(rowsWritten).toBeLessThan(8000);
    }
    expect(await namedIn()).toEqual([[], []]);
    const { body } = await asServer(application, "GET", "/v1/history?per_page=1000");
    expect(JSON.stringify(body).match(/user:erased/g)).toHaveLength(1);
  });

  it("leaves nothing of the person in events that come between its entries", { timeout: 60_000 }, async () => {
    const webhook = { webhookUrl: "https://hooks.example/x", webhookHeldAt: 1, events: "badge:suspended" };
    const { application, user, namedIn, last } = await rememberMuch(webhook);
    let suspended: Promise<Answer> | undefined;
    await aroundObjectD1(application, () => async (statements, send) => {
      const result = await send();
      if (isAbout(statements, ENTRY)) suspended ??= asServer(application, "PATCH", `/v1/badges/${last}/suspend`);
      return result;
    });
    expect((await erase(application, user)).body.erased).toBe(BADGES);
    expect(await suspended).toMatchObject({ status: 200, body: { userId: user } });
    expect(await namedIn()).toEqual([[], []]);
  });

  it("leaves nothing of the person in the response to an event that was being sent", async () => {
    const { application } = await remember();
    const { db } = testContext().context;
    await runSql("UPDATE application SET webhook_held_at = NULL WHERE id = ?", application.id);
    await runSql("UPDATE webhook_event SET state = 'pending' WHERE application_id = ?", application.id);
    const { results } = await homeDatabase()
      .prepare("SELECT id FROM webhook_event WHERE application_id = ?")
      .bind(application.id)
      .all<{ id: string }>();
    const ids = results.map(({ id }) => ({ applicationId: application.id, eventId: id }));
    const { events, endpoints } = await claimEvents(db, ids, { now: Date.now(), random: 0 });
    const endpoint = endpoints.get(application.id);
    if (!endpoint || events.length === 0) throw new Error("nothing is claimed");
    await erase(application);
    const made = events.map((claimed) => ({
      claimed,
      endpoint,
      attempt: { status: 500, outcome: "answered", response: claimed.payload, milliseconds: 1 },
      next: { state: "exhausted" } as const,
      health: null,
    }));
    await recordAttempts(db, made);
    const stored = await homeDatabase()
      .prepare("SELECT last_response FROM webhook_event WHERE application_id = ? AND last_status = 500")
      .bind(application.id)
      .all();
    expect(stored.results).toHaveLength(events.length);
    expect(JSON.stringify(stored.results)).not.toMatch(new RegExp(`${USER}|${NAME}|${MODEL}`));
  });

  it("is finished by the repeated call when the process dies between two entries", { timeout: 60_000 }, async () => {
    const { application, user, namedIn } = await rememberMuch();
    await watchEntries(application, 2);
    expect((await erase(application, user)).status).toBe(503);
    expect((await namedIn()).map((tables) => tables.length > 0)).toEqual([true, true]);
    const repeated = await erase(application, user);
    expect(repeated).toMatchObject({ status: 200, body: { erased: BADGES - USER_CHUNK_BADGES } });
    expect(await namedIn()).toEqual([[], []]);
    expect(await erase(application, user)).toMatchObject({ status: 200, body: { erased: 0 } });
    const { body } = await asServer(application, "GET", "/v1/history?per_page=1000");
    expect(JSON.stringify(body)).toContain("user:erased");
  });

  it("is finished by the clock when the script has asked for it", { timeout: 60_000 }, async () => {
    const { application, user, namedIn } = await rememberMuch();
    await watchEntries(application, 2);
    const command = await putIntoInbox(application, { kind: "erase", userId: user });
    await wake(application).catch(() => {});
    expect(await resultOf(command)).toBeNull();
    await wake(application);
    expect(await resultOf(command)).toMatchObject({ kind: "erased" });
    expect(await namedIn()).toEqual([[], []]);
  });
});
