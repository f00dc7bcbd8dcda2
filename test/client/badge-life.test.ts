import { describe, expect, it } from "vitest";
import { isExpiredCursor, isRefusedBadge, NoResponseError, type RefusedBadgeCode } from "../../src/client/index.ts";
import { createApplication, type TestApplication } from "../support/application.ts";
import { runSql } from "../support/home.ts";
import { collect, device, failureOf, fakeService, inOneHour, refusal, server, worker } from "./support.ts";

async function issued(application: TestApplication, udid: string, userId = "alice"): Promise<string> {
  const { badgeId } = await device(application, udid).requestBadge({ userId });
  return badgeId;
}

describe("the life of a badge with the server client (contract section 12)", () => {
  it("the server client reads, suspends, resumes and revokes a badge", async () => {
    const application = await createApplication();
    const client = server(application);
    const id = await issued(application, "phone");
    const time = expect.stringMatching(/Z$/);
    const times = { issuedAt: time, changedAt: time, change: expect.any(Number) };
    const listed = { id, userId: "alice" };
    const badge = { ...listed, ...times };
    expect(await client.getBadge(id)).toEqual({ ...badge, state: "active" });
    expect(await client.suspendBadge(id)).toEqual({ ...badge, state: "suspended" });
    expect(await collect(client.listBadges().badges())).toEqual([{ ...listed, state: "suspended" }]);
    expect(await client.resumeBadge(id)).toEqual({ ...badge, state: "active" });
    expect(await client.revokeBadge(id)).toEqual({ ...badge, state: "revoked" });
    expect(await client.getBadge(id)).toEqual({ ...badge, state: "revoked" });
    await expect(client.resumeBadge(id)).rejects.toMatchObject({ status: 409, code: "ENDED_BADGE" });
    await expect(client.getBadge("7")).rejects.toMatchObject({ status: 404, code: "UNKNOWN_BADGE" });
  });

  it("the server client reads a badge's change number also from a tag that a proxy has weakened (contract section 24)", async () => {
    const badge = { id: "7", userId: "alice", state: "active" };
    const { options } = fakeService(Response.json(badge, { headers: { etag: 'W/"5"' } }));
    expect(await server(await createApplication(), options).getBadge("7")).toEqual({ ...badge, change: 5 });
  });

  it("the server client sets the end of a badge to a Date, to a string with a zone, or to none", async () => {
    const application = await createApplication();
    const client = server(application);
    const id = await issued(application, "phone");
    const end = inOneHour();
    expect(await client.setBadgeEnd(id, end)).toMatchObject({ state: "active", expiresAt: end.toISOString() });
    expect(await client.setBadgeEnd(id, "2020-01-01T01:00:00+01:00")).toMatchObject({
      state: "expired",
      expiresAt: "2020-01-01T00:00:00.000Z",
    });
    expect(await client.setBadgeEnd(id, null)).not.toHaveProperty("expiresAt");
    await expect(client.setBadgeEnd(id, "soon")).rejects.toMatchObject({ code: "INVALID_EXPIRESAT" });
  });

  it("the server client blocks a user, which revokes all badges, and unblocks the user", async () => {
    const application = await createApplication();
    const client = server(application);
    const userId = "a/b?c ü";
    expect(await client.getUser(userId)).toEqual({ userId, blocked: false });
    const revoked = [await issued(application, "phone", userId), await issued(application, "tablet", userId)];
    const block = await client.blockUser(userId);
    expect(block).toEqual({ userId, blocked: true, revoked: expect.arrayContaining(revoked) });
    expect(block.revoked).toHaveLength(2);
    expect(await client.blockUser(userId)).toEqual({ userId, blocked: true, revoked: [] });
    expect(await client.getUser(userId)).toEqual({ userId, blocked: true });
    expect(await client.unblockUser(userId)).toEqual({ userId, blocked: false, revoked: [] });
    expect(await client.getUser(userId)).toEqual({ userId, blocked: false });
  });

  it.each([".", "..", "", "\ud800"])(
    "the server client throws instead of calling another path for the ID %j",
    async (id) => {
      const { options, requests } = fakeService(Response.json({}));
      const client = server(await createApplication(), options);
      for (const call of [client.getBadge(id), client.revokeBadge(id), client.setBadgeEnd(id, null)]) {
        await expect(call).rejects.toThrow(RangeError);
      }
      for (const call of [client.getUser(id), client.blockUser(id), client.replayEvent(id)]) {
        await expect(call).rejects.toThrow(RangeError);
      }
      expect(requests).toEqual([]);
    },
  );
});

/** What an app tells its user; the compiler checks that no code is forgotten. */
function explain(code: RefusedBadgeCode): string {
  switch (code) {
    case "SUSPENDED_BADGE":
      return "suspended for now";
    case "REVOKED_BADGE":
      return "taken away";
    case "EXPIRED_BADGE":
      return "over";
    case "EARLY_BADGE":
      return "not yet begun";
    case "WRONG_USER":
      return "for somebody else";
    case "BLOCKED_USER":
      return "blocked";
  }
}

