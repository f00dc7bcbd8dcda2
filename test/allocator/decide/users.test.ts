import { describe, expect, it } from "vitest";
import { invitationDigest } from "../../../src/shared/identifiers.ts";
import { decideBlock, decideUnblock } from "../../../src/worker/allocator/decide/block.ts";
import { decideErase } from "../../../src/worker/allocator/decide/erase.ts";
import { decideBadge } from "../../../src/worker/allocator/decide/request-badge.ts";
import { insertRows } from "../../../src/worker/allocator/tables/bulk.ts";
import {
  claimOf,
  DEVICE,
  device,
  digestOfUser,
  eventsOf,
  inAllocator,
  NEW_INVITATION,
  NOW,
  refused,
  request,
  type Scene,
  SERVER,
} from "./support.ts";

/** Three of alice's badges at the ordinals 3, 1 and 2, and one of bob's. */
function loadBadges(scene: Scene) {
  for (const ordinal of [3, 1, 2]) {
    const state = ordinal === 2 ? "suspended" : "active";
    scene.loadBadge({ number: 1000 + ordinal, ordinal, device: device(`phone-${ordinal}`), state });
  }
  scene.loadBadge({ number: 1004, ordinal: 4, device: device("phone-4"), userId: "bob" });
}

const statesOf = (scene: Scene) => [1001, 1002, 1003, 1004].map((number) => scene.issued(number)?.state);

const alice = { userId: "alice", userDigest: digestOfUser("alice") };
const block = (scene: Scene) => decideBlock(scene, SERVER, { kind: "block", ...alice });
const unblock = (scene: Scene) => decideUnblock(scene, SERVER, { kind: "unblock", ...alice });
const erase = (scene: Scene) => decideErase(scene, SERVER, { kind: "erase", ...alice, alias: "erased:1" });

const nobody = { kind: "user", userId: "alice", numbers: [] };

describe("blocking a user (contract section 12)", () => {
  it("blocking revokes only the user's badges, in the order of issue, in one transaction", () =>
    inAllocator((open) => {
      const scene = open();
      loadBadges(scene);
      expect(block(scene)).toEqual({ ...nobody, numbers: [1001, 1002, 1003] });
      expect(statesOf(scene)).toEqual(["revoked", "revoked", "revoked", "active"]);
      expect(eventsOf(scene).map(({ event }) => event)).toEqual(new Array(3).fill("badge:revoked"));
      expect(scene.actions).toEqual(["user:blocked", ...new Array(3).fill("badge:revoked")]);
      expect(scene.changes("blockedUser").inserted).toEqual([{ userId: "alice", blockedAt: NOW }]);
    }));

  it("blocking a user again changes nothing, also if the user was erased while blocked", () =>
    inAllocator((open) => {
      for (const userId of ["alice", "erased:1"]) {
        const scene = open();
        scene.loadBlock(userId, NOW - 1, userId === "alice" ? null : digestOfUser("alice"));
        expect([block(scene), scene.entries]).toEqual([nobody, []]);
      }
    }));

  it("blocking a user again revokes what the first block left", () =>
    inAllocator((open) => {
      const scene = open();
      loadBadges(scene);
      scene.loadBlock("alice", NOW - 1);
      expect(block(scene)).toEqual({ ...nobody, numbers: [1001, 1002, 1003] });
      expect(scene.actions).toEqual(new Array(3).fill("badge:revoked"));
    }));
});

describe("unblocking a user (contract sections 12 and 24)", () => {
  it("unblocking allows new badges again, also if the user was erased while blocked; revoked ones stay revoked", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge();
      block(scene);
      erase(scene);
      expect(decideBadge(scene, DEVICE, request())).toEqual(refused("BLOCKED_USER"));
      expect(unblock(scene)).toEqual(nobody);
      expect(scene.history.at(-1)).toMatchObject({ action: "user:unblocked", userId: "erased:1" });
      expect(decideBadge(scene, DEVICE, request())).toMatchObject({ kind: "created" });
      expect(scene.issued(1001)?.state).toBe("revoked");
    }));

  it("unblocking a user who is not blocked changes nothing", () =>
    inAllocator((open) => {
      const scene = open();
      expect([unblock(scene), scene.entries]).toEqual([nobody, []]);
    }));
});

