import { describe, expect, it, vi } from "vitest";
import { base64Url } from "../../src/shared/identifiers.ts";
import { Allocator } from "../../src/worker/allocator/allocator.ts";
import { Engine } from "../../src/worker/allocator/engine.ts";
import { recordAttempts } from "../../src/worker/storage/webhook-attempts.ts";
import { leaseEvents } from "../../src/worker/storage/webhook-events.ts";
import { ENTRY, expectInSync, fillBadges, putCommand, resultOf } from "../allocator/support.ts";
import { aroundObjectD1, ring, takeOver, wake } from "../support/allocator.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { billOf } from "../support/bill.ts";
import { ahead, HOUR } from "../support/clock.ts";
import { testContext } from "../support/context.ts";
import { isAbout } from "../support/faults.ts";
import { homeDatabase, runSql } from "../support/home.ts";
import { type Answer, call, outcome, requestBadge, serverHeaders, sign } from "../support/http.ts";
import { restore, type Snapshot, takeSnapshot } from "../support/restoration.ts";
import { everythingStored } from "../support/stored.ts";

const USER = "ada.lovelace@example.com";
const NAME = "Ada Lovelace";
const MODEL = "Analytical Engine";
const REASON = "lost in the Difference Engine";

const asServer = (application: TestApplication, method: string, path: string, body?: object): Promise<Answer> =>
  call(method, path, { headers: { ...serverHeaders(application), udid: "reception" }, ...(body && { body }) });

const erase = (application: TestApplication, userId = USER): Promise<Answer> =>
  asServer(application, "PATCH", `/v1/users/${encodeURIComponent(userId)}/erase`, { reason: `${NAME} has left` });

/** An application that tells and keeps all it can of one person: badges in several states, invitations, a block, events. */
async function remember() {
  const events = "badge:created,badge:suspended,badge:revoked,badge:replaced,invitation:revoked,invitation:expired";
  const application = await createApplication({ webhookUrl: "https://hooks.example/x", webhookHeldAt: 1, events });
  const invitation = { expiresAt: ahead(HOUR), name: NAME, userId: USER };
  const invite = async () => (await asServer(application, "POST", "/v1/invitation", invitation)).body;
  const metadata = { deviceModel: MODEL };
  const [visited, pending, revoked] = [await invite(), await invite(), await invite()];
  const plain = await requestBadge(application, "phone", { userId: USER, metadata });
  const claim = { userId: USER, metadata, invitationToken: visited.id };
  expect((await requestBadge(application, "phone", claim)).status).toBe(201);
  const tablet = await requestBadge(application, "tablet", { userId: USER, metadata });
  expect(
    (await asServer(application, "PATCH", `/v1/badges/${tablet.body.badgeId}/suspend`, { reason: REASON })).status,
  ).toBe(200);
  expect((await asServer(application, "PATCH", `/v1/invitation/${revoked.id}/revoke`)).status).toBe(200);
  const numbers = [plain.body, tablet.body, visited].map(({ badgeId }) => String(badgeId));
  return { application, numbers, pending: pending.id };
}

/** Tables of D1 in which a text stands, for each of these texts. */
async function tablesWithEach(...texts: string[]): Promise<string[][]> {
  const stored = Object.entries(await everythingStored([])).map(
    ([name, rows]) => [name, JSON.stringify(rows)] as const,
  );
  return texts.map((text) => stored.flatMap(([name, rows]) => (rows.includes(text) ? [name] : [])));
}

/** Rows of history. @param reason in SQL, by the place `n` of each row, from 1 on, and by values from `?3` on */
const fillHistory = ({ id }: TestApplication, rows: number, reason: string, ...values: unknown[]) =>
  runSql(
    `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?2)
     INSERT INTO history (application_id, id, at, action, actor_kind, user_id, reason)
     SELECT ?1, 'his_' || printf('%026d', n), 1, 'user:unblocked', 'server', 'bob', ${reason} FROM place`,
    ...[id, rows, ...values],
  );

const tablesWith = async (text: string): Promise<string[]> => (await tablesWithEach(text)).flat();

