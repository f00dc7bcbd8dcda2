import { describe, expect, it } from "vitest";
import { REBIND_WINDOW_HOURS } from "../../../src/shared/limits.ts";
import type { Step } from "../../../src/worker/allocator/decide/states.ts";
import { decideBadge } from "../../../src/worker/core/decide/badge.ts";
import { decideStepCommand } from "../../../src/worker/core/decide/step.ts";
import {
  actionsOf,
  BY_CLOCK,
  DEVICE,
  device,
  draftAt,
  eventsOf,
  HOUR,
  loadBadge,
  NOW,
  PHONE,
  RULES,
  refused,
  request,
  SERVER,
} from "./support.ts";

describe("a new badge (contract sections 1, 2, 8 and 13)", () => {
  it("gets the next fresh number, list position, change number and turn, and tells of itself once", () => {
    const draft = draftAt();
    const told = decideBadge(draft, DEVICE, request({ metadata: '{"os":"iOS"}', keyThumbprint: "key-1" }));
    expect(told).toEqual({ kind: "created", number: 1010, keyThumbprint: "key-1" });
    expect(draft.badges.get(1010)).toMatchObject({
      ...{ device: PHONE, userId: "alice", position: 21, change: 41, turn: 1, state: "active" },
      ...{ issuedAt: NOW, changedAt: NOW, signingKeyId: 5, statusChange: null, eventId: draft.events[0]?.id },
    });
    expect(draft.position).toMatchObject({ lastPosition: 21, lastChange: 41 });
    expect(draft.position.fresh).toEqual([{ first: 1000, size: 100, used: 11 }]);
    const data = { id: "1010", userId: "alice", metadata: { os: "iOS" }, keyThumbprint: "key-1" };
    expect(eventsOf(draft)).toEqual([{ event: "badge:created", data }]);
    expect(actionsOf(draft)).toEqual([]);
  });

  it("of each further user of a device gets a number of its own and becomes the current one", () => {
    const draft = draftAt();
    loadBadge(draft);
    expect(decideBadge(draft, DEVICE, request({ userId: "bob" }))).toMatchObject({ kind: "created", number: 1010 });
    expect(decideBadge(draft, DEVICE, request({ userId: "carol" }))).toMatchObject({ kind: "created", number: 1011 });
    expect([1001, 1010, 1011].map((number) => draft.issued(number)?.turn)).toEqual([1, 2, 3]);
  });

  it("is asked for twice in one group, and is one badge", () => {
    const draft = draftAt();
    expect(decideBadge(draft, DEVICE, request())).toMatchObject({ kind: "created", number: 1010 });
    expect(decideBadge(draft, DEVICE, request())).toMatchObject({ kind: "existing", number: 1010 });
    expect(draft.events).toHaveLength(1);
  });

  it("is refused to a blocked user, without the identity provider, and when no number is left, and uses nothing up", () => {
    const blocked = draftAt();
    blocked.blocks.load("alice", BLOCK);
    const exhausted = draftAt(NOW, { fresh: [{ first: 1000, size: 100, used: 100 }] });
    expect(decideBadge(blocked, DEVICE, request())).toEqual(refused("BLOCKED_USER"));
    expect(decideBadge(exhausted, DEVICE, request())).toEqual(refused("NUMBERS_EXHAUSTED"));
    const unverified = draftAt();
    expect(decideBadge(unverified, DEVICE, request({ isVerified: false }))).toEqual(refused("INVALID_USERTOKEN"));
    for (const draft of [blocked, exhausted, unverified]) {
      expect([draft.events, draft.position.lastChange, draft.position.lastPosition]).toEqual([[], 40, 20]);
      expect(draft.badges.changes()).toEqual({ inserted: [], updated: [], deleted: [] });
    }
  });

  it("counts for the hour's limit, and a login does not (contract section 7)", () => {
    const rules = { ...RULES, newBadgesPerHour: 1 };
    const draft = draftAt();
    const ask = (name: string) => decideBadge(draft, DEVICE, request({ rules, device: device(name) }));
    expect(ask("one")).toMatchObject({ kind: "created" });
    expect(ask("one")).toMatchObject({ kind: "existing" });
    expect(ask("two")).toEqual(refused("RATE_LIMITED"));
    const later = draftAt(NOW, { hourStartedAt: NOW - HOUR, hourUsed: 1 });
    expect(decideBadge(later, DEVICE, request({ rules }))).toMatchObject({ kind: "created" });
    expect(later.position).toMatchObject({ hourStartedAt: NOW, hourUsed: 1 });
  });

  it("carries its signing key if it is the first one with it (contract section 21)", () => {
    const known = draftAt();
    decideBadge(known, DEVICE, request());
    expect(known.signingKeys.size).toBe(0);
    const first = draftAt(NOW, { lastSigningKey: 4 });
    decideBadge(first, DEVICE, request());
    expect([...first.signingKeys.values(), first.position.lastSigningKey]).toEqual([RULES.signingKey, 5]);
  });

  it("carries every such key if its callers do not know the same one yet (contract sections 9 and 21)", () => {
    const draft = draftAt();
    const newer = { ...RULES.signingKey, id: 6 };
    decideBadge(draft, DEVICE, request({ rules: { ...RULES, signingKey: newer }, device: device("one") }));
    decideBadge(draft, DEVICE, request({ device: device("two") }));
    expect([...draft.signingKeys.keys()].sort()).toEqual([5, 6]);
    expect(draft.position.lastSigningKey).toBe(5);
  });
});

