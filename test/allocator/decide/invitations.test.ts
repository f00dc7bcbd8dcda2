import { describe, expect, it } from "vitest";
import { invitationDigest } from "../../../src/shared/identifiers.ts";
import { BEYOND_CHUNK_NUMBERS, MAX_GROUP_CHARACTERS } from "../../../src/shared/limits.ts";
import type { NewInvitation, Revoker, Rules } from "../../../src/worker/allocator/commands.ts";
import { decideInvite, decideRevocation } from "../../../src/worker/allocator/decide/invitation.ts";
import { AGAIN } from "../../../src/worker/core/decide/block.ts";
import type { Draft } from "../../../src/worker/core/decide/draft.ts";
import { decideDue, expireInvitations } from "../../../src/worker/core/decide/due.ts";
import { takeNumber } from "../../../src/worker/core/decide/numbers.ts";
import {
  actionsOf,
  DIGEST,
  device,
  draftAt,
  eventsOf,
  loadBadge,
  loadInvitation,
  NEW_INVITATION,
  NOW,
  RULES,
  refused,
  SERVER,
} from "./support.ts";

const invite = (draft: Draft, ...more: Partial<NewInvitation>[]) =>
  decideInvite(draft, SERVER, {
    kind: "invite",
    rules: RULES,
    invitations: more.map((each) => ({ ...NEW_INVITATION, ...each })),
  });

const digest = (name: string) => invitationDigest.parse(name);

const FULL = { fresh: [{ first: 1000, size: 100, used: 100 }] };

describe("inviting (contract sections 5, 12 and 24)", () => {
  it("reserves a number for each invitation, which is no badge yet and no event", () => {
    const draft = draftAt();
    expect(invite(draft, { digest: digest("a") }, { digest: digest("b"), userId: "bob" })).toEqual({
      kind: "invitations",
      results: [{ number: 1010 }, { number: 1011 }],
    });
    expect(draft.issued(1010)).toBeUndefined();
    expect(draft.badges.get(1010)).toMatchObject({ invitation: "a", position: null, change: null });
    expect(draft.invitations.get(digest("b"))).toMatchObject({ state: "pending", number: 1011, userId: "bob" });
    expect([draft.events, draft.position.lastPosition, draft.position.lastChange]).toEqual([[], 20, 40]);
    expect(draft.history).toMatchObject([
      { badge: 1010 },
      { action: "invitation:created", badge: 1011, userId: "bob" },
    ]);
  });

  it("again with the same key gets the same invitation, also when it has ended, and reserves nothing", () => {
    for (const state of ["pending", "claimed", "revoked", "expired"] as const) {
      const draft = draftAt();
      loadInvitation(draft, { state });
      expect(invite(draft, {})).toEqual({ kind: "invitations", results: [{ number: 1050 }] });
      expect([draft.badges.changes().inserted, draft.history]).toEqual([[], []]);
    }
  });

  it.each([
    { expiresAt: "2026-11-23T13:00:00+01:00" },
    { badgeExpiresAt: "2026-12-01T00:00:00Z" },
    { badgeStartsAt: "2026-11-22T13:00:00Z" },
    { name: "Ada" },
    { userId: "bob" },
    { creatorDevice: device("other") },
  ])("again with the same key and another body is refused: %o", (more) => {
    const draft = draftAt();
    loadInvitation(draft);
    expect(invite(draft, more)).toEqual({ kind: "invitations", results: [{ code: "INVALID_IDEMPOTENCYKEY" }] });
  });

  it("looks the key up before it compares times with the clock, and says which time has passed", () => {
    const draft = draftAt();
    loadInvitation(draft, { expiresAtTime: NOW });
    expect(invite(draft, { expiresAtTime: NOW })).toEqual({ kind: "invitations", results: [{ number: 1050 }] });
    const late = { digest: digest("new"), expiresAtTime: NOW };
    expect(invite(draft, late)).toEqual({ kind: "invitations", results: [{ code: "INVALID_BADGEEXPIRESAT" }] });
  });

  it("refuses those for which no number is left, and the whole call only if that is true of all", () => {
    const draft = draftAt(NOW, { fresh: [{ first: 1000, size: 100, used: 99 }] });
    const results = [{ number: 1099 }, { code: "NUMBERS_EXHAUSTED" }];
    expect(invite(draft, { digest: digest("a") }, { digest: digest("b") })).toEqual({ kind: "invitations", results });
    expect(invite(draft, { digest: digest("c") })).toEqual(refused("NUMBERS_EXHAUSTED"));
  });
});