describe("a device whose badge is not active (contract section 12)", () => {
  const explained = async (call: Promise<unknown>): Promise<string> => {
    const error = await failureOf(call);
    return isRefusedBadge(error) ? explain(error.code) : "something else";
  };

  it("a device whose badge is not active gets the reason from requestBadge and sign", async () => {
    const application = await createApplication();
    const client = server(application);
    const phone = device(application, "phone");
    const id = await issued(application, "phone");
    const both = async () => [
      await explained(phone.requestBadge({ userId: "alice" })),
      await explained(phone.sign("aGVsbG8=")),
    ];
    await client.suspendBadge(id);
    expect(await both()).toEqual(["suspended for now", "suspended for now"]);
    await client.resumeBadge(id);
    await client.setBadgeEnd(id, new Date(0));
    expect(await both()).toEqual(["over", "over"]);
    await client.blockUser("alice");
    expect(await both()).toEqual(["taken away", "taken away"]);
    const tablet = device(application, "tablet");
    expect(await explained(tablet.requestBadge({ userId: "alice" }))).toBe("blocked");
    expect(await explained(tablet.sign("aGVsbG8="))).toBe("something else");
  });

  it("a proxy's 403, another refusal or a missing response is not mistaken for a badge that is not active", async () => {
    for (const error of [
      await failureOf(
        device({ id: "app" }, "x", fakeService(new Response("<html>", { status: 403 })).options).sign("AA=="),
      ),
      await failureOf(
        device({ id: "app" }, "x", fakeService(refusal(401, "INVALID_APPLICATIONID")).options).sign("AA=="),
      ),
      new NoResponseError(null),
      { code: "REVOKED_BADGE" },
    ]) {
      expect(isRefusedBadge(error)).toBe(false);
    }
  });
});

describe("changes with the server client (contract section 13)", () => {
  it("the server client's changes are pages with a cursor to store, and end when nothing more follows", async () => {
    const application = await createApplication();
    const client = server(application);
    const ids = [];
    for (const udid of ["a", "b", "c"]) ids.push(await issued(application, udid));
    const pages = await collect(client.changes({ perPage: 2 }));
    expect(pages.map(({ changes }) => changes.map(({ id }) => id))).toEqual([ids.slice(0, 2), ids.slice(2)]);
    expect(pages.map(({ more }) => more)).toEqual([true, false]);
    expect(pages[0]?.changes[0]).toEqual({
      id: ids[0],
      userId: "alice",
      state: "active",
      issuedAt: expect.stringMatching(/Z$/),
      change: 1,
      changedAt: expect.stringMatching(/Z$/),
    });
  });

  it("the server client continues from a stored cursor with what changed since, and nothing else", async () => {
    const application = await createApplication();
    const client = server(application);
    const [first, second] = [await issued(application, "a"), await issued(application, "b")];
    const [page] = await collect(client.changes());
    await client.suspendBadge(first);
    const cursor = page?.cursor ?? "";
    const [next, ...none] = await collect(server(application).changes({ cursor }));
    expect(next?.changes.map(({ id, state }) => [id, state])).toEqual([[first, "suspended"]]);
    expect(none).toEqual([]);
    expect(await collect(client.changes({ cursor: next?.cursor ?? "" }))).toMatchObject([{ changes: [], more: false }]);
    const all = await collect(client.changes({ cursor: null }));
    expect(all.flatMap(({ changes }) => changes.map(({ id }) => id))).toEqual([second, first]);
  });

  it("the server client starts at the given cursor in every iteration, and fetches a page only when it is reached", async () => {
    const application = await createApplication();
    for (const udid of ["a", "b", "c"]) await issued(application, udid);
    let fetched = 0;
    const client = server(application, {
      fetch: (url, init) => {
        fetched++;
        return worker(url, init);
      },
    });
    const feed = client.changes({ perPage: 1 });
    expect(fetched).toBe(0);
    for await (const _page of feed) break;
    expect(fetched).toBe(1);
    expect(await collect(feed)).toHaveLength(3);
  });

  it("the server client throws a distinguishable error for a cursor that has expired", async () => {
    const application = await createApplication();
    const client = server(application);
    await issued(application, "a");
    await issued(application, "b");
    const cursor = (await collect(client.changes())).at(-1)?.cursor ?? "";
    await runSql("UPDATE application_head SET epoch = 'another' WHERE application_id = ?1", application.id);
    const error = await failureOf(collect(client.changes({ cursor })));
    expect(error).toMatchObject({ name: "BadgeServiceError", status: 410, code: "EXPIRED_CURSOR" });
    expect(isExpiredCursor(error)).toBe(true);
    for (const malformed of ["", "x y"]) {
      const other = await failureOf(collect(client.changes({ cursor: malformed })));
      expect(other).toMatchObject({ status: 422, code: "INVALID_CURSOR" });
      expect(isExpiredCursor(other)).toBe(false);
    }
    expect(await collect(client.changes())).toMatchObject([{ changes: [{ change: 1 }, { change: 2 }], more: false }]);
  });

  it.each([
    ["no cursor, from which nobody could go on", Response.json({ changes: [], more: false })],
    ["no `more`", Response.json({ changes: [] }, { headers: { "pagination-cursor": "c" } })],
    ["no list", Response.json({ changes: {}, more: false }, { headers: { "pagination-cursor": "c" } })],
  ])("the server client refuses a page of changes with %s", async (_name, response) => {
    const client = server(await createApplication(), fakeService(response).options);
    await expect(collect(client.changes())).rejects.toMatchObject({ status: 200, code: null });
  });
});
