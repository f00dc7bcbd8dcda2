import { describe, expect, it } from "vitest";
import { invitationDigest } from "../../../src/shared/identifiers.ts";
import { ENDS_CHUNK_ROWS, PURGE_INVITATIONS } from "../../../src/shared/limits/allocator-limits.ts";
import { isoTime } from "../../../src/shared/time.ts";
import type { NewInvitation, Result, Revoker, Rules } from "../../../src/worker/allocator/commands.ts";
import {
  decideInvitationErasure,
  decideInvite,
  decideRevocation,
} from "../../../src/worker/allocator/decide/invitation.ts";
import { decidePurge } from "../../../src/worker/allocator/decide/purge-invitations.ts";
import { decideEnds } from "../../../src/worker/allocator/decide/record-ends.ts";
import { takeNumber } from "../../../src/worker/allocator/decide/take-number.ts";
import {
  DIGEST,
  device,
  eventsOf,
  HOUR,
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

const resultsOf = (result: Result) => (result.kind === "invitations" ? result.results : result);

const DAY = 24 * HOUR;

const FULL = { rangeSegments: [{ first: 1000, size: 100, used: 100 }] };

describe("inviting (contract sections 5, 12 and 24)", () => {
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

  const [now, soon] = [{ badgeExpiresAtTime: NOW }, { badgeExpiresAtTime: NOW + 1 }];

  it.each([
    ["the end of an invitation now", { expiresAt: isoTime(NOW) }, "INVALID_EXPIRESAT"],
    ["the end of an invitation after 365 days", { expiresAt: isoTime(NOW + 365 * DAY) }, null],
    ["the end of an invitation later", { expiresAt: isoTime(NOW + 365 * DAY + 1) }, "INVALID_EXPIRESAT"],
    ["the end of its badge now", now, "INVALID_BADGEEXPIRESAT"],
    ["the end of its badge after 3,650 days", { badgeExpiresAtTime: NOW + 3650 * DAY }, null],
    ["the end of its badge later", { badgeExpiresAtTime: NOW + 3650 * DAY + 1 }, "INVALID_BADGEEXPIRESAT"],
    ["the start of its badge at its end", { ...soon, badgeStartsAtTime: NOW + 1 }, "INVALID_STARTSAT"],
    ["the start of its badge before its end, in the past", { ...soon, badgeStartsAtTime: NOW }, null],
  ])("%s is compared with the clock, but not when the same Idempotency-Key was used before", (_, times, code) =>
    inAllocator((open) => {
      const scene = open();
      expect(resultsOf(invite(scene, times))).toEqual([code === null ? { number: 1010 } : { code }]);
      scene.loadInvitation({ ...times, digest: digest("kept"), state: "expired" });
      expect(resultsOf(invite(scene, { ...times, digest: digest("kept") }))).toEqual([{ number: 1050 }]);
    }),
  );

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

  it("a number that was freed and reserved again in one group belongs only to its new invitation (contract section 5)", () =>
    inAllocator((open) => {
      const scene = open(FULL);
      scene.loadInvitation();
      revoke(scene, DIGEST);
      invite(scene, { digest: digest("another") });
      expect(scene.changes("badge")).toMatchObject({ inserted: [], updated: [{ key: 1050 }], deleted: [] });
      expect(scene.tables.badge(1050)?.invitation).toBe("another");
      expect(scene.changes("freedNumber")).toEqual({ inserted: [], updated: [], deleted: [] });
      expect(scene.tables.invitation(DIGEST)?.state).toBe("revoked");
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
      expect(decideEnds(scene)).toEqual({ kind: "recorded", isDone: true });
      expect(scene.issued(1001)).toMatchObject({ state: "active", endedAt: NOW, change: 41, statusChange: 41 });
      expect(scene.issued(1002)).toMatchObject({ endedAt: null, change: 10 });
      expect(eventsOf(scene).map(({ event }) => event)).toEqual(["badge:expired", "invitation:expired"]);
      expect(decideEnds(scene)).toEqual({ kind: "recorded", isDone: true });
      expect(scene.events).toHaveLength(2);
    }));

  it("recording the ends of invitations continues in another transaction if there are more than a chunk", () =>
    inAllocator((open) => {
      const scene = open();
      for (let place = 0; place <= ENDS_CHUNK_ROWS; place++) {
        scene.loadInvitation({ digest: digest(`${place}`), number: 2000 + place, expiresAtTime: NOW });
      }
      expect([decideEnds(scene), decideEnds(scene)]).toMatchObject([{ isDone: false }, { isDone: true }]);
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

  const REVOKED = [{ action: "invitation:revoked", actorKind: "server" }];
  const EXPIRED = [{ action: "invitation:expired", actorKind: "service" }];
  const [ended, past] = [{ state: "expired", endedAt: NOW - 7 } as const, { expiresAtTime: NOW - 7 }];

  it.each([
    ["a pending invitation by its token revokes it, and deletes whom it names", {}, DIGEST, "revoked", REVOKED],
    ["a pending invitation by its number does the same", {}, 1050, "revoked", REVOKED],
    ["an ended invitation by its token keeps its state", ended, DIGEST, "expired", []],
    ["an ended invitation by its number, which is free, does not find it", ended, 1050, "expired", []],
    ["an invitation after its end by its token records the expiry", past, DIGEST, "expired", EXPIRED],
    ["an invitation after its end by its number records the expiry alone", past, 1050, "expired", EXPIRED],
  ] as const)("erasing %s", (_, more, id, state, history) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadInvitation({ name: "Ada", userId: "alice", ...more });
      const endedAt = state === "revoked" ? NOW : NOW - 7;
      const isFound = id === DIGEST || state === "revoked";
      const told = isFound ? { kind: "invitation-erased", number: 1050 } : refused("UNKNOWN_INVITATION");
      expect(erase(scene, id)).toEqual(told);
      const named = isFound ? { name: null, userId: null } : { name: "Ada", userId: "alice" };
      expect(scene.tables.invitation(DIGEST)).toMatchObject({ state, endedAt, ...named });
      expect(scene.history).toMatchObject(history);
      const freed = history.length > 0 ? [{ number: 1050, freedAt: endedAt }] : [];
      expect(scene.changes("freedNumber").inserted).toEqual(freed);
      if (!isFound) return;
      expect(JSON.stringify(scene.entries)).not.toMatch(/Ada|alice/);
      expect(erase(scene, DIGEST)).toEqual(told);
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