describe("a person who is erased (contract section 24)", () => {
  it("an erasure leaves nothing of the person in any table, and keeps the revoked badges' numbers, changes and history", async () => {
    const { application, numbers, pending } = await remember();
    const before = await tablesWithEach(USER, NAME, MODEL, REASON);
    expect(before.map((tables) => tables.length > 0)).toEqual([true, true, true, true]);
    const { status, body } = await erase(application);
    expect([status, body]).toEqual([200, { userId: expect.stringMatching(/^erased:.{10,}/), erased: 3 }]);
    expect(await tablesWithEach(USER, NAME, MODEL, REASON)).toEqual([[], [], [], []]);
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
    // Nobody claims the invitation, not even by the alias that its token's holder learns.
    const claim = { userId: body.userId, invitationToken: pending };
    expect(outcome(await requestBadge(application, "phone", claim))).toBe("403 WRONG_USER");
    const again = await requestBadge(application, "tablet", { userId: USER });
    expect(again.status).toBe(201);
    expect(numbers).not.toContain(again.body.badgeId);
    expect((await erase(application)).body.erased).toBe(1);
    // Repeated, or of somebody whom nobody knows.
    for (const userId of [USER, "nobody"]) {
      expect(await erase(application, userId)).toMatchObject({ status: 200, body: { erased: 0 } });
    }
  });

  it.each([
    ["right after it", 50, false],
    ["and more was logged since", HOUR, true],
  ])("an erasure reaches an event that a fast clock dated in the future: %s", async (_, milliseconds, hasNewer) => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/x", webhookHeldAt: 1 });
    const user = `${crypto.randomUUID()}@example.com`;
    const reason = `asked by ${user}`;
    const { body: colleague } = await requestBadge(application, "colleague", { userId: "bob" });
    const now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: now + milliseconds });
    await requestBadge(application, "phone", { userId: user, metadata: { deviceModel: MODEL } });
    await asServer(application, "PATCH", `/v1/badges/${colleague.badgeId}/suspend`, { reason });
    vi.setSystemTime(now);
    if (hasNewer) await requestBadge(application, "phone", { userId: "carol" });
    expect((await erase(application, user)).body.erased).toBe(1);
    vi.useRealTimers();
    expect(await tablesWith(user)).toEqual([]);
  });

  it("a user who comes back keeps the events of the new badge, even if D1 is searched again after a clock was fast", async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/x", webhookHeldAt: 1 });
    const user = `${crypto.randomUUID()}@example.com`;
    const metadata = { deviceModel: MODEL };
    const now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: now + HOUR });
    await requestBadge(application, "phone", { userId: user, metadata });
    vi.setSystemTime(now);
    await requestBadge(application, "phone", { userId: "carol" });
    const before = await takeSnapshot(application);
    expect((await erase(application, user)).body.erased).toBe(1);
    const { body } = await requestBadge(application, "phone", { userId: user, metadata });
    vi.useRealTimers();
    await restore(application, before);
    await wake(application, true);
    await ring(application);
    await ring(application);
    const stored = "SELECT payload ->> '$.data' AS data FROM webhook_event WHERE application_id = ?1 ORDER BY id";
    const { results } = await homeDatabase().prepare(stored).bind(application.id).all<{ data: string }>();
    const theirs = { id: body.badgeId, userId: user, metadata };
    expect(results.map(({ data }) => JSON.parse(data)).filter(({ userId }) => userId === user)).toEqual([theirs]);
    expect(results.length).toBe(3);
  });

  it("an erasure puts the alias into actors' names and reasons, also of the moment before, and other words, users and applications stay", async () => {
    const reasons = [
      `${USER}, who asked, is back`,
      `as (${USER}) says, or ${USER}`,
      `of x${USER}, é${USER}, ${USER}.uk, no-${USER} and ${USER.replace(".com", "-com")}`,
    ];
    const [{ application }, other] = [await remember(), await remember()];
    const metadata = { os: "iOS" };
    const { body } = await requestBadge(application, "colleague", { userId: "bob", metadata });
    const step = (name: string, reason: string, actor = `Reception for ${USER}`) =>
      call("PATCH", `/v1/badges/${body.badgeId}/${name}`, {
        headers: { ...serverHeaders(application), actor: encodeURIComponent(actor) },
        body: { reason },
      });
    for (const [place, reason] of reasons.entries()) await step(place % 2 ? "resume" : "suspend", reason);
    await step("resume", "because", USER);
    const erased = await erase(application);
    const alias = String(erased.body.userId);
    const { body: page } = await asServer(application, "GET", `/v1/history?badge=${body.badgeId}`);
    const named = { kind: "server", name: `Reception for ${alias}` };
    expect(page.history).toMatchObject([
      { action: "badge:resumed", actor: { kind: "server", name: alias } },
      { actor: named, reason: reasons[2] },
      { actor: named, reason: `as (${alias}) says, or ${alias}` },
      { actor: named, reason: `${alias}, who asked, is back` },
    ]);
    // What the person did has no reason any more.
    expect(JSON.stringify(page.history)).not.toContain("because");
    const { body: list } = await asServer(application, "GET", "/v1/users/bob/badges");
    expect(list.badges).toMatchObject([{ userId: "bob", metadata }]);
    const { body: others } = await asServer(other.application, "GET", "/v1/history?action=badge:suspended");
    expect(others.history).toMatchObject([{ userId: USER, reason: REASON }]);
  });

  it("a visitor invited by name only is erased with the invitation, or after a claim with the user, and another one stays", async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/x", webhookHeldAt: 1 });
    const [pending, claimed, kept] = ["pending", "claimed", "kept"].map((who) => `${who} ${crypto.randomUUID()}`);
    const ask = async (name: string | undefined) =>
      (await asServer(application, "POST", "/v1/invitation", { expiresAt: ahead(HOUR), name })).body;
    const [first, second] = [await ask(pending), await ask(claimed), await ask(kept)];
    const user = `visitor-${crypto.randomUUID()}`;
    const claim = { userId: user, invitationToken: second.id };
    expect((await requestBadge(application, "phone", claim)).status).toBe(201);
    const erased = await asServer(application, "PATCH", `/v1/invitation/${first.badgeId}/erase`);
    expect([erased.status, erased.body]).toEqual([200, { badgeId: first.badgeId }]);
    expect((await erase(application, user)).body.erased).toBe(1);
    expect(await tablesWithEach(String(pending), String(claimed), user)).toEqual([[], [], []]);
    expect(await tablesWith(String(kept))).toEqual(["invitation"]);
    const { body } = await asServer(application, "GET", "/v1/invitations?state=claimed");
    expect(body.invitations).toMatchObject([{ badgeId: second.badgeId, userId: expect.stringMatching(/^erased:/) }]);
  });

  it("commands of the script do not name a person whom they erase, or who gave them, or whom one that was given up names", async () => {
    const application = await createApplication();
    const { body } = await requestBadge(application, "phone", { userId: "bob" });
    const [user, other] = [crypto.randomUUID(), crypto.randomUUID()];
    await requestBadge(application, "tablet", { userId: user });
    await putCommand(application, { kind: "block", userId: user });
    await runSql("UPDATE script_command SET created_at = created_at - 7200000 WHERE recipient = ?", application.id);
    for (const name of [user, other]) {
      await putCommand(application, { kind: "suspend", number: Number(body.badgeId) }, name);
    }
    await wake(application);
    expect(await tablesWith(user)).toContain("script_command");
    const command = await putCommand(application, { kind: "erase", userId: user });
    await wake(application);
    const erased = { kind: "erased", userId: expect.stringMatching(/^erased:/), erased: 1 };
    expect(await resultOf(command)).toEqual(erased);
    expect(await tablesWith(user)).toEqual([]);
    expect(await tablesWith(other)).toContain("script_command");
  });

  it("a block outlives the erasure, and that of the alias, under a keyed digest, and is lifted by the plain ID", async () => {
    const application = await createApplication();
    const user = `${crypto.randomUUID()}@example.com`;
    const path = `/v1/users/${encodeURIComponent(user)}`;
    expect((await asServer(application, "PATCH", `${path}/block`)).status).toBe(200);
    const { body: first } = await erase(application, user);
    const { body } = await erase(application, String(first.userId));
    const login = async (udid: string) => outcome(await requestBadge(application, udid, { userId: user }));
    expect(await login("phone")).toBe("403 BLOCKED_USER");
    expect((await asServer(application, "GET", path)).body).toEqual({ userId: user, blocked: true });
    expect((await asServer(application, "GET", "/v1/users?state=blocked")).body.users).toMatchObject([
      { userId: body.userId },
    ]);
    const stored = JSON.stringify(
      Object.entries(await everythingStored([application])).filter(([name]) => !name.startsWith("entry")),
    );
    const plain = base64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(user))));
    expect([user, plain].filter((text) => stored.includes(text))).toEqual([]);
    expect(stored).toContain(String(body.userId));
    expect((await asServer(application, "PATCH", `${path}/unblock`)).status).toBe(200);
    expect(await login("phone")).toBe("201");
  });
});

