import { describe, expect, it } from "vitest";
import { invitationDigest } from "../../../src/shared/identifiers.ts";
import { DUE_CHUNK_ROWS, PURGE_INVITATIONS } from "../../../src/shared/limits/allocator-limits.ts";
import type { NewInvitation, Revoker, Rules } from "../../../src/worker/allocator/commands.ts";
import {
  decideInvitationErasure,
  decideInvite,
  decideRevocation,
} from "../../../src/worker/allocator/decide/invitation.ts";
import { decidePurge } from "../../../src/worker/allocator/decide/purge.ts";
import { decideDue } from "../../../src/worker/allocator/decide/record-ends.ts";
import { takeNumber } from "../../../src/worker/allocator/decide/take-number.ts";
import {
  DIGEST,
  device,
  eventsOf,
  inAllocator,
  NEW_INVITATION,
  NOW,
  RULES,
  refused,
  type Scene,
  SERVER,
} from "./support.ts";

const invite = (scene: Scene, ...more: Partial<NewInvitation>[]) =>
  decideInvite(scene, SERVER, {
    kind: "invite",
    rules: RULES,
    invitations: more.map((each) => ({ ...NEW_INVITATION, ...each })),
  });

const digest = (name: string) => invitationDigest.parse(name);

const FULL = { rangeSegments: [{ first: 1000, size: 100, used: 100 }] };

describe("inviting (contract sections 5, 12 and 24)", () => {
  it("inviting reserves a number for each invitation, without a badge or an event", () =>
    inAllocator((open) => {
      const scene = open();
      expect(invite(scene, { digest: digest("a") }, { digest: digest("b"), userId: "bob" })).toEqual({
        kind: "invitations",
        results: [{ number: 1010 }, { number: 1011 }],
      });
      expect(scene.issued(1010)).toBeUndefined();
      expect(scene.tables.badge(1010)).toMatchObject({ invitation: "a", ordinal: null, change: null });
      expect(scene.tables.invitation(digest("b"))).toMatchObject({ state: "pending", number: 1011, userId: "bob" });
      expect([scene.events, scene.counters.lastOrdinal, scene.counters.lastChange]).toEqual([[], 20, 40]);
      expect(scene.history).toMatchObject([
        { badge: 1010 },
        { action: "invitation:created", badge: 1011, userId: "bob" },
      ]);
    }));

  it("a request with the same Idempotency-Key gets the same invitation, even an ended one, and reserves no number", () =>
    inAllocator((open) => {
      for (const state of ["pending", "claimed", "revoked", "expired"] as const) {
        const scene = open();
        scene.loadInvitation({ state });
        expect(invite(scene, {})).toEqual({ kind: "invitations", results: [{ number: 1050 }] });
        expect([scene.changes("badge").inserted, scene.history]).toEqual([[], []]);
      }
    }));

  it.each([
    { expiresAt: "2026-11-23T13:00:00+01:00" },
    { badgeExpiresAt: "2026-12-01T00:00:00Z" },
    { badgeStartsAt: "2026-11-22T13:00:00Z" },
    { name: "Ada" },
    { userId: "bob" },
    { creatorDevice: device("other") },
  ])("a request with the same Idempotency-Key and another body is refused: %o", (more) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation();
      expect(invite(scene, more)).toEqual({ kind: "invitations", results: [{ code: "INVALID_IDEMPOTENCYKEY" }] });
    }),
  );

  it("inviting looks up the Idempotency-Key before it compares times with the clock, and says which time has passed", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ expiresAtTime: NOW });
      expect(invite(scene, { expiresAtTime: NOW })).toEqual({ kind: "invitations", results: [{ number: 1050 }] });
      const late = { digest: digest("new"), expiresAtTime: NOW };
      const results = [{ code: "INVALID_BADGEEXPIRESAT" }, { code: "INVALID_EXPIRESAT" }];
      expect(invite(scene, late, { ...late, expiresAt: "2026-11-22T12:00:00Z" })).toEqual({
        kind: "invitations",
        results,
      });
    }));

  it("an invitation without the secret counts for the hour's limit, but one with the secret does not (contract section 7)", () =>
    inAllocator((open) => {
      const scene = open();
      const rules = { ...RULES, newBadgesPerHour: 1 };
      const ask = (name: string, withSecret: boolean) => {
        const invitations = [{ ...NEW_INVITATION, withSecret, digest: digest(name) }];
        return decideInvite(scene, SERVER, { kind: "invite", rules, invitations });
      };
      expect(ask("a", false)).toMatchObject({ kind: "invitations" });
      expect(ask("b", false)).toEqual(refused("RATE_LIMITED"));
      expect(ask("c", true)).toMatchObject({ kind: "invitations" });
      expect(scene.counters.hourUsed).toBe(1);
    }));

  it("inviting refuses the invitations for which no number is left, and the whole call only if it refuses all", () =>
    inAllocator((open) => {
      const scene = open({ rangeSegments: [{ first: 1000, size: 100, used: 99 }] });
      const results = [{ number: 1099 }, { code: "NUMBERS_EXHAUSTED" }];
      expect(invite(scene, { digest: digest("a") }, { digest: digest("b") })).toEqual({ kind: "invitations", results });
      expect(invite(scene, { digest: digest("c") })).toEqual(refused("NUMBERS_EXHAUSTED"));
    }));
});

