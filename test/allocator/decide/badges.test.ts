import { describe, expect, it } from "vitest";
import type { Transition } from "../../../src/worker/allocator/decide/next-state.ts";
import { decideBadge } from "../../../src/worker/allocator/decide/request-badge.ts";
import { decideTransition } from "../../../src/worker/allocator/decide/transition.ts";
import {
  BY_CLOCK,
  DEVICE,
  device,
  digestOfUser,
  eventsOf,
  HOUR,
  inAllocator,
  NOW,
  PHONE,
  RULES,
  refused,
  request,
  type Scene,
  SERVER,
} from "./support.ts";

describe("a new badge (contract sections 1, 2, 8 and 13)", () => {
  it("a new badge gets the next fresh number, ordinal, change number and login sequence number, and one event", () =>
    inAllocator((open) => {
      const scene = open();
      const told = decideBadge(scene, DEVICE, request({ metadata: '{"os":"iOS"}', keyThumbprint: "key-1" }));
      expect(told).toEqual({ kind: "created", number: 1010, keyThumbprint: "key-1" });
      expect(scene.tables.badge(1010)).toMatchObject({
        ...{ device: PHONE, userId: "alice", ordinal: 21, change: 41, loginSequence: 1, state: "active" },
        ...{ issuedAt: NOW, changedAt: NOW, signingKeyId: 5, statusChange: null, eventId: scene.events[0]?.payload.id },
      });
      expect(scene.counters).toMatchObject({ lastOrdinal: 21, lastChange: 41 });
      expect(scene.counters.rangeSegments).toEqual([{ first: 1000, size: 100, used: 11 }]);
      const data = { id: "1010", userId: "alice", metadata: { os: "iOS" }, keyThumbprint: "key-1" };
      expect(eventsOf(scene)).toEqual([{ event: "badge:created", data }]);
      expect(scene.actions).toEqual([]);
    }));

  it("each further user of a device gets a badge with another number, which becomes the current one", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge();
      expect(decideBadge(scene, DEVICE, request({ userId: "bob" }))).toMatchObject({ kind: "created", number: 1010 });
      expect(decideBadge(scene, DEVICE, request({ userId: "carol" }))).toMatchObject({ kind: "created", number: 1011 });
      expect([1001, 1010, 1011].map((number) => scene.issued(number)?.loginSequence)).toEqual([1, 2, 3]);
    }));

  it("a badge that is requested twice in one group is issued once", () =>
    inAllocator((open) => {
      const scene = open();
      expect(decideBadge(scene, DEVICE, request())).toMatchObject({ kind: "created", number: 1010 });
      expect(decideBadge(scene, DEVICE, request())).toMatchObject({ kind: "existing", number: 1010 });
      expect(scene.events).toHaveLength(1);
    }));

  it.each<[string, string, (open: Parameters<Parameters<typeof inAllocator>[0]>[0]) => Scene, object]>([
    ["to a blocked user", "BLOCKED_USER", (open) => blocking(open(), "alice"), {}],
    ["to one who was erased while blocked", "BLOCKED_USER", (open) => blocking(open(), "erased:1"), {}],
    [
      "to a blocked user when the hour's new badges are used up (contract section 7)",
      "BLOCKED_USER",
      (open) => blocking(open({ hour: NOW / HOUR, hourUsed: 1 }), "alice"),
      { rules: { ...RULES, newBadgesPerHour: 1 } },
    ],
    ["without the identity provider", "INVALID_USERTOKEN", (open) => open(), { isVerified: false }],
    [
      "when no number is left",
      "NUMBERS_EXHAUSTED",
      (open) => open({ rangeSegments: [{ first: 1000, size: 100, used: 100 }] }),
      {},
    ],
  ])("is refused %s, and uses nothing up", (_, code, prepare, more) =>
    inAllocator((open) => {
      const scene = prepare(open);
      expect(decideBadge(scene, DEVICE, request(more))).toEqual(refused(code));
      expect([scene.entries, scene.counters.lastChange, scene.counters.lastOrdinal]).toEqual([[], 40, 20]);
    }),
  );

  it("a new badge counts for the hour's limit, but a login does not (contract section 7)", () =>
    inAllocator((open) => {
      const rules = { ...RULES, newBadgesPerHour: 1 };
      const scene = open();
      const ask = (name: string) => decideBadge(scene, DEVICE, request({ rules, device: device(name) }));
      expect(ask("one")).toMatchObject({ kind: "created" });
      expect(ask("one")).toMatchObject({ kind: "existing" });
      expect(ask("two")).toEqual(refused("RATE_LIMITED"));
      const later = open({ hour: NOW / HOUR - 1, hourUsed: 1 });
      expect(decideBadge(later, DEVICE, request({ rules }))).toMatchObject({ kind: "created" });
      expect(later.counters).toMatchObject({ hour: NOW / HOUR, hourUsed: 1 });
    }));

  it("the entry of the first badge with a signing key contains the key (contract section 21)", () =>
    inAllocator((open) => {
      const known = open();
      decideBadge(known, DEVICE, request());
      expect(known.entries[0]?.changes.keys).toEqual([]);
      const first = open({ lastSigningKey: 4 });
      decideBadge(first, DEVICE, request());
      expect([...(first.entries[0]?.changes.keys ?? []), first.counters.lastSigningKey]).toEqual([RULES.signingKey, 5]);
    }));

  it("an entry contains every new signing key if its callers know different ones (contract sections 9 and 21)", () =>
    inAllocator((open) => {
      const scene = open();
      const newer = { ...RULES.signingKey, id: 6 };
      decideBadge(scene, DEVICE, request({ rules: { ...RULES, signingKey: newer }, device: device("one") }));
      decideBadge(scene, DEVICE, request({ device: device("two") }));
      expect(scene.entries[0]?.changes.keys.map(({ id }) => id)).toEqual([6, 5]);
      expect(scene.counters.lastSigningKey).toBe(5);
    }));
});