describe("a person who was erased, and a fault (contract sections 21 and 24)", () => {
  /** A person in an event of their own and in a reason of somebody else's badge. */
  async function mention() {
    const application = await createApplication({ webhookUrl: "https://hooks.example/x", webhookHeldAt: 1 });
    const user = crypto.randomUUID();
    await requestBadge(application, "phone", { userId: user });
    const { body } = await requestBadge(application, "other", { userId: "bob" });
    await asServer(application, "PATCH", `/v1/badges/${body.badgeId}/suspend`, { reason: `for ${user}` });
    expect((await tablesWith(user)).toSorted()).toEqual(["badge", "history", "webhook_event"]);
    return { application, user };
  }

  it("nothing names the person after D1 is restored to before the erasure", async () => {
    const { application, user } = await mention();
    const snapshot = await takeSnapshot(application);
    await erase(application, user);
    await restore(application, snapshot);
    await wake(application, true);
    expect(await tablesWith(user)).toEqual([]);
    await expectInSync(application);
  });

  it("the alarm finishes an erasure when the allocator ends while events are looked through", async () => {
    const { application, user } = await mention();
    let hasEnded = false;
    await aroundObjectD1(application, (state) => async (statements, send) => {
      if (hasEnded || !isAbout(statements, "UPDATE webhook_event")) return send();
      hasEnded = true;
      await state.storage.sync();
      state.abort("the allocator ends");
      return new Promise(() => {});
    });
    // The next instance finds the result in the log, and the caller need not wait for the rest.
    expect((await erase(application, user)).status).toBe(200);
    for (let alarms = 0; alarms < 3; alarms++) await ring(application);
    expect(hasEnded).toBe(true);
    expect(await tablesWith(user)).toEqual([]);
  });

  it.each([
    ["during the search", 503],
    ["after the search", 200],
  ])(
    "nothing names the person after D1 is restored %s with a row that had been deleted before it",
    async (moment, status) => {
      const { application, user } = await mention();
      await fillHistory(application, 500, "?3", `for ${user}`);
      let snapshot: Snapshot | undefined;
      let isRestored = false;
      await aroundObjectD1(application, () => async (statements, send) => {
        if (!snapshot && isAbout(statements, "UPDATE webhook_event")) {
          snapshot = await takeSnapshot(application);
          await runSql("DELETE FROM history WHERE id = ?1", `his_${"1".padStart(26, "0")}`);
        }
        const result = await send();
        if (moment === "during the search" && snapshot && !isRestored && isAbout(statements, "UPDATE history")) {
          isRestored = true;
          await restore(application, snapshot);
        }
        return result;
      });
      expect((await erase(application, user)).status).toBe(status);
      if (snapshot && !isRestored) await restore(application, snapshot);
      await wake(application, true);
      for (let alarms = 0; alarms < 3; alarms++) await ring(application);
      expect(await tablesWith(user)).toEqual([]);
      await expectInSync(application);
    },
  );
});