describe("revoking an invitation (contract sections 5 and 12)", () => {
  const revoke = (scene: Scene, id: typeof DIGEST | number, revoker: Revoker = { kind: "server" }) =>
    decideRevocation(scene, SERVER, { kind: "revoke-invitation", id, revoker });

  it.each([
    ["its token", DIGEST],
    ["its number", 1050],
  ] as const)("revoking an invitation by %s frees the number, with an event and history", (_, id) =>
    inAllocator((open) => {
      const scene = open();
      const { expiresAt } = scene.loadInvitation({ userId: "alice" });
      expect(revoke(scene, id)).toEqual({ kind: "invitation-revoked", number: 1050, expiresAt, revokedAt: NOW });
      expect(scene.changes("badge").deleted).toEqual([1050]);
      expect(scene.changes("freedNumber").inserted).toEqual([{ number: 1050, freedAt: NOW }]);
      expect(eventsOf(scene)).toEqual([{ event: "invitation:revoked", data: { id: "1050", expiresAt } }]);
      expect(scene.actions).toEqual(["invitation:revoked"]);
    }),
  );

  it("revoking again by the token returns the same response; by the freed number it finds no invitation", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ state: "revoked", endedAt: NOW - 5 });
      expect(revoke(scene, DIGEST)).toMatchObject({ kind: "invitation-revoked", revokedAt: NOW - 5 });
      expect(revoke(scene, 1050)).toEqual(refused("UNKNOWN_INVITATION"));
      expect([scene.events, scene.changes("freedNumber").inserted]).toEqual([[], []]);
    }));

  it("the device that created an invitation can revoke it, but another device finds none", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ creatorDevice: device("creator") });
      expect(revoke(scene, DIGEST, { kind: "device", device: device("other") })).toEqual(refused("UNKNOWN_INVITATION"));
      expect(revoke(scene, DIGEST, { kind: "device", device: device("creator") })).toMatchObject({ number: 1050 });
    }));

  it("revoking a claimed invitation is a conflict, by its token and by its number", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ state: "claimed" });
      scene.loadBadge({ number: 1050, invitation: DIGEST });
      expect([revoke(scene, DIGEST), revoke(scene, 1050)]).toEqual(new Array(2).fill(refused("CLAIMED_INVITATION")));
    }));

  it.each([
    ["its token", DIGEST, NOW - 7, "EXPIRED_INVITATION"],
    ["its token in that millisecond", DIGEST, NOW, "EXPIRED_INVITATION"],
    ["its number", 1050, NOW - 7, "UNKNOWN_INVITATION"],
  ] as const)("revoking an invitation after its end by %s is refused, and records the expiry", (_, id, end, code) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ expiresAtTime: end });
      expect(revoke(scene, id)).toEqual(refused(code));
      expect(scene.changes("freedNumber").inserted).toEqual([{ number: 1050, freedAt: end }]);
      expect(scene.history).toMatchObject([{ action: "invitation:expired", actorKind: "service" }]);
    }),
  );
});

