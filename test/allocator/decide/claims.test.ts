import { describe, expect, it } from "vitest";
import { decideBadge } from "../../../src/worker/allocator/decide/request-badge.ts";
import { claimOf, DEVICE, DIGEST, device, eventsOf, HOUR, inAllocator, NOW, PHONE, refused } from "./support.ts";

describe("a claim (contract sections 2, 5, 12, 15, 22 and 24)", () => {
  it("a claim turns the reserved number into a badge with the invitation's name and times, and consumes the token", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ name: "Ada", badgeStartsAtTime: NOW + 1, badgeExpiresAtTime: NOW + HOUR });
      expect(decideBadge(scene, DEVICE, claimOf())).toEqual({ kind: "created", number: 1050, keyThumbprint: null });
      const badge = {
        name: "Ada",
        startsAt: NOW + 1,
        expiresAt: NOW + HOUR,
        ordinal: 21,
        loginSequence: 1,
        invitation: DIGEST,
      };
      expect(scene.tables.badge(1050)).toMatchObject({ ...badge, device: PHONE, userId: "alice" });
      const claimed = { state: "claimed", endedAt: NOW, claimDevice: PHONE, claimUserId: "alice" };
      expect(scene.changes("invitation").updated).toEqual([{ key: DIGEST, columns: claimed }]);
      expect(eventsOf(scene)).toMatchObject([
        { event: "badge:created", data: { id: "1050", invitationId: "inv_token" } },
      ]);
      expect(eventsOf(scene)[0]?.data).not.toHaveProperty("replacedBadgeId");
      expect(scene.actions).toEqual(["badge:created"]);
      expect(scene.counters.rangeSegments).toEqual([{ first: 1000, size: 100, used: 10 }]);
    }));

  it("a second claim by the same user device is a login; by another device it is a conflict", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation();
      decideBadge(scene, DEVICE, claimOf());
      expect(decideBadge(scene, DEVICE, claimOf())).toMatchObject({ kind: "existing", number: 1050 });
      expect(decideBadge(scene, DEVICE, claimOf({ userId: "bob" }))).toEqual(refused("CLAIMED_INVITATION"));
      expect(decideBadge(scene, DEVICE, claimOf({ device: device("other") }))).toEqual(refused("CLAIMED_INVITATION"));
      expect(scene.events).toHaveLength(1);
    }));

  it.each([
    ["revoked", { state: "revoked", endedAt: NOW }, "REVOKED_INVITATION"],
    ["revoked, and past its time", { state: "revoked", endedAt: NOW, expiresAtTime: NOW }, "REVOKED_INVITATION"],
    ["expired", { state: "expired", endedAt: NOW }, "EXPIRED_INVITATION"],
    ["claimed by somebody else", { state: "claimed", claimDevice: PHONE, claimUserId: "bob" }, "CLAIMED_INVITATION"],
  ] as const)("a claim of an invitation that is %s is refused", (_, more, code) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge();
      scene.loadInvitation(more);
      expect(decideBadge(scene, DEVICE, claimOf())).toEqual(refused(code));
      expect(scene.changes("badge").inserted).toEqual([]);
    }),
  );

  it("a claim of an unknown invitation is refused", () =>
    inAllocator((open) => {
      expect(decideBadge(open(), DEVICE, claimOf())).toEqual(refused("UNKNOWN_INVITATION"));
    }));

  it("a claim after the invitation's end is refused, and records the expiry, so that it stays expired", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ expiresAtTime: NOW });
      expect(decideBadge(scene, DEVICE, claimOf())).toEqual(refused("EXPIRED_INVITATION"));
      expect(scene.changes("invitation").updated).toEqual([
        { key: DIGEST, columns: { state: "expired", endedAt: NOW } },
      ]);
      expect([scene.changes("badge").deleted, scene.changes("freedNumber").inserted]).toEqual([
        [1050],
        [{ number: 1050, freedAt: NOW }],
      ]);
    }));

  it("a claim for another user than the invitation's, or for a blocked user, is refused in this order and consumes nothing", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ userId: "bob" });
      for (const userId of ["alice", "bob"]) scene.loadBlock(userId);
      expect(decideBadge(scene, DEVICE, claimOf())).toEqual(refused("WRONG_USER"));
      expect(decideBadge(scene, DEVICE, claimOf({ userId: "bob" }))).toEqual(refused("BLOCKED_USER"));
      expect(scene.changes("invitation").updated).toEqual([]);
    }));

  it("a claim needs no user token if the invitation was created with the secret (contract section 22)", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ withSecret: false });
      expect(decideBadge(scene, DEVICE, claimOf({ isVerified: false }))).toEqual(refused("INVALID_USERTOKEN"));
      const vouchedFor = open();
      vouchedFor.loadInvitation();
      expect(decideBadge(vouchedFor, DEVICE, claimOf({ isVerified: false }))).toMatchObject({ kind: "created" });
    }));

  it.each([
    ["a visitor", "visitor-1", "created"],
    ["a colleague", "alice", "INVALID_USERTOKEN"],
  ])("an invitation that reception made lets %s in without a user token (contract section 22)", (_, userId, expected) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ byReception: true });
      const told = decideBadge(scene, DEVICE, claimOf({ userId, isVerified: false }));
      expect("code" in told ? told.code : told.kind).toBe(expected);
      expect(decideBadge(scene, DEVICE, claimOf({ userId: "alice" })).kind).toBe(
        userId === "alice" ? "created" : "refused",
      );
    }),
  );
});