describe("erasing a person whom much names (contract section 24)", () => {
  it.each([
    ["1,000 rows in which the ID is only a part of words", 1000, "s"],
    ["as many rows as one entry removes the person from", 200, ""],
  ])("a person is found behind %s", async (_, rows, ending) => {
    const application = await createApplication();
    const user = crypto.randomUUID();
    await fillHistory(application, rows + 1, "iif(n < ?2, ?3, ?4)", `for ${user}${ending}`, `for ${user}`);
    const { body } = await erase(application, user);
    const last = "SELECT reason FROM history WHERE application_id = ?1 AND id = ?2";
    const { results } = await runSql(last, application.id, `his_${String(rows + 1).padStart(26, "0")}`);
    expect(results).toEqual([{ reason: `for ${String(body.userId)}` }]);
  });

  it("erasing a person whom much names takes several entries, then looks through events and history in chunks, and delays others' calls by two of them at most", {
    timeout: 60_000,
  }, async () => {
    const application = await createApplication();
    const [user, name] = [`user ${crypto.randomUUID()}`, `name ${crypto.randomUUID()}`];
    const [badges, rows] = [1500, 10_001];
    const columns = { name, metadata: `{"deviceModel":"${name}"}` };
    await fillBadges(application, badges, { userId: user, columns, isTakenOver: false });
    await runSql(
      `WITH RECURSIVE place (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM place WHERE n < ?4)
       INSERT INTO webhook_event (application_id, id, event, payload, state, due_at, created_at)
       SELECT ?1, 'evt_' || printf('%026d', n), 'badge:created',
         json_object('data', json_object('userId', ?2, 'metadata', ?3)), 'delivered', 0, 1 FROM place`,
      ...[application.id, user, name, rows],
    );
    await fillHistory(application, rows, "iif(n % 10000, 'none', ?3)", `for ${user}`);
    await takeOver(application);
    const [entries, chunks]: [number[], number[]] = [[], []];
    let other: Promise<Answer> | undefined;
    const calls = vi.spyOn(Allocator.prototype, "call");
    const chunksBefore: number[] = [];
    await aroundObjectD1(application, () => async (statements, send) => {
      const isChunk = isAbout(statements, "UPDATE webhook_event");
      if (isChunk) {
        other ??= requestBadge(application, "other", { userId: "bob" });
        // The erasure is the first call, and the other one has come.
        while (calls.mock.calls.length < 2) await scheduler.wait(1);
      }
      if (isAbout(statements, "INSERT INTO badge")) chunksBefore.push(chunks.length);
      const result = await send();
      if (isChunk) chunks.push((await billOf(statements, result)).rowsRead);
      else if (isAbout(statements, ENTRY)) {
        entries.push(JSON.stringify(statements.map(({ parameters }) => parameters)).length);
      }
      return result;
    });
    expect(await erase(application, user)).toMatchObject({ status: 200, body: { erased: badges } });
    expect((await other)?.status).toBe(201);
    expect(entries.length).toBeGreaterThan(3);
    expect(Math.max(...entries)).toBeLessThan(400_000);
    expect(chunks).toHaveLength(3);
    expect(Math.max(...chunks)).toBeLessThan(15_000);
    expect(chunksBefore).toEqual([expect.toSatisfy((before: number) => before <= 2)]);
    expect(await tablesWithEach(user, name)).toEqual([[], []]);
    const { body } = await asServer(application, "GET", "/v1/history?per_page=1000");
    expect(JSON.stringify(body).match(/user:erased/g)).toHaveLength(1);
    await expectInSync(application);
  });

  it("an erasure that is repeated while its search goes on joins the search: one alias, and nothing is left in the end", async () => {
    const { application } = await remember();
    const user = crypto.randomUUID();
    await requestBadge(application, "third", { userId: user });
    // So much that the search has not ended when the call is repeated.
    await fillHistory(application, 10_000, "NULL");
    const searched = Promise.withResolvers<void>();
    await aroundObjectD1(application, () => async (statements, send) => {
      // The search begins with a look at where the first chunk of events ends.
      if (isAbout(statements, "from webhook_event") && isAbout(statements, "offset")) await searched.promise;
      return send();
    });
    const submitted = vi.spyOn(Engine.prototype, "submit");
    const step = (name: string) => () => asServer(application, "PATCH", `/v1/users/${user}/${name}`);
    const made: Promise<Answer>[] = [];
    // In between, the history names the user again.
    for (const ask of ["erase", "block", "unblock", "erase"].map(step)) {
      made.push(ask());
      while (submitted.mock.calls.length < made.length) await scheduler.wait(1);
    }
    searched.resolve();
    const [first, , , again] = await Promise.all(made);
    expect(first).toMatchObject({ status: 200, body: { erased: 1 } });
    expect(again).toMatchObject({ status: 200, body: { userId: first?.body.userId, erased: 0 } });
    expect(await tablesWith(user)).toEqual([]);
    await expectInSync(application);
  });

  it("an erasure leaves nothing of the person in the response to an event that was being sent", async () => {
    const { application } = await remember();
    const { db } = testContext().context;
    await runSql("UPDATE application SET webhook_held_at = NULL WHERE id = ?", application.id);
    await runSql("UPDATE webhook_event SET state = 'pending' WHERE application_id = ?", application.id);
    const { results } = await homeDatabase()
      .prepare("SELECT id FROM webhook_event WHERE application_id = ?")
      .bind(application.id)
      .all<{ id: string }>();
    const ids = results.map(({ id }) => ({ applicationId: application.id, eventId: id }));
    const { events, endpoints } = await leaseEvents(db, ids, { now: Date.now(), random: 0 });
    const endpoint = endpoints.get(application.id);
    if (!endpoint || events.length === 0) throw new Error("nothing is claimed");
    await erase(application);
    const attempts = events.map((event) => ({
      ...{ event, status: 500, outcome: "answered", response: event.payload, milliseconds: 1 },
      ...{ state: "exhausted" as const, dueAt: null, deliveredAt: null },
    }));
    await recordAttempts(db, attempts, endpoint, null);
    const { body } = await asServer(application, "GET", "/v1/events?state=exhausted");
    expect(body.events).not.toEqual([]);
    expect(JSON.stringify(body)).not.toMatch(new RegExp(`${USER}|${NAME}|${MODEL}`));
  });
});