describe("revoking an invitation (contract sections 5 and 12)", () => {
  const revoke = (draft: Draft, id: typeof DIGEST | number, revoker: Revoker = { kind: "server" }) =>
    decideRevocation(draft, SERVER, { kind: "revoke-invitation", id, revoker });

  it.each([
    ["its token", DIGEST],
    ["its number", 1050],
  ] as const)("by %s frees the number, with an event and history", (_, id) => {
    const draft = draftAt();
    const { expiresAt } = loadInvitation(draft, { userId: "alice" });
    expect(revoke(draft, id)).toEqual({ kind: "invitation-revoked", number: 1050, expiresAt, revokedAt: NOW });
    expect(draft.badges.changes().deleted).toEqual([1050]);
    expect(draft.freed.changes().inserted).toEqual([{ number: 1050, freedAt: NOW }]);
    expect(eventsOf(draft)).toEqual([{ event: "invitation:revoked", data: { id: "1050", expiresAt } }]);
    expect(actionsOf(draft)).toEqual(["invitation:revoked"]);
  });

  it("again by its token returns the same, and by its number, which is free, finds nothing", () => {
    const draft = draftAt();
    loadInvitation(draft, { state: "revoked", endedAt: NOW - 5 });
    expect(revoke(draft, DIGEST)).toMatchObject({ kind: "invitation-revoked", revokedAt: NOW - 5 });
    expect(revoke(draft, 1050)).toEqual(refused("UNKNOWN_INVITATION"));
    expect([draft.events, draft.freed.changes().inserted]).toEqual([[], []]);
  });

  it("by another device than its creator's finds nothing, by the creator's it is revoked", () => {
    const draft = draftAt();
    loadInvitation(draft, { creatorDevice: device("creator") });
    expect(revoke(draft, DIGEST, { kind: "device", device: device("other") })).toEqual(refused("UNKNOWN_INVITATION"));
    expect(revoke(draft, DIGEST, { kind: "device", device: device("creator") })).toMatchObject({ number: 1050 });
  });

  it("that is claimed is a conflict, by its token and by its number", () => {
    const draft = draftAt();
    loadInvitation(draft, { state: "claimed" });
    loadBadge(draft, { number: 1050, invitation: DIGEST });
    expect([revoke(draft, DIGEST), revoke(draft, 1050)]).toEqual(new Array(2).fill(refused("CLAIMED_INVITATION")));
  });

  it.each([
    ["its token", DIGEST, "EXPIRED_INVITATION"],
    ["its number", 1050, "UNKNOWN_INVITATION"],
  ] as const)("past its time by %s is refused, and the expiry recorded", (_, id, code) => {
    const draft = draftAt();
    loadInvitation(draft, { expiresAtTime: NOW - 7 });
    expect(revoke(draft, id)).toEqual(refused(code));
    expect(draft.freed.changes().inserted).toEqual([{ number: 1050, freedAt: NOW - 7 }]);
    expect(draft.history).toMatchObject([{ action: "invitation:expired", actorKind: "service" }]);
  });
});