describe("a claim by a user device that has a badge (contract sections 2, 12 and 15)", () => {
  it.each([
    ["active", {}],
    ["expired", { expiresAt: NOW - 1 }],
  ])("a claim retires the device's badge for ever if that is %s, and the events name it", (_, more) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ loginSequence: 3, ...more });
      scene.loadInvitation({ withSecret: false });
      expect(decideBadge(scene, DEVICE, claimOf())).toMatchObject({ kind: "created", number: 1050 });
      expect(scene.issued(1001)).toMatchObject({
        state: "replaced",
        supersededAt: NOW,
        endedAt: NOW,
        change: 41,
        statusChange: 41,
      });
      expect(scene.issued(1050)).toMatchObject({ change: 42, loginSequence: 1 });
      expect(eventsOf(scene)).toMatchObject([
        { event: "badge:replaced", data: { id: "1001", state: "replaced", change: 41 } },
        { event: "badge:created", data: { id: "1050", replacedBadgeId: "1001" } },
      ]);
      expect(scene.actions).toEqual(["badge:replaced", "badge:created"]);
      expect(scene.changes("freedNumber").inserted).toEqual([]);
    }),
  );

  it("a device with a revoked badge gets a new one only by the server's invitation, and the old one stays revoked", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ state: "revoked", endedAt: NOW - HOUR });
      scene.loadInvitation({ withSecret: false });
      expect(decideBadge(scene, DEVICE, claimOf())).toEqual(refused("REVOKED_BADGE"));
      const vouchedFor = open();
      vouchedFor.loadBadge({ state: "revoked", endedAt: NOW - HOUR });
      vouchedFor.loadInvitation();
      expect(decideBadge(vouchedFor, DEVICE, claimOf())).toMatchObject({ kind: "created", number: 1050 });
      expect(vouchedFor.issued(1001)).toMatchObject({
        state: "revoked",
        endedAt: NOW - HOUR,
        supersededAt: NOW,
        change: 10,
      });
      expect(eventsOf(vouchedFor)).toHaveLength(1);
      expect(eventsOf(vouchedFor)[0]?.data).not.toHaveProperty("replacedBadgeId");
    }));

  it("a claim by a device with a suspended badge is refused, and the invitation is not consumed", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ state: "suspended" });
      scene.loadInvitation();
      expect(decideBadge(scene, DEVICE, claimOf())).toEqual(refused("SUSPENDED_BADGE"));
      expect(scene.changes("invitation").updated).toEqual([]);
    }));

  const KEYS = [
    ["its own key", "a", "a", {}, "created"],
    ["another key", "a", "b", {}, "INVALID_PROOF"],
    ["no key", "a", null, {}, "INVALID_PROOF"],
    [
      "another key, and an invitation without the secret that names the user",
      "a",
      "b",
      { withSecret: false, userId: "alice" },
      "INVALID_PROOF",
    ],
    ["another key, and the server's invitation that names the user", "a", "b", { userId: "alice" }, "created"],
    ["no key, and the server's invitation that names the user", "a", null, { userId: "alice" }, "INVALID_PROOF"],
    ["no key where none was", null, null, { withSecret: false }, "created"],
  ] as const;

  it.each(KEYS)("with %s", (_, bound, proved, invitation, expected) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ keyThumbprint: bound });
      scene.loadInvitation(invitation);
      const told = decideBadge(scene, DEVICE, claimOf({ keyThumbprint: proved }));
      expect("code" in told ? told.code : told.kind).toBe(expected);
      if (expected === "created") expect(scene.issued(1050)?.keyThumbprint).toBe(proved);
      else expect(scene.changes("invitation").updated).toEqual([]);
    }),
  );

  it("a badge in its rebind window can be replaced with any proved key", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ keyThumbprint: "a", rebindUntil: NOW + 1 });
      scene.loadInvitation({ withSecret: false });
      expect(decideBadge(scene, DEVICE, claimOf({ keyThumbprint: "b" }))).toMatchObject({ kind: "created" });
    }));
});