const SUSPENDED_OF_A = { keyThumbprint: "a", state: "suspended" } as const;

const BLOCK = {
  userId: "alice",
  blockedAt: NOW,
  isRevoking: false,
  throughPosition: 9,
  donePosition: 9,
  afterChange: 3,
};

describe("a login (contract sections 1, 2 and 12)", () => {
  it("of the device's current badge stores nothing", () => {
    const draft = draftAt();
    loadBadge(draft);
    expect(decideBadge(draft, DEVICE, request())).toEqual({ kind: "existing", number: 1001, keyThumbprint: null });
    expect(draft.badges.changes().updated).toEqual([]);
  });

  it("makes the badge the device's current one without a change number", () => {
    const draft = draftAt();
    loadBadge(draft);
    loadBadge(draft, { number: 1002, userId: "bob", turn: 4 });
    decideBadge(draft, DEVICE, request());
    expect(draft.badges.changes().updated).toEqual([{ key: 1001, columns: { turn: 5 } }]);
    expect(draft.position.lastChange).toBe(40);
  });

  it("replaces metadata that differs, which is a change, and keeps it when none is sent", () => {
    const draft = draftAt();
    loadBadge(draft, { metadata: '{"os":"iOS"}' });
    decideBadge(draft, DEVICE, request());
    expect(draft.issued(1001)?.metadata).toBe('{"os":"iOS"}');
    decideBadge(draft, DEVICE, request({ metadata: '{"os":"Android"}' }));
    const columns = { metadata: '{"os":"Android"}', change: 41, changedAt: NOW };
    expect(draft.badges.changes().updated).toEqual([{ key: 1001, columns }]);
    expect(draft.events).toEqual([]);
  });

  it.each([
    ["suspended", { state: "suspended" }, "SUSPENDED_BADGE"],
    ["revoked", { state: "revoked", endedAt: NOW }, "REVOKED_BADGE"],
    ["expired", { expiresAt: NOW }, "EXPIRED_BADGE"],
  ] as const)("of a badge that is %s is refused, whether or not its user is blocked", (_, more, code) => {
    const draft = draftAt();
    loadBadge(draft, more);
    draft.blocks.load("alice", BLOCK);
    expect(decideBadge(draft, DEVICE, request({ metadata: "{}" }))).toEqual(refused(code));
    expect(draft.badges.changes().updated).toEqual([]);
  });

  it.each([
    ["with the badge's key", { keyThumbprint: "a" }, "a", {}, "existing"],
    ["without a proof", { keyThumbprint: "a" }, null, {}, "INVALID_PROOF"],
    ["with another key", { keyThumbprint: "a" }, "b", {}, "INVALID_PROOF"],
    ["of an unbound badge where proofs are required", {}, "a", { requireProof: true }, "INVALID_PROOF"],
    ["of a suspended badge with another key, which learns no state", SUSPENDED_OF_A, "b", {}, "INVALID_PROOF"],
  ])("%s (contract section 15)", (_, more, keyThumbprint, rules, expected) => {
    const draft = draftAt();
    const before = loadBadge(draft, more);
    const told = decideBadge(draft, DEVICE, request({ keyThumbprint, rules: { ...RULES, ...rules } }));
    expect("code" in told ? told.code : told.kind).toBe(expected);
    expect(draft.issued(1001)?.keyThumbprint).toBe(before.keyThumbprint);
  });

  it.each([
    ["until --bind-until", {}, { bindUntil: NOW + 1 }, "b"],
    ["not from --bind-until on", {}, { bindUntil: NOW }, null],
    ["while the badge is to be rebound", { keyThumbprint: "a", rebindUntil: NOW + 1 }, {}, "b"],
    ["not when that has ended", { keyThumbprint: "a", rebindUntil: NOW }, {}, "a"],
    ["not by --bind-until when it is bound to another key", { keyThumbprint: "a" }, { bindUntil: NOW + 1 }, "a"],
  ])("binds the badge to another key %s (contract section 15)", (_, more, rules, bound) => {
    const draft = draftAt();
    loadBadge(draft, more);
    decideBadge(draft, DEVICE, request({ keyThumbprint: "b", rules: { ...RULES, ...rules } }));
    expect(draft.issued(1001)?.keyThumbprint ?? null).toBe(bound);
    if (bound === "b") expect(draft.issued(1001)).toMatchObject({ rebindUntil: null, change: 41 });
  });
});

