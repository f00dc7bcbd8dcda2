import { describe, expect, it } from "vitest";
import { type DeviceClient, isExpiredCursor, isRefusedBadge, type ServerClient } from "../../src/client/index.ts";
import { metadata } from "../../src/shared/requests.ts";
import { verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { signIn } from "../http/support/people.ts";
import { addDoor } from "../live/support.ts";
import { createApplication } from "../support/application.ts";
import { runSql } from "../support/home.ts";
import { collect, device, failureOf, fakeService, inOneHour, server, worker } from "./support.ts";

const TIME = expect.stringMatching(/Z$/);

/** An application with a badge for each of these users, each on a device of its own. */
async function withBadges(...userIds: string[]) {
  const application = await createApplication();
  const badges: { id: string; userId: string }[] = [];
  for (const [index, userId] of userIds.entries()) {
    const { badgeId } = await device(application, `device-${index}`).requestBadge({ userId });
    badges.push({ id: badgeId, userId });
  }
  return { application, badges, ids: badges.map(({ id }) => id), client: server(application) };
}

describe("the device client (contract sections 1 to 3)", () => {
  it("the device client gets a new badge with its metadata and public key, and the same badge after that", async () => {
    const application = await createApplication();
    const phone = device(application, "phone");
    const sent = Object.fromEntries(Object.keys(metadata.shape).map((name) => [name, `some ${name}`]));
    const first = await phone.requestBadge({ userId: "alice", metadata: sent });
    expect(first).toEqual({ created: true, badgeId: expect.stringMatching(/^\d+$/), publicKey: expect.any(String) });
    expect(await phone.requestBadge({ userId: "alice" })).toEqual({ created: false, badgeId: first.badgeId });
    const listed = { id: first.badgeId, userId: "alice", metadata: sent };
    expect(await collect(server(application).listBadges().badges())).toEqual([listed]);
  });

  it("the device client exchanges its signature, as base64 or as raw bytes, for one that a door verifies offline", async () => {
    const application = await createApplication();
    const phone = device(application, "phone");
    const badge = await phone.requestBadge({ userId: "alice" });
    if (!badge.created) throw new Error("the badge is new");
    const bytes = Uint8Array.from({ length: 4096 }, (_, index) => (index * 7) % 256);
    for (const [signed, clientSignature] of [
      ["aGVsbG8=", "aGVsbG8="],
      [bytes, btoa(String.fromCharCode(...bytes))],
    ] as const) {
      const expected = { keys: { publicKey: badge.publicKey }, applicationId: application.id, now: Date.now() };
      const verified = await verifyBadgeSignature(await phone.sign(signed), expected);
      expect(verified).toMatchObject({ ok: true, badgeNumber: badge.badgeId, clientSignature });
    }
  });

  it("the device client tells why a badge is not active, whether it requests the badge or signs (contract section 12)", async () => {
    const { application, client, ids } = await withBadges("alice");
    const phone = device(application, "device-0");
    const reasonOf = async (call: Promise<unknown>) => {
      const error = await failureOf(call);
      return isRefusedBadge(error) && error.code;
    };
    const both = () =>
      Promise.all([phone.requestBadge({ userId: "alice" }), phone.sign("aGVsbG8=")].map((call) => reasonOf(call)));
    await client.suspendBadge(ids[0] ?? "");
    expect(await both()).toEqual(["SUSPENDED_BADGE", "SUSPENDED_BADGE"]);
    await client.setBadgeEnd(ids[0] ?? "", new Date(0));
    expect(await both()).toEqual(["EXPIRED_BADGE", "EXPIRED_BADGE"]);
    expect(await client.blockUser("alice")).toEqual({ userId: "alice", blocked: true, revoked: ids });
    expect(await collect(client.listBlockedUsers().users())).toMatchObject([{ userId: "alice", blocked: true }]);
    expect(await both()).toEqual(["REVOKED_BADGE", "REVOKED_BADGE"]);
    expect(await reasonOf(device(application, "other").requestBadge({ userId: "alice" }))).toBe("BLOCKED_USER");
    expect(await client.unblockUser("alice")).toEqual({ userId: "alice", blocked: false, revoked: [] });
    expect(await client.getUser("alice")).toEqual({ userId: "alice", blocked: false });
    const proxy = fakeService(new Response("<html>", { status: 403 }));
    expect(await reasonOf(device(application, "phone", proxy.options).sign("AA==")), "a proxy's refusal").toBe(false);
  });
});

describe("the server client and badges (contract sections 4, 12 and 13)", () => {
  it("the server client reads, suspends, resumes and revokes a badge, and sets its end to a Date, to a string with a zone, or to none", async () => {
    const { client, ids } = await withBadges("alice");
    const [id = ""] = ids;
    const badge = { id, userId: "alice", issuedAt: TIME, changedAt: TIME, change: expect.any(Number) };
    expect(await client.getBadge(id)).toEqual({ ...badge, state: "active" });
    expect(await client.suspendBadge(id)).toEqual({ ...badge, state: "suspended" });
    expect(await collect(client.listBadges().badges())).toEqual([{ id, userId: "alice", state: "suspended" }]);
    expect(await client.resumeBadge(id)).toEqual({ ...badge, state: "active" });
    const end = inOneHour();
    expect(await client.setBadgeEnd(id, end)).toMatchObject({ state: "active", expiresAt: end.toISOString() });
    const expired = { state: "expired", expiresAt: "2020-01-01T00:00:00.000Z" };
    expect(await client.setBadgeEnd(id, "2020-01-01T01:00:00+01:00")).toMatchObject(expired);
    expect(await client.setBadgeEnd(id, null)).not.toHaveProperty("expiresAt");
    expect(await client.setBadgeTimes(id, { startsAt: end })).toMatchObject({ startsAt: end.toISOString() });
    expect(await client.setBadgeTimes(id, { startsAt: null })).not.toHaveProperty("startsAt");
    expect(await client.revokeBadge(id)).toEqual({ ...badge, state: "revoked" });
    await expect(client.resumeBadge(id)).rejects.toMatchObject({ status: 409, code: "ENDED_BADGE" });
  });

  it("the server client reads a badge's change number also from a tag that a proxy has weakened (contract section 24)", async () => {
    const badge = { id: "7", userId: "alice", state: "active" };
    const { options } = fakeService(Response.json(badge, { headers: { etag: 'W/"5"' } }));
    expect(await server(await createApplication(), options).getBadge("7")).toEqual({ ...badge, change: 5 });
  });

  it("the server client throws instead of calling another path for an ID that cannot be part of one", async () => {
    const { options, requests } = fakeService(Response.json({}));
    const client = server(await createApplication(), options);
    for (const id of [".", "..", "", "\ud800"]) {
      for (const call of [client.revokeBadge(id), client.blockUser(id), client.replayEvent(id)]) {
        await expect(call).rejects.toThrow(RangeError);
      }
    }
    // A caller in JavaScript can leave it undefined, which would list everybody's badges.
    for (const userId of ["..", undefined]) {
      const query: object = { userId };
      expect(() => client.listBadges(query)).toThrow(RangeError);
    }
    expect(requests).toEqual([]);
  });

  it("the server client lists page after page, oldest first, and fetches each only when the iteration reaches it", async () => {
    const { application, badges } = await withBadges("a", "b", "c");
    let fetched = 0;
    const fetch: typeof worker = (url, init) => {
      fetched++;
      return worker(url, init);
    };
    const pages = server(application, { fetch }).listBadges({ perPage: 2 });
    expect(fetched).toBe(0);
    const seen = [];
    for await (const page of pages) {
      seen.push(page.badges);
      expect(fetched).toBe(seen.length);
      expect(page.nextCursor === null).toBe(seen.length === 2);
    }
    expect(seen).toEqual([badges.slice(0, 2), badges.slice(2)]);
    expect(await collect(pages.badges()), "from the beginning each time").toEqual(badges);
  });

  it("the server client lists and finds a user's badges for any characters in the user ID", async () => {
    const strange = "a/b?c=d&e%2F#ü ✓";
    const { client, badges, ids } = await withBadges("a", strange, strange, "z");
    expect(await collect(client.listBadges({ userId: strange, perPage: 1 }).badges())).toEqual(badges.slice(1, 3));
    const [, one = "", other = ""] = ids;
    const found = async (search: Parameters<typeof client.searchBadges>[0]) =>
      (await collect(client.searchBadges({ perPage: 1, ...search }).badges())).map(({ id }) => id);
    expect(await found({ q: "B?C", order: "newest" })).toEqual([other, one]);
    await client.suspendBadge(one);
    expect(await found({ state: "suspended" })).toEqual([one]);
    const end = inOneHour();
    await client.setBadgeEnd(other, end);
    expect(await found({ endsBefore: end })).toEqual([]);
    expect(await found({ endsBefore: new Date(end.getTime() + 1).toISOString() })).toEqual([other]);
    expect(await client.blockUser(strange)).toMatchObject({ userId: strange, blocked: true });
  });

  it("the server client's changes are pages with a cursor to store, from which it continues with what changed since", async () => {
    const { application, client, ids } = await withBadges("alice", "alice", "alice");
    const pages = await collect(client.changes({ perPage: 2 }));
    expect(pages.map(({ changes }) => changes.map(({ id }) => id))).toEqual([ids.slice(0, 2), ids.slice(2)]);
    expect(pages.map(({ more }) => more)).toEqual([true, false]);
    const change = { id: ids[0], userId: "alice", state: "active", issuedAt: TIME, change: 1, changedAt: TIME };
    expect(pages[0]?.changes[0]).toEqual(change);
    await client.suspendBadge(ids[0] ?? "");
    const cursor = pages[1]?.cursor ?? "";
    const [next, ...none] = await collect(client.changes({ cursor }));
    expect(next?.changes).toMatchObject([{ id: ids[0], state: "suspended" }]);
    expect(none).toEqual([]);
    await runSql("UPDATE application_head SET epoch = 'another' WHERE application_id = ?1", application.id);
    const error = await failureOf(collect(client.changes({ cursor })));
    expect(error).toMatchObject({ name: "BadgeServiceError", status: 410, code: "EXPIRED_CURSOR" });
    expect(isExpiredCursor(error)).toBe(true);
    expect(isExpiredCursor(await failureOf(collect(client.changes({ cursor: "x y" }))))).toBe(false);
  });

  it("the server client refuses a page of changes without a cursor, from which nobody could go on", async () => {
    const client = server(await createApplication(), fakeService(Response.json({ changes: [], more: false })).options);
    await expect(collect(client.changes())).rejects.toMatchObject({ status: 200, code: null });
  });
});

describe("the server client, invitations and the application (contract sections 5 and 19)", () => {
  it("the server client creates and revokes invitations, and lists them newest first, all or those in one state", async () => {
    const application = await createApplication({ requireSecret: true });
    const client = server(application);
    const end = inOneHour();
    const [expiresAt, visit] = [end.toISOString(), { expiresAt: end, udid: "desk" }];
    const claimed = await client.createInvitation({ ...visit, badgeExpiresAt: end });
    const request = { userId: "vera", invitationToken: claimed.id };
    const { badgeId } = claimed;
    expect(await device(application, "visitor").requestBadge(request)).toMatchObject({ created: true, badgeId });
    const revoked = await client.createInvitation(visit);
    expect(revoked).toEqual({ id: expect.any(String), badgeId: expect.stringMatching(/^\d+$/), expiresAt });
    expect(await client.revokeInvitation(revoked.id)).toEqual({ ...revoked, revokedAt: TIME });
    const byNumber = await client.createInvitation(visit);
    expect(await client.revokeInvitation(byNumber.badgeId)).toMatchObject({ id: byNumber.badgeId });
    const pages = await collect(client.listInvitations({ perPage: 2 }));
    expect(pages.map(({ nextCursor }) => nextCursor === null)).toEqual([false, true]);
    expect((await collect(client.listInvitations({ perPage: 1 }).invitations())).map(({ state }) => state)).toEqual([
      ...["revoked", "revoked", "claimed"],
    ]);
    expect(await collect(client.listInvitations({ state: "claimed" }).invitations())).toEqual([
      { badgeId, state: "claimed", createdAt: TIME, expiresAt, badgeExpiresAt: expiresAt, userId: "vera" },
    ]);
  });

  it("the server client lists invitations by visit and by name, the history by time, actor and action, who has access, and the doors", async () => {
    const application = await createApplication();
    const client = server(application);
    const [end, udid] = [inOneHour(), "desk"];
    const early = new Date(Date.now() - 1000);
    const visit = { expiresAt: end, udid, name: "Ann Lee", userId: "ann", actor: "Tom" };
    const { badgeId } = await client.createInvitation(visit);
    await client.createInvitation({ expiresAt: end, udid, name: "Bob", badgeStartsAt: early, badgeExpiresAt: end });
    const namesOf = async (query: Parameters<typeof client.listInvitations>[0]) =>
      (await collect(client.listInvitations({ perPage: 1, ...query }).invitations())).map(({ name }) => name);
    expect(await namesOf({ from: early, until: end.toISOString() })).toEqual(["Bob", "Ann Lee"]);
    expect(await namesOf({ from: end })).toEqual([]);
    expect(await namesOf({ q: "LEE" })).toEqual(["Ann Lee"]);
    const countOf = async (query: Parameters<typeof client.listHistory>[0]) =>
      (await collect(client.listHistory({ perPage: 1, ...query }).history())).length;
    expect(await countOf({ since: early, until: end, actor: "Tom", action: "invitation:created" })).toBe(1);
    expect(await countOf({ until: early })).toBe(0);
    for (const query of [{ badgeId }, { userId: "ann" }]) expect(await countOf(query)).toBe(1);
    await signIn(application, "viewer");
    const person = { name: expect.stringContaining("The viewer"), role: "viewer", createdAt: TIME };
    expect(await collect(client.listAccess({ perPage: 1 }).people())).toEqual([person]);
    await addDoor(application, "North");
    const door = { name: "North", createdAt: TIME, isCurrent: false };
    expect(await collect(client.listDoors({ perPage: 1 }).doors())).toEqual([door]);
  });

  it("the server client lists events with their deliveries, and replays one", async () => {
    const application = await createApplication({ webhookUrl: "https://hooks.example/badges", webhookHeldAt: 1 });
    const client = server(application);
    for (const udid of ["a", "b"]) await device(application, udid).requestBadge({ userId: "alice" });
    const events = await collect(client.listEvents({ perPage: 1 }).events());
    expect(events).toHaveLength(2);
    const [event] = events;
    expect(event).toMatchObject({ event: "badge:created", attempts: 0, data: { userId: "alice" } });
    expect(await client.replayEvent(event?.id ?? "")).toEqual({ id: event?.id, state: "held" });
    expect(await collect(client.listEvents({ state: "held" }).events())).toHaveLength(2);
    expect(await collect(client.listEvents({ state: "delivered" }).events())).toEqual([]);
  });

  it("the server client returns the application's settings and its counts", async () => {
    const application = await createApplication({ name: "Main Street 1", size: 10, statusList: true });
    const { id: applicationId, firstNumber, lastNumber } = application;
    await device(application, "phone").requestBadge({ userId: "alice", metadata: { os: "iOS" } });
    expect(await server(application).getApplication()).toEqual({
      ...{ applicationId, name: "Main Street 1", firstNumber, lastNumber, statusList: true, webhookUrl: null },
      ...{ requireSecret: false, requireProof: false },
      // The page for visitors (section 27), at the PUBLIC_URL of wrangler.toml.
      invitationLink: `http://localhost:8787/pass#${applicationId}/{token}`,
    });
    expect(await server(application).getStatistics()).toMatchObject({
      applicationId,
      numbers: { size: 10, issued: 1, left: 9, usedPercent: 10 },
      badges: { os: { values: [{ value: "iOS", badges: 1 }], others: 0 } },
      badgesByState: { active: 1 },
      badgesPerDay: expect.arrayContaining([{ day: expect.any(String), badges: 1 }]),
    });
  });

  const ISSUED = { id: "7", userId: "a", state: "active" };
  const expiresAt = "2026-01-01T00:00:00.000Z";
  const INVITED = { id: "token", badgeId: "7", expiresAt };
  const REVOKED = { id: "token", badgeId: "7", revokedAt: expiresAt };
  const DESCRIBED = { state: "pending", expiresAt, applicationName: "HQ" };
  const userToken = "token";

  it.each<[string, (phone: DeviceClient, office: ServerClient) => Promise<unknown>, object, number?]>([
    ["requestBadge of a known badge", (phone) => phone.requestBadge({ userId: "a" }), { badgeId: "7" }],
    ["requestBadge", (phone) => phone.requestBadge({ userId: "a" }), { badgeId: "7", publicKey: "k" }, 201],
    ["describeInvitation", (phone) => phone.describeInvitation("token"), DESCRIBED],
    ["ownBadges", (phone) => phone.ownBadges({ userToken }), { badges: [] }],
    ["suspendOwn", (phone) => phone.suspendOwn("7", { userToken }), ISSUED],
    ["getBadge", (_, office) => office.getBadge("7"), ISSUED],
    ["getUser", (_, office) => office.getUser("a"), { userId: "a", blocked: false }],
    ["blockUser", (_, office) => office.blockUser("a"), { userId: "a", blocked: true, revoked: [] }],
    ["eraseUser", (_, office) => office.eraseUser("a"), { userId: "erased:1", erased: 0 }],
    ["createInvitation", (_, office) => office.createInvitation({ udid: "desk", expiresAt }), INVITED, 201],
    ["revokeInvitation", (_, office) => office.revokeInvitation("7"), REVOKED],
    ["eraseInvitation", (_, office) => office.eraseInvitation("7"), { badgeId: "7" }],
    ["listBadges", (_, office) => collect(office.listBadges()), { badges: [] }],
    ["listInvitations", (_, office) => collect(office.listInvitations()), { invitations: [] }],
    ["listHistory", (_, office) => collect(office.listHistory()), { history: [] }],
    ["listEvents", (_, office) => collect(office.listEvents()), { events: [] }],
    ["replayEvent", (_, office) => office.replayEvent("evt_1"), { id: "evt_1", state: "held" }, 202],
    ["getApplication", (_, office) => office.getApplication(), { applicationId: "app_1" }],
    ["searchBadges", (_, office) => collect(office.searchBadges({ q: "al" })), { badges: [] }],
    ["listBlockedUsers", (_, office) => collect(office.listBlockedUsers()), { users: [] }],
    ["listAccess", (_, office) => collect(office.listAccess()), { people: [] }],
    ["listDoors", (_, office) => collect(office.listDoors()), { doors: [] }],
    ["getStatistics", (_, office) => office.getStatistics(), { applicationId: "app_1", asOf: expiresAt }],
  ])(
    "%s passes on fields that it does not know, and rejects a response without one that the caller needs",
    async (_, act, body, status = 200) => {
      const application = await createApplication();
      const respond = (response: object) => {
        const { options } = fakeService(Response.json(response, { status }));
        return act(device(application, "phone", options), server(application, options));
      };
      await expect(respond({ ...body, since: "x" })).resolves.toBeDefined();
      for (const name of Object.keys(body)) {
        for (const value of [undefined, null, { x: 1 }]) {
          await expect(respond({ ...body, [name]: value }), name).rejects.toMatchObject({ status, code: null });
        }
      }
    },
  );
});

describe("where a client sends its requests", () => {
  it("a client sends its requests under the base URL, with or without slashes at its end", async () => {
    const application = await createApplication();
    const { options, requests } = fakeService(Response.json({ badges: [] }));
    for (const baseUrl of ["http://localhost:8787", "https://a.example/b//"]) {
      await collect(server(application, { ...options, baseUrl }).listBadges());
    }
    const urls = ["http://localhost:8787/v1/badges", "https://a.example/b/v1/badges"];
    expect(requests.map(({ url }) => url)).toEqual(urls);
    for (const baseUrl of ["", "badges.example", "ftp://badges.example", "https://badges.example/?a=b", "/v1"]) {
      expect(() => server(application, { baseUrl }), baseUrl).toThrow(RangeError);
    }
  });

  it("a client follows no redirect, which would take the secret to another host", async () => {
    const { options, requests } = fakeService(Response.redirect("https://elsewhere.example/", 307));
    const client = server(await createApplication(), options);
    await expect(collect(client.listBadges())).rejects.toMatchObject({ status: 307, code: null });
    expect(requests.map(({ init }) => init.redirect)).toEqual(["manual"]);
  });
});