describe("what the clock made due (contract sections 5, 12 and 18)", () => {
  it("expired badges and invitations are recorded with their events, and the invitations' numbers are free again", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ expiresAt: NOW });
      scene.loadBadge({ number: 1002, device: device("other"), expiresAt: NOW + 1 });
      scene.loadInvitation({ expiresAtTime: NOW });
      expect(decideDue(scene)).toEqual({ kind: "recorded", isDone: true });
      expect(scene.issued(1001)).toMatchObject({ state: "active", endedAt: NOW, change: 41, statusChange: 41 });
      expect(scene.issued(1002)).toMatchObject({ endedAt: null, change: 10 });
      expect(eventsOf(scene).map(({ event }) => event)).toEqual(["badge:expired", "invitation:expired"]);
      expect(decideDue(scene)).toEqual({ kind: "recorded", isDone: true });
      expect(scene.events).toHaveLength(2);
    }));

  it("recording expiries continues in another transaction if one kind has more than a chunk", () =>
    inAllocator((open) => {
      const scene = open();
      for (let place = 0; place <= DUE_CHUNK_ROWS; place++) {
        scene.loadBadge({ number: 2000 + place, ordinal: place, device: device(`${place}`), expiresAt: NOW - 1 });
      }
      scene.loadBadge({ number: 1002, ordinal: 900, device: device("other"), expiresAt: NOW });
      expect(decideDue(scene)).toEqual({ kind: "recorded", isDone: false });
      expect(scene.issued(1002)?.endedAt).toBeNull();
      expect(decideDue(scene)).toEqual({ kind: "recorded", isDone: true });
      expect(scene.issued(1002)?.endedAt).toBe(NOW);
      const invited = open();
      for (let place = 0; place <= DUE_CHUNK_ROWS; place++) {
        invited.loadInvitation({ digest: digest(`${place}`), number: 2000 + place, expiresAtTime: NOW });
      }
      expect([decideDue(invited), decideDue(invited)]).toMatchObject([{ isDone: false }, { isDone: true }]);
    }));
});

it("an invitation is deleted once it, or the badge that it was claimed for, ended long enough ago (contract section 18)", () =>
  inAllocator((open) => {
    const scene = open();
    const invitations = [
      ["pending", "pending", null],
      ["in use", "claimed", null],
      ["used until later", "claimed", NOW + 1],
      ["revoked later", "revoked", NOW + 1],
      ["expired later", "expired", NOW + 1],
      ["used", "claimed", NOW],
      ["revoked", "revoked", NOW],
      ["expired", "expired", NOW],
    ] as const;
    for (const [place, [name, state, endedAt]] of invitations.entries()) {
      const [number, isClaimed] = [2000 + place, state === "claimed"];
      scene.loadInvitation({ digest: digest(name), number, state, endedAt: isClaimed ? NOW - 5 : endedAt });
      if (isClaimed) scene.loadBadge({ number, ordinal: place, device: device(name), endedAt });
    }
    decidePurge(scene, "", NOW);
    expect(scene.changes("invitation").deleted.toSorted()).toEqual(["expired", "revoked", "used"]);
  }));

it("old invitations are deleted in steps, each of which goes on where the one before ended (contract section 18)", () =>
  inAllocator((open) => {
    const scene = open();
    const nameOf = (place: number) => `digest ${String(place).padStart(4, "0")}`;
    for (let place = 0; place <= PURGE_INVITATIONS; place++) {
      const endedAt = place % 2 ? NOW + 1 : NOW;
      scene.loadInvitation({ digest: digest(nameOf(place)), number: 2000 + place, state: "revoked", endedAt });
    }
    const after = nameOf(PURGE_INVITATIONS - 1);
    expect(decidePurge(scene, "", NOW)).toEqual({ kind: "recorded", isDone: false, after });
    expect(decidePurge(scene, after, NOW)).toMatchObject({ kind: "recorded", isDone: true });
    const { deleted } = scene.changes("invitation");
    expect(deleted).toEqual(Array.from({ length: PURGE_INVITATIONS / 2 + 1 }, (_, place) => nameOf(2 * place)));
  }));

