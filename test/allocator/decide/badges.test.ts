import { describe, expect, it } from "vitest";
import { INITIAL_HEAD } from "../../../src/shared/initial-head.ts";
import { MAX_ENTRY_CHARACTERS } from "../../../src/shared/limits/allocator-limits.ts";
import type { Transition } from "../../../src/worker/allocator/decide/next-state.ts";
import { decideBadge } from "../../../src/worker/allocator/decide/request-badge.ts";
import { decideTransition } from "../../../src/worker/allocator/decide/transition.ts";
import { NetChanges } from "../../../src/worker/allocator/net-changes.ts";
import {
  DEVICE,
  device,
  eventsOf,
  HOUR,
  inAllocator,
  NOW,
  RULES,
  refused,
  request,
  type Scene,
  SERVER,
} from "./support.ts";

describe("a new badge (contract sections 1, 2, 8 and 13)", () => {
  it("a blocked user gets BLOCKED_USER even if this hour's new badges are used up, and no number is taken (contract section 7)", () =>
    inAllocator((open) => {
      const scene = open({ hour: NOW / HOUR, hourUsed: 1 });
      scene.loadBlock("alice");
      const refusal = decideBadge(scene, DEVICE, request({ rules: { ...RULES, newBadgesPerHour: 1 } }));
      expect(refusal).toEqual(refused("BLOCKED_USER"));
      expect([scene.entries, scene.counters.lastChange, scene.counters.lastOrdinal]).toEqual([[], 40, 20]);
    }));

  it("a new badge counts for the hour's limit, but a login does not (contract section 7)", () =>
    inAllocator((open) => {
      const rules = { ...RULES, newBadgesPerHour: 1 };
      const scene = open();
      const ask = (name: string) => decideBadge(scene, DEVICE, request({ rules, device: device(name) }));
      expect(ask("one")).toMatchObject({ kind: "created" });
      expect(ask("one")).toMatchObject({ kind: "existing" });
      expect(ask("two")).toEqual(refused("RATE_LIMITED"));
    }));

  it("all badges of a day's first entry count for that day (contract section 19)", () =>
    inAllocator((open) => {
      const yesterday = { day: Math.floor(NOW / (24 * HOUR)) - 1, count: 2 };
      const scene = open({ statistics: { ...INITIAL_HEAD.statistics, newBadges: yesterday } });
      for (const name of ["one", "two", "three"]) decideBadge(scene, DEVICE, request({ device: device(name) }));
      expect(scene.entries.map(({ changes }) => changes.endedDay)).toEqual([yesterday]);
      expect(scene.counters.statistics.newBadges).toEqual({ day: yesterday.day + 1, count: 3 });
    }));

  it("an entry contains every new signing key, also if its callers know different ones (contract sections 9 and 21)", () =>
    inAllocator((open) => {
      const scene = open();
      decideBadge(scene, DEVICE, request());
      expect(scene.counters.lastSigningKey).toBe(5);
      const newer = { ...RULES.signingKey, id: 6 };
      decideBadge(scene, DEVICE, request({ rules: { ...RULES, signingKey: newer }, device: device("one") }));
      decideBadge(scene, DEVICE, request({ device: device("two") }));
      expect(scene.entries[0]?.changes.keys).toEqual([newer, RULES.signingKey]);
      expect(scene.counters.lastSigningKey).toBe(5);
    }));
});

describe("a login (contract sections 1, 2 and 12)", () => {
  it("a login makes its badge the device's current one without a change number", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge();
      scene.loadBadge({ number: 1002, userId: "bob", loginSequence: 4 });
      decideBadge(scene, DEVICE, request());
      expect(scene.changes("badge").updated).toEqual([{ key: 1001, columns: { loginSequence: 5 } }]);
      expect(scene.counters.lastChange).toBe(40);
    }));

  it("a blocked user who logs in with a revoked badge gets REVOKED_BADGE, and nothing changes", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ state: "revoked", endedAt: NOW });
      scene.loadBlock("alice");
      expect(decideBadge(scene, DEVICE, request({ metadata: "{}" }))).toEqual(refused("REVOKED_BADGE"));
      expect(scene.entries).toEqual([]);
    }));

  it.each([
    ["while the badge is to be rebound", NOW + 1, { keyThumbprint: "b", rebindUntil: null, change: 41 }],
    ["not when that has ended", NOW, { keyThumbprint: "a", change: 10 }],
  ])("a login binds the badge to another key %s (contract section 15)", (_, rebindUntil, bound) =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ keyThumbprint: "a", rebindUntil });
      decideBadge(scene, DEVICE, request({ keyThumbprint: "b" }));
      expect(scene.issued(1001)).toMatchObject(bound);
    }),
  );
});

describe("a change of a badge's state (contract sections 12, 15 and 24)", () => {
  const take = (scene: Scene, transition: Transition) =>
    decideTransition(scene, SERVER, { kind: "transition", number: 1001, transition, ifChange: null, ownedBy: null });

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
});

describe("an entry (contract section 21)", () => {
  it.each([
    [["insert", "delete"], []],
    [["delete", "insert"], [{ op: "update", rows: [[7, 2]] }]],
    [["update", "update"], [{ op: "update", rows: [[7, 2]] }]],
    [["update", "delete"], [{ op: "delete", rows: [[7]] }]],
  ] as const)("%j of one row in a group is stored as %j", (steps, expected) => {
    const changes = new NetChanges();
    for (const [place, op] of steps.entries()) {
      changes.add(op, "freedNumber", 7, op === "delete" ? {} : { freedAt: place + 1 });
    }
    expect(changes.toWrites()).toMatchObject(expected);
    expect(changes.isEmpty).toBe(expected.length === 0);
  });

  it("a group takes no further call when the texts of its rows fill the entry", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge();
      const isFullAfter = (letter: string) => {
        const metadata = JSON.stringify({ os: letter.repeat(MAX_ENTRY_CHARACTERS / 2) });
        decideBadge(scene, DEVICE, request({ metadata }));
        return scene.isFull;
      };
      expect([isFullAfter("a"), isFullAfter("b")]).toEqual([false, true]);
    }));
});
