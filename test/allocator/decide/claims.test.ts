import { describe, expect, it } from "vitest";
import { decideBadge } from "../../../src/worker/allocator/decide/request-badge.ts";
import { claimOf, DEVICE, DIGEST, eventsOf, HOUR, inAllocator, NOW, PHONE, refused } from "./support.ts";

describe("a claim (contract sections 2, 5, 12, 15 and 24)", () => {
  it.each([
    ["revoked, and past its time", { state: "revoked", endedAt: NOW, expiresAtTime: NOW }, "REVOKED_INVITATION"],
    ["claimed by somebody else", { state: "claimed", claimDevice: PHONE, claimUserId: "bob" }, "CLAIMED_INVITATION"],
  ] as const)("a claim of an invitation that is %s is refused, and changes nothing", (_, more, code) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge();
      scene.loadInvitation(more);
      expect(decideBadge(scene, DEVICE, claimOf())).toEqual(refused(code));
      expect(scene.entries).toEqual([]);
    }),
  );

  it("a claim after the invitation's end is refused, and records the expiry, so that it stays expired", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ expiresAtTime: NOW });
      expect(decideBadge(scene, DEVICE, claimOf())).toEqual(refused("EXPIRED_INVITATION"));
      const columns = { state: "expired", endedAt: NOW };
      expect(scene.changes("invitation").updated).toEqual([{ key: DIGEST, columns }]);
      expect(scene.changes("badge").deleted).toEqual([1050]);
      expect(scene.changes("freedNumber").inserted).toEqual([{ number: 1050, freedAt: NOW }]);
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
      const replaced = { state: "replaced", supersededAt: NOW, endedAt: NOW, change: 41, statusChange: 41 };
      expect(scene.issued(1001)).toMatchObject(replaced);
      expect(scene.issued(1050)).toMatchObject({ change: 42, loginSequence: 1 });
      expect(eventsOf(scene)).toMatchObject([
        { event: "badge:replaced", data: { id: "1001", state: "replaced", change: 41 } },
        { event: "badge:created", data: { id: "1050", replacedBadgeId: "1001" } },
      ]);
      expect(scene.actions).toEqual(["badge:replaced", "badge:created"]);
      expect(scene.changes("freedNumber").inserted).toEqual([]);
    }),
  );

  it("the server's invitation gives a device with a revoked badge a new one, and the old one stays revoked", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ state: "revoked", endedAt: NOW - HOUR });
      scene.loadInvitation();
      expect(decideBadge(scene, DEVICE, claimOf())).toMatchObject({ kind: "created", number: 1050 });
      const before = { state: "revoked", endedAt: NOW - HOUR, change: 10 };
      expect(scene.issued(1001)).toMatchObject({ ...before, supersededAt: NOW });
      expect(eventsOf(scene)).toHaveLength(1);
      expect(eventsOf(scene)[0]?.data).not.toHaveProperty("replacedBadgeId");
    }));

  const BOUND = { keyThumbprint: "a" };
  const REVOKED = { state: "revoked", endedAt: NOW - HOUR } as const;
  const BY_RECEPTION = { byReception: true };
  const TO_BE_REBOUND = { ...BOUND, rebindUntil: NOW + 1 };

  it.each([
    ["its own key", BOUND, "a", {}, "created"],
    ["another key", BOUND, "b", {}, "INVALID_PROOF"],
    ["another key, a user's name but no secret", BOUND, "b", { withSecret: false, userId: "alice" }, "INVALID_PROOF"],
    ["any key when it is to be rebound", TO_BE_REBOUND, "b", { withSecret: false }, "created"],
    ["another key, and an invitation that names the user", BOUND, "b", { userId: "alice" }, "created"],
    ["another key, and reception's invitation", BOUND, "b", { ...BY_RECEPTION, userId: "alice" }, "INVALID_PROOF"],
    ["reception's invitation when it is revoked", REVOKED, null, BY_RECEPTION, "REVOKED_BADGE"],
    ["reception's invitation, which replaces an unbound badge", {}, null, BY_RECEPTION, "created"],
    ["no key when it is suspended", { state: "suspended" }, null, {}, "SUSPENDED_BADGE"],
  ] as const)(
    "a claim replaces the badge, or is refused and consumes nothing: with %s",
    (_, own, key, more, expected) =>
      inAllocator((open) => {
        const scene = open();
        scene.loadBadge(own);
        scene.loadInvitation(more);
        const told = decideBadge(scene, DEVICE, claimOf({ keyThumbprint: key }));
        expect("code" in told ? told.code : told.kind).toBe(expected);
        if (expected === "created") expect(scene.issued(1050)?.keyThumbprint).toBe(key);
        else expect(scene.entries).toEqual([]);
      }),
  );
});
