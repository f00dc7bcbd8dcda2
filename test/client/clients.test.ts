import { describe, expect, it } from "vitest";
import { metadata } from "../../src/shared/requests.ts";
import { verifyBadgeSignature } from "../../src/verify/badge-signature.ts";
import { createApplication } from "../support/application.ts";
import { collect, device, fakeService, inOneHour, server, worker } from "./support.ts";

describe("the device client (contract sections 1 to 3)", () => {
  it("the device client gets a new badge with its public key, and the same badge after that", async () => {
    const application = await createApplication();
    const phone = device(application, "phone");
    const first = await phone.requestBadge({ userId: "alice" });
    expect(first).toEqual({ created: true, badgeId: expect.stringMatching(/^\d+$/), publicKey: expect.any(String) });
    expect(await phone.requestBadge({ userId: "alice" })).toEqual({ created: false, badgeId: first.badgeId });
  });

  it("the device client exchanges its signature, as base64 or as any bytes, for one that a door verifies offline", async () => {
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

  it("the device client sends every metadata field that the service knows", async () => {
    const application = await createApplication();
    const sent = Object.fromEntries(Object.keys(metadata.shape).map((name) => [name, `some ${name}`]));
    await device(application, "phone").requestBadge({ userId: "alice", metadata: sent });
    const [badge] = await collect(server(application).listBadges().badges());
    expect(badge).toEqual({ id: expect.any(String), userId: "alice", metadata: sent });
  });

  it("the device client claims an invitation with its token", async () => {
    const application = await createApplication();
    const { id, badgeId } = await server(application).createInvitation({ expiresAt: inOneHour(), udid: "desk" });
    const visitor = device(application, "visitor");
    const request = { userId: "vera", invitationToken: id };
    expect(await visitor.requestBadge(request)).toMatchObject({ created: true, badgeId });
    expect(await visitor.requestBadge(request)).toEqual({ created: false, badgeId });
  });

  it("the device client throws a TypeError for a udid that no header can carry, and sends nothing", async () => {
    const application = await createApplication();
    const phone = device(application, "phöne\n✓", { fetch: () => Promise.reject(new Error("was sent")) });
    await expect(phone.requestBadge({ userId: "alice" })).rejects.toThrow(TypeError);
  });
});

async function withBadges(userIds: readonly string[]) {
  const application = await createApplication();
  const badges: { id: string; userId: string }[] = [];
  for (const [index, userId] of userIds.entries()) {
    const { badgeId } = await device(application, `device-${index}`).requestBadge({ userId });
    badges.push({ id: badgeId, userId });
  }
  return { application, badges };
}

describe("listing badges with the server client (contract section 4)", () => {
  it("the server client lists page after page, oldest first, and fetches each only when the iteration reaches it", async () => {
    const { application, badges } = await withBadges(["a", "b", "c", "d", "e"]);
    let fetched = 0;
    const pages = server(application, {
      fetch: (url, init) => {
        fetched++;
        return worker(url, init);
      },
    }).listBadges({ perPage: 2 });
    expect(fetched).toBe(0);
    const seen = [];
    for await (const page of pages) {
      seen.push(page.badges);
      expect(fetched).toBe(seen.length);
      expect(page.nextCursor === null).toBe(seen.length === 3);
    }
    expect(seen).toEqual([badges.slice(0, 2), badges.slice(2, 4), badges.slice(4)]);
  });

  it("the server client lists the badges themselves, and starts from the beginning each time", async () => {
    const { application, badges } = await withBadges(["a", "b", "c"]);
    const pages = server(application).listBadges({ perPage: 1 });
    expect(await collect(pages.badges())).toEqual(badges);
    expect(await collect(pages.badges())).toEqual(badges);
  });

  it("the server client lists one user's badges, whatever characters the user ID has", async () => {
    const strange = "a/b?c=d&e%2F#ü ✓";
    const { application, badges } = await withBadges(["a", strange, strange, "z"]);
    const client = server(application);
    expect(await collect(client.listBadges({ userId: strange, perPage: 1 }).badges())).toEqual(badges.slice(1, 3));
    expect(await collect(client.listBadges({ userId: "nobody" }))).toEqual([{ badges: [], nextCursor: null }]);
  });

  it.each([".", "..", "", "\ud800", undefined])(
    "the server client throws instead of listing everybody's badges for the user ID %j",
    async (userId) => {
      const { options, requests } = fakeService(Response.json({ badges: [] }));
      const client = server(await createApplication(), options);
      // A caller in JavaScript can do this.
      const query: object = { userId };
      expect(() => client.listBadges(query)).toThrow(RangeError);
      expect(requests).toEqual([]);
    },
  );
});

describe("invitations with the server client (contract section 5)", () => {
  it("the server client creates an invitation that expires at a Date, or at a string that is returned unchanged", async () => {
    const application = await createApplication();
    const client = server(application);
    const expiresAt = inOneHour();
    const first = await client.createInvitation({ expiresAt, udid: "desk" });
    expect(first).toEqual({
      id: expect.any(String),
      badgeId: expect.stringMatching(/^\d+$/),
      expiresAt: expiresAt.toISOString(),
    });
    const text = inOneHour().toISOString().replace("Z", "+00:00");
    expect(await client.createInvitation({ expiresAt: text, udid: "desk" })).toMatchObject({ expiresAt: text });
  });

  it("the server client revokes an invitation by its token, with the same result again, or by its number while that is reserved", async () => {
    const client = server(await createApplication({ requireSecret: true }));
    const invitation = await client.createInvitation({ expiresAt: inOneHour(), udid: "desk" });
    const revoked = await client.revokeInvitation(invitation.id);
    expect(revoked).toEqual({ ...invitation, revokedAt: expect.stringMatching(/Z$/) });
    expect(await client.revokeInvitation(invitation.id)).toEqual(revoked);
    const { badgeId } = await client.createInvitation({ expiresAt: inOneHour(), udid: "desk" });
    expect(await client.revokeInvitation(badgeId)).toMatchObject({ id: badgeId, badgeId });
    await expect(client.revokeInvitation(badgeId)).rejects.toMatchObject({ code: "UNKNOWN_INVITATION" });
  });
});

describe("where a client sends its requests", () => {
  it.each([
    ["https://badges.example", "https://badges.example/v1/badges"],
    ["https://badges.example/", "https://badges.example/v1/badges"],
    ["http://localhost:8787", "http://localhost:8787/v1/badges"],
    ["https://example.com/badges//", "https://example.com/badges/v1/badges"],
  ])("a client sends its requests under the base URL %s", async (baseUrl, url) => {
    const { options, requests } = fakeService(Response.json({ badges: [] }));
    await collect(server(await createApplication(), { ...options, baseUrl }).listBadges());
    expect(requests.map((request) => request.url)).toEqual([url]);
  });

  it.each(["", "badges.example", "ftp://badges.example", "https://", "https://badges.example/?a=b", "/v1"])(
    "a client refuses the base URL %j",
    async (baseUrl) => {
      const application = await createApplication();
      expect(() => server(application, { baseUrl })).toThrow(RangeError);
    },
  );

  it("a client follows no redirect, which would take the secret to another host", async () => {
    const { options, requests } = fakeService(Response.redirect("https://elsewhere.example/", 307));
    const client = server(await createApplication(), options);
    await expect(collect(client.listBadges())).rejects.toMatchObject({ status: 307, code: null });
    expect(requests).toHaveLength(1);
    expect(requests[0]?.init.redirect).toBe("manual");
  });
});