describe("a step in the life of a badge (contract sections 12, 15 and 24)", () => {
  const take = (draft: ReturnType<typeof draftAt>, step: Step, ifChange: number[] | null = null) =>
    decideStepCommand(draft, SERVER, { kind: "step", number: 1001, step, ifChange, ownedBy: null });

  it.each([
    ["suspend", {}, { state: "suspended" }, "badge:suspended"],
    ["resume", { state: "suspended" }, { state: "active" }, "badge:resumed"],
    ["revoke", { state: "suspended" }, { state: "revoked", endedAt: NOW }, "badge:revoked"],
    ["revoke", { expiresAt: NOW, endedAt: NOW }, { state: "revoked", endedAt: NOW }, "badge:revoked"],
  ] as const)("%s of %o is stored with its event, its history and its change numbers", (kind, more, after, event) => {
    const draft = draftAt();
    loadBadge(draft, more);
    expect(take(draft, { kind })).toMatchObject({ kind: "badge", badge: { ...after, change: 41, statusChange: 41 } });
    expect(eventsOf(draft)).toMatchObject([{ event, data: { id: "1001", state: after.state, change: 41 } }]);
    expect(actionsOf(draft)).toEqual([event]);
  });

  it.each([
    ["suspend", { state: "suspended" }],
    ["resume", {}],
    ["revoke", { state: "revoked", endedAt: NOW }],
  ] as const)("%s again changes nothing and tells nobody", (kind, more) => {
    const draft = draftAt();
    const before = loadBadge(draft, more);
    expect(take(draft, { kind })).toEqual({ kind: "badge", badge: before });
    expect([draft.events, draft.history, draft.position.lastChange]).toEqual([[], [], 40]);
  });

  it.each([
    ["suspend", { expiresAt: NOW }],
    ["resume", { expiresAt: NOW, state: "suspended" }],
    ["suspend", { state: "revoked", endedAt: NOW }],
    ["revoke", { state: "replaced", endedAt: NOW, retiredAt: NOW }],
    ["rebind", { state: "revoked", endedAt: NOW }],
  ] as const)("%s of %o is refused", (kind, more) => {
    const draft = draftAt();
    loadBadge(draft, more);
    expect(take(draft, { kind })).toEqual(refused("ENDED_BADGE"));
  });

  it("needs a change number of If-Match, the owner of section 22, and a badge that was issued", () => {
    const draft = draftAt();
    loadBadge(draft);
    expect(take(draft, { kind: "suspend" }, [9, 11])).toEqual(refused("CHANGED_BADGE"));
    const others = { kind: "step", number: 1001, step: { kind: "suspend" }, ifChange: null, ownedBy: "bob" } as const;
    expect(decideStepCommand(draft, SERVER, others)).toEqual(refused("UNKNOWN_BADGE"));
    expect(decideStepCommand(draft, SERVER, { ...others, number: 1009, ownedBy: null })).toEqual(
      refused("UNKNOWN_BADGE"),
    );
    expect(take(draft, { kind: "suspend" }, [9, 10])).toMatchObject({ kind: "badge" });
  });

  it("reschedule moves start and end, each apart, and refuses a start that is not before the end", () => {
    const draft = draftAt();
    loadBadge(draft, { expiresAt: NOW + HOUR });
    expect(take(draft, { kind: "reschedule", startsAt: NOW + HOUR })).toEqual(refused("INVALID_STARTSAT"));
    const started = take(draft, { kind: "reschedule", startsAt: NOW + 1 });
    expect(started).toMatchObject({
      badge: { startsAt: NOW + 1, expiresAt: NOW + HOUR, change: 41, statusChange: null },
    });
    const ended = take(draft, { kind: "reschedule", startsAt: null, expiresAt: NOW });
    expect(ended).toMatchObject({
      badge: { startsAt: null, expiresAt: NOW, endedAt: NOW, change: 42, statusChange: 42 },
    });
    expect(eventsOf(draft)).toMatchObject([{ event: "badge:expired" }]);
    expect(take(draft, { kind: "reschedule", expiresAt: null })).toMatchObject({
      badge: { endedAt: null, change: 43 },
    });
    expect(eventsOf(draft)[1]).toMatchObject({ event: "badge:resumed", data: { state: "active" } });
    const rescheduled = "badge:rescheduled";
    expect(actionsOf(draft)).toEqual([rescheduled, rescheduled, "badge:expired", rescheduled, "badge:resumed"]);
  });

  it("rebind opens 24 hours, changes nothing that callers see, and begins them again when repeated", () => {
    const draft = draftAt();
    loadBadge(draft, { rebindUntil: NOW - 1 });
    take(draft, { kind: "rebind" });
    const columns = { rebindUntil: NOW + REBIND_WINDOW_HOURS * HOUR };
    expect(draft.badges.changes().updated).toEqual([{ key: 1001, columns }]);
    expect([draft.position.lastChange, draft.events, actionsOf(draft)]).toEqual([40, [], ["badge:rebound"]]);
  });

  it("by the clock names the service in history (contract section 23)", () => {
    const draft = draftAt();
    loadBadge(draft, { expiresAt: NOW });
    decideStepCommand(draft, BY_CLOCK, {
      kind: "step",
      number: 1001,
      step: { kind: "note-expiry" },
      ifChange: null,
      ownedBy: null,
    });
    expect(draft.history).toMatchObject([{ action: "badge:expired", actorKind: "service", badge: 1001 }]);
  });
});