describe("a user's ten thousand badges that have not ended (contract section 7)", () => {
  it.each([
    ["is revoked", { state: "revoked", endedAt: NOW }],
    ["expires", { expiresAt: NOW, endedAt: NOW }],
  ] as const)("a user has at most 10,000 badges: another login or claim is refused until one %s", (_, ended) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadges(
        Array.from({ length: 10_000 }, (_, place) => {
          const state = place === 0 ? "active" : "suspended";
          return { number: 10_000 + place, ordinal: place, device: device(`${place}`), state };
        }),
      );
      scene.loadInvitation();
      const another = { device: device("another") };
      expect(decideBadge(scene, DEVICE, request(another))).toEqual(refused("TOO_MANY_BADGES"));
      expect(decideBadge(scene, DEVICE, claimOf(another))).toEqual(refused("TOO_MANY_BADGES"));
      // In place of a badge that has ended, a new one would be one more.
      scene.loadBadge({ number: 1003, ordinal: 10_001, device: device("ended"), ...ended });
      expect(decideBadge(scene, DEVICE, claimOf({ device: device("ended") }))).toEqual(refused("TOO_MANY_BADGES"));
      expect(scene.entries).toEqual([]);
      scene.loadBadge({ number: 10_001, ordinal: 1, device: device("1"), ...ended });
      expect(decideBadge(scene, DEVICE, request(another))).toMatchObject({ kind: "created" });
      // A badge in place of one that has not ended is none more.
      expect(decideBadge(scene, DEVICE, claimOf({ device: device("0") }))).toMatchObject({ kind: "created" });
    }),
  );
});

describe("erasing a person (contract section 24)", () => {
  it("erasing a person is a change of badges that had ended, too, so that the feed tells of it (contract section 13)", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ state: "revoked", endedAt: NOW - 1, metadata: '{"os":"iOS"}', name: "Ada" });
      expect(erase(scene)).toEqual({ kind: "erased", userId: "erased:1", erased: 1, isDone: true });
      const blank = { userId: "erased:1", state: "revoked", metadata: null, name: null, change: 41 };
      expect(scene.issued(1001)).toMatchObject(blank);
    }));

  it("erasing more than 10,000 badges takes several parts, and only the last one is done", { timeout: 120_000 }, () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadges(
        Array.from({ length: 10_001 }, (_, place) => {
          const ended = { state: "revoked", endedAt: NOW } as const;
          return { ...ended, number: 10_000 + place, ordinal: place, device: device(`${place}`) };
        }),
      );
      expect(erase(scene)).toMatchObject({ erased: 10_000, isDone: false });
      const next = { kind: "erase", ...alice, alias: "erased:1", erasedBefore: 10_000 } as const;
      expect(decideErase(scene, SERVER, next)).toMatchObject({ erased: 10_001, isDone: true });
    }),
  );

  it("erasing more than 10,000 invitations takes several parts, too", { timeout: 120_000 }, () =>
    inAllocator((open) => {
      const scene = open();
      const rows = Array.from({ length: 10_001 }, (_, place) => {
        const digest = invitationDigest.parse(`${place}`);
        return { ...NEW_INVITATION, digest, number: 10_000 + place, state: "revoked" as const, userId: "alice" };
      });
      insertRows(scene.tables.orm, "invitation", rows);
      expect(erase(scene)).toMatchObject({ erased: 0, isDone: false });
      expect(erase(scene)).toMatchObject({ erased: 0, isDone: true });
      expect(scene.tables.invitationsNaming("alice", 1)).toEqual([]);
    }),
  );

  it("erasing removes the person from events and history of earlier calls in the group, and nobody else", () =>
    inAllocator((open) => {
      const scene = open();
      const metadata = JSON.stringify({ os: "Ada's" });
      const login = (userId: string) =>
        decideBadge(scene, DEVICE, request({ userId, metadata, device: device(userId) }));
      for (const userId of ["alice", "bob"]) login(userId);
      const block = (name: string, reason: string) => {
        const user = { userId: "carol", userDigest: digestOfUser("carol") };
        const origin = { actor: { kind: "server", name }, reason } as const;
        decideBlock(scene, origin, { kind: "block", ...user });
        decideUnblock(scene, origin, { kind: "unblock", ...user });
      };
      block("alice", "Alice asked");
      block("alice of Bob", "as alice says");
      erase(scene);
      login("alice");
      expect(eventsOf(scene)).toMatchObject([
        { event: "badge:created", data: { userId: "erased:1" } },
        { event: "badge:created", data: { userId: "bob", metadata: { os: "Ada's" } } },
        { event: "badge:revoked", data: { userId: "erased:1" } },
        { event: "badge:created", data: { userId: "alice", metadata: { os: "Ada's" } } },
      ]);
      expect(eventsOf(scene)[0]?.data).not.toHaveProperty("metadata");
      const ofCarol = scene.history.filter(({ userId }) => userId === "carol");
      const [own, others] = ["erased:1: null", "erased:1 of Bob: as erased:1 says"];
      const said = ofCarol.map(({ actorName, reason }) => `${actorName}: ${reason}`);
      expect(said).toEqual([own, own, others, others]);
    }));

  it("erasing again, or somebody unknown, has no history row, but still scans D1, because an event may name the person", () =>
    inAllocator((open) => {
      const scene = open();
      expect(erase(scene)).toEqual({ kind: "erased", userId: "erased:1", erased: 0, isDone: true });
      expect(scene.history).toEqual([]);
      expect(scene.entries).toMatchObject([{ changes: { erasures: [{ userId: "alice", alias: "erased:1" }] } }]);
      expect(scene.tables.erasure("erased:1")).toBeDefined();
    }));
});