describe("what the clock made due (contract sections 5, 12 and 18)", () => {
  it("is recorded with its events: expired badges, and invitations whose numbers are free again", () => {
    const draft = draftAt();
    loadBadge(draft, { expiresAt: NOW });
    loadBadge(draft, { number: 1002, device: device("other"), expiresAt: NOW + 1 });
    loadInvitation(draft, { expiresAtTime: NOW });
    expect(decideDue(draft, false)).toEqual({ kind: "recorded" });
    expect(draft.issued(1001)).toMatchObject({ state: "active", endedAt: NOW, change: 41, statusChange: 41 });
    expect(draft.issued(1002)).toMatchObject({ endedAt: null, change: 10 });
    expect(eventsOf(draft).map(({ event }) => event)).toEqual(["badge:expired", "invitation:expired"]);
    expect(decideDue(draft, false)).toEqual({ kind: "recorded" });
    expect(draft.events).toHaveLength(2);
  });

  it("leaves an invitation alone that was read without the row of its number", () => {
    const draft = draftAt();
    const { number } = loadInvitation(draft, { state: "revoked" });
    draft.invitations.set(DIGEST, {
      ...loadInvitation(draft),
      state: "pending",
      number: number + 1,
      expiresAtTime: NOW,
    });
    expect(expireInvitations(draft)).toBe(true);
    expect([draft.invitations.get(DIGEST)?.state, draft.freed.changes().inserted]).toEqual(["pending", []]);
  });

  it("goes on in another group when more is due, or does not fit", () => {
    expect(decideDue(draftAt(), true)).toBe(AGAIN);
    const draft = draftAt();
    const metadata = JSON.stringify({ os: "x".repeat(MAX_GROUP_CHARACTERS) });
    loadBadge(draft, { expiresAt: NOW, metadata });
    loadBadge(draft, { number: 1002, device: device("other"), expiresAt: NOW });
    loadInvitation(draft, { expiresAtTime: NOW });
    expect(decideDue(draft, false)).toBe(AGAIN);
    expect(draft.badges.changes().updated.map(({ key }) => key)).toEqual([1001]);
    expect(draft.invitations.changes().updated).toEqual([]);
  });
});

describe("which number is next (contract sections 1, 5 and 21)", () => {
  const take = (draft: Draft, more: Partial<Rules> = {}) => takeNumber(draft, { ...RULES, ...more });

  it("is a fresh one before any that was freed", () => {
    const draft = draftAt(NOW, { fresh: [{ first: 1000, size: 100, used: 99 }] });
    draft.freed.load(1001, { number: 1001, freedAt: 0 });
    expect([take(draft), take(draft), take(draft)]).toEqual([1099, 1001, null]);
    expect(draft.freed.changes().deleted).toEqual([1001]);
  });

  it("is a freed one only once it has rested, and one of all that have, as chance wants", () => {
    const draft = draftAt(NOW, FULL);
    for (const [number, age] of [
      [1001, 11],
      [1002, 10],
      [1003, 9],
    ] as const) {
      draft.freed.load(number, { number, freedAt: NOW - age * 1000 });
    }
    expect([1, 2, 3].map(() => take(draft, { reuseAfterSeconds: 10 }))).toEqual([1002, 1001, null]);
    expect(take(draft)).toBe(1003);
  });

  it("is one of the new part when the range has grown, which the entry then says; not for a caller that knows the old end", () => {
    const draft = draftAt(NOW, FULL);
    expect(take(draft)).toBeNull();
    expect(take(draft, { range: { first: 1000, last: 1149 } })).toBe(1100);
    expect(draft.position.fresh).toEqual([...FULL.fresh, { first: 1100, size: 50, used: 1 }]);
    expect(take(draft)).toBeNull();
  });

  it("is never one beyond the range: those are skipped for good, a bounded number at once", () => {
    const draft = draftAt(NOW, { fresh: [{ first: 1000, size: 5000, used: 90 }] });
    const range = { first: 1000, last: 1094 };
    expect([1, 2, 3, 4, 5].map(() => take(draft, { range }))).toEqual([1090, 1091, 1092, 1093, 1094]);
    expect(take(draft, { range })).toBeNull();
    expect(draft.position.fresh[0]?.used).toBe(95 + BEYOND_CHUNK_NUMBERS);
    draft.freed.load(1200, { number: 1200, freedAt: 0 });
    expect(take(draft, { range })).toBeNull();
  });
});