const SUSPENDED_OF_A = { keyThumbprint: "a", state: "suspended" } as const;

/** Alice is blocked: under her ID, or under an alias and the digest of her ID. */
function blocking(scene: Scene, userId: string): Scene {
  scene.loadBlock(userId, NOW, userId === "alice" ? null : digestOfUser("alice"));
  return scene;
}

describe("a login (contract sections 1, 2 and 12)", () => {
  it("a login with the device's current badge stores nothing", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge();
      expect(decideBadge(scene, DEVICE, request())).toEqual({ kind: "existing", number: 1001, keyThumbprint: null });
      expect(scene.changes("badge").updated).toEqual([]);
    }));

  it("a login makes its badge the device's current one without a change number", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge();
      scene.loadBadge({ number: 1002, userId: "bob", loginSequence: 4 });
      decideBadge(scene, DEVICE, request());
      expect(scene.changes("badge").updated).toEqual([{ key: 1001, columns: { loginSequence: 5 } }]);
      expect(scene.counters.lastChange).toBe(40);
    }));

  it("a login replaces metadata that differs, which is a change, and keeps it when none is sent", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ metadata: '{"os":"iOS"}' });
      decideBadge(scene, DEVICE, request());
      expect(scene.issued(1001)?.metadata).toBe('{"os":"iOS"}');
      decideBadge(scene, DEVICE, request({ metadata: '{"os":"Android"}' }));
      const columns = { metadata: { os: "Android" }, change: 41, changedAt: NOW };
      expect(scene.changes("badge").updated).toEqual([{ key: 1001, columns }]);
      expect(scene.events).toEqual([]);
    }));

  it.each([
    ["suspended", { state: "suspended" }, "SUSPENDED_BADGE"],
    ["revoked", { state: "revoked", endedAt: NOW }, "REVOKED_BADGE"],
    ["expired", { expiresAt: NOW }, "EXPIRED_BADGE"],
  ] as const)("a login with a badge that is %s is refused, whether or not its user is blocked", (_, more, code) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge(more);
      scene.loadBlock("alice");
      expect(decideBadge(scene, DEVICE, request({ metadata: "{}" }))).toEqual(refused(code));
      expect(scene.changes("badge").updated).toEqual([]);
    }),
  );

  it.each([
    ["with the badge's key", { keyThumbprint: "a" }, "a", {}, "existing"],
    ["without a proof", { keyThumbprint: "a" }, null, {}, "INVALID_PROOF"],
    ["with another key", { keyThumbprint: "a" }, "b", {}, "INVALID_PROOF"],
    ["of an unbound badge where proofs are required", {}, "a", { requireProof: true }, "INVALID_PROOF"],
    ["of a suspended badge with another key, which learns no state", SUSPENDED_OF_A, "b", {}, "INVALID_PROOF"],
  ])("%s (contract section 15)", (_, more, keyThumbprint, rules, expected) =>
    inAllocator((open) => {
      const scene = open();
      const before = scene.loadBadge(more);
      const told = decideBadge(scene, DEVICE, request({ keyThumbprint, rules: { ...RULES, ...rules } }));
      expect("code" in told ? told.code : told.kind).toBe(expected);
      expect(scene.issued(1001)?.keyThumbprint).toBe(before.keyThumbprint);
    }),
  );

  it.each([
    ["until --bind-until", {}, { bindUntil: NOW + 1 }, "b"],
    ["not from --bind-until on", {}, { bindUntil: NOW }, null],
    ["while the badge is to be rebound", { keyThumbprint: "a", rebindUntil: NOW + 1 }, {}, "b"],
    ["not when that has ended", { keyThumbprint: "a", rebindUntil: NOW }, {}, "a"],
    ["not by --bind-until when it is bound to another key", { keyThumbprint: "a" }, { bindUntil: NOW + 1 }, "a"],
  ])("a login binds the badge to another key %s (contract section 15)", (_, more, rules, bound) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge(more);
      decideBadge(scene, DEVICE, request({ keyThumbprint: "b", rules: { ...RULES, ...rules } }));
      expect(scene.issued(1001)?.keyThumbprint ?? null).toBe(bound);
      if (bound === "b") expect(scene.issued(1001)).toMatchObject({ rebindUntil: null, change: 41 });
    }),
  );
});