describe("erasing an invitation (contract section 24)", () => {
  const erase = (scene: Scene, id: typeof DIGEST | number) =>
    decideInvitationErasure(scene, SERVER, { kind: "erase-invitation", id });

  it.each([
    ["its token", DIGEST],
    ["its number", 1050],
  ] as const)("erasing a pending invitation by %s revokes it, and deletes its name and user ID", (_, id) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ name: "Ada", userId: "alice" });
      expect(erase(scene, id)).toEqual({ kind: "invitation-erased", number: 1050 });
      expect(scene.tables.invitation(DIGEST)).toMatchObject({ state: "revoked", name: null, userId: null });
      expect(scene.changes("freedNumber").inserted).toEqual([{ number: 1050, freedAt: NOW }]);
      expect(scene.actions).toEqual(["invitation:revoked"]);
      expect(JSON.stringify(scene.entries)).not.toMatch(/Ada|alice/);
      expect(erase(scene, DIGEST)).toEqual({ kind: "invitation-erased", number: 1050 });
    }),
  );

  it("an erased invitation that had ended keeps its state, and is not found by its number, which is free", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ state: "expired", endedAt: NOW - 1, name: "Ada" });
      expect(erase(scene, 1050)).toEqual(refused("UNKNOWN_INVITATION"));
      expect(erase(scene, DIGEST)).toMatchObject({ number: 1050 });
      expect(scene.tables.invitation(DIGEST)).toMatchObject({ state: "expired", endedAt: NOW - 1, name: null });
      expect(scene.history).toEqual([]);
    }));

  it.each([
    ["its token", DIGEST, { kind: "invitation-erased", number: 1050 }, null],
    ["its number", 1050, refused("UNKNOWN_INVITATION"), "Ada"],
  ] as const)(
    "erasing an invitation after its end by %s records the expiry, and revokes nothing",
    (_, id, result, name) =>
      inAllocator((open) => {
        const scene = open();
        scene.loadInvitation({ expiresAtTime: NOW - 7, name: "Ada" });
        expect(erase(scene, id)).toEqual(result);
        expect(scene.tables.invitation(DIGEST)).toMatchObject({ state: "expired", endedAt: NOW - 7, name });
        expect(scene.changes("freedNumber").inserted).toEqual([{ number: 1050, freedAt: NOW - 7 }]);
        expect(scene.history).toMatchObject([{ action: "invitation:expired", actorKind: "service" }]);
      }),
  );
});

describe("which number is next (contract sections 1, 5 and 21)", () => {
  const take = (scene: Scene, more: Partial<Rules> = {}) => takeNumber(scene, { ...RULES, ...more });

  it("fresh numbers are used before freed ones", () =>
    inAllocator((open) => {
      const scene = open({ rangeSegments: [{ first: 1000, size: 100, used: 99 }] });
      scene.loadFreed(1001, 0);
      expect([take(scene), take(scene), take(scene)]).toEqual([1099, 1001, null]);
      expect(scene.changes("freedNumber").deleted).toEqual([1001]);
    }));

  it("a freed number is used only after its reuse delay, drawn at random", () =>
    inAllocator((open) => {
      const scene = open(FULL);
      for (const [number, age] of [
        [1001, 11],
        [1002, 10],
        [1003, 9],
        // By a clock ahead of this one.
        [1004, -1],
      ] as const) {
        scene.loadFreed(number, NOW - age * 1000);
      }
      expect([1, 2, 3].map(() => take(scene, { reuseAfterSeconds: 10 }))).toEqual([1002, 1001, null]);
      expect([take(scene), take(scene)]).toEqual([1004, 1003]);
    }));

  it("after the range has grown, numbers come from the new part, also for a caller that knows the old end", () =>
    inAllocator((open) => {
      const scene = open(FULL);
      expect(take(scene)).toBeNull();
      expect(take(scene, { range: { first: 1000, last: 1149 } })).toBe(1100);
      expect(scene.counters.rangeSegments).toEqual([...FULL.rangeSegments, { first: 1100, size: 50, used: 1 }]);
      expect(take(scene)).toBe(1101);
    }));
});