describe("a change of a badge's state (contract sections 12, 15 and 24)", () => {
  const take = (scene: Scene, step: Transition, ifChange: number[] | null = null) =>
    decideTransition(scene, SERVER, { kind: "transition", number: 1001, transition: step, ifChange, ownedBy: null });

  it.each([
    ["suspend", {}, { state: "suspended" }, "badge:suspended"],
    ["resume", { state: "suspended" }, { state: "active" }, "badge:resumed"],
    ["revoke", { state: "suspended" }, { state: "revoked", endedAt: NOW }, "badge:revoked"],
    ["revoke", { expiresAt: NOW, endedAt: NOW }, { state: "revoked", endedAt: NOW }, "badge:revoked"],
  ] as const)("%s of %o is stored with its event, its history and its change numbers", (kind, more, after, event) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge(more);
      expect(take(scene, { kind })).toMatchObject({ kind: "badge", badge: { ...after, change: 41, statusChange: 41 } });
      expect(eventsOf(scene)).toMatchObject([{ event, data: { id: "1001", state: after.state, change: 41 } }]);
      expect(scene.actions).toEqual([event]);
    }),
  );

  it.each([
    ["suspend", { state: "suspended" }],
    ["resume", {}],
    ["revoke", { state: "revoked", endedAt: NOW }],
  ] as const)("%s again changes nothing and creates no event", (kind, more) =>
    inAllocator((open) => {
      const scene = open();
      const before = scene.loadBadge(more);
      expect(take(scene, { kind })).toEqual({ kind: "badge", badge: before });
      expect([scene.events, scene.history, scene.counters.lastChange]).toEqual([[], [], 40]);
    }),
  );

  it.each([
    ["suspend", { expiresAt: NOW }],
    ["resume", { expiresAt: NOW, state: "suspended" }],
    ["suspend", { state: "revoked", endedAt: NOW }],
    ["revoke", { state: "replaced", endedAt: NOW, supersededAt: NOW }],
    ["rebind", { state: "revoked", endedAt: NOW }],
  ] as const)("%s of %o is refused", (kind, more) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge(more);
      expect(take(scene, { kind })).toEqual(refused("ENDED_BADGE"));
    }),
  );

  it("a transition is refused with another change number, for another user's badge, and for a badge that was not issued", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge();
      expect(take(scene, { kind: "suspend" }, [9, 11])).toEqual(refused("CHANGED_BADGE"));
      const others = {
        kind: "transition",
        number: 1001,
        transition: { kind: "suspend" },
        ifChange: null,
        ownedBy: "bob",
      } as const;
      expect(decideTransition(scene, SERVER, others)).toEqual(refused("UNKNOWN_BADGE"));
      expect(decideTransition(scene, SERVER, { ...others, number: 1009, ownedBy: null })).toEqual(
        refused("UNKNOWN_BADGE"),
      );
      expect(take(scene, { kind: "suspend" }, [9, 10])).toMatchObject({ kind: "badge" });
    }));

  it("reschedule sets start and end independently, and refuses a start that is not before the end", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ expiresAt: NOW + HOUR });
      expect(take(scene, { kind: "reschedule", startsAt: NOW + HOUR })).toEqual(refused("INVALID_STARTSAT"));
      const started = take(scene, { kind: "reschedule", startsAt: NOW + 1 });
      expect(started).toMatchObject({
        badge: { startsAt: NOW + 1, expiresAt: NOW + HOUR, change: 41, statusChange: null },
      });
      const ended = take(scene, { kind: "reschedule", startsAt: null, expiresAt: NOW });
      expect(ended).toMatchObject({
        badge: { startsAt: null, expiresAt: NOW, endedAt: NOW, change: 42, statusChange: 42 },
      });
      expect(eventsOf(scene)).toMatchObject([{ event: "badge:expired" }]);
      expect(take(scene, { kind: "reschedule", expiresAt: null })).toMatchObject({
        badge: { endedAt: null, change: 43 },
      });
      expect(eventsOf(scene)[1]).toMatchObject({ event: "badge:resumed", data: { state: "active" } });
      const rescheduled = "badge:rescheduled";
      expect(scene.actions).toEqual([rescheduled, rescheduled, "badge:expired", rescheduled, "badge:resumed"]);
    }));

  it("rebind opens a window of 24 hours, changes nothing that callers see, and restarts the window when repeated", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ rebindUntil: NOW - 1 });
      take(scene, { kind: "rebind" });
      const columns = { rebindUntil: NOW + 24 * HOUR };
      expect(scene.changes("badge").updated).toEqual([{ key: 1001, columns }]);
      expect([scene.counters.lastChange, scene.events, scene.actions]).toEqual([40, [], ["badge:rebound"]]);
    }));

  it("an expiry by the clock has the service as its actor (contract section 23)", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ expiresAt: NOW });
      decideTransition(scene, BY_CLOCK, {
        kind: "transition",
        number: 1001,
        transition: { kind: "expire" },
        ifChange: null,
        ownedBy: null,
      });
      expect(scene.history).toMatchObject([{ action: "badge:expired", actorKind: "service", badge: 1001 }]);
    }));
});
