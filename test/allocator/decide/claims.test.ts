import { describe, expect, it } from "vitest";
import { decideBadge } from "../../../src/worker/core/decide/badge.ts";
import {
  actionsOf,
  claimOf,
  DEVICE,
  DIGEST,
  device,
  draftAt,
  eventsOf,
  HOUR,
  loadBadge,
  loadInvitation,
  NOW,
  PHONE,
  refused,
} from "./support.ts";

describe("a claim (contract sections 2, 5, 12, 15, 22 and 24)", () => {
  it("makes the reserved number the badge, with the invitation's name and times, and consumes the token", () => {
    const draft = draftAt();
    loadInvitation(draft, { name: "Ada", badgeStartsAtTime: NOW + 1, badgeExpiresAtTime: NOW + HOUR });
    expect(decideBadge(draft, DEVICE, claimOf())).toEqual({ kind: "created", number: 1050, keyThumbprint: null });
    const badge = { name: "Ada", startsAt: NOW + 1, expiresAt: NOW + HOUR, position: 21, turn: 1, invitation: DIGEST };
    expect(draft.badges.get(1050)).toMatchObject({ ...badge, device: PHONE, userId: "alice" });
    const claimed = { state: "claimed", endedAt: NOW, claimDevice: PHONE, claimUserId: "alice" };
    expect(draft.invitations.changes().updated).toEqual([{ key: DIGEST, columns: claimed }]);
    expect(eventsOf(draft)).toMatchObject([
      { event: "badge:created", data: { id: "1050", invitationId: "inv_token" } },
    ]);
    expect(eventsOf(draft)[0]?.data).not.toHaveProperty("replacedBadgeId");
    expect(actionsOf(draft)).toEqual(["badge:created"]);
    expect(draft.position.fresh).toEqual([{ first: 1000, size: 100, used: 10 }]);
  });

  it("again by the same user device is a login; by another one a conflict", () => {
    const draft = draftAt();
    loadInvitation(draft);
    decideBadge(draft, DEVICE, claimOf());
    expect(decideBadge(draft, DEVICE, claimOf())).toMatchObject({ kind: "existing", number: 1050 });
    expect(decideBadge(draft, DEVICE, claimOf({ userId: "bob" }))).toEqual(refused("CLAIMED_INVITATION"));
    expect(decideBadge(draft, DEVICE, claimOf({ device: device("other") }))).toEqual(refused("CLAIMED_INVITATION"));
    expect(draft.events).toHaveLength(1);
  });

  it.each([
    ["revoked", { state: "revoked", endedAt: NOW }, "REVOKED_INVITATION"],
    ["revoked, and past its time", { state: "revoked", endedAt: NOW, expiresAtTime: NOW }, "REVOKED_INVITATION"],
    ["expired", { state: "expired", endedAt: NOW }, "EXPIRED_INVITATION"],
    ["claimed by somebody else", { state: "claimed", claimDevice: PHONE, claimUserId: "bob" }, "CLAIMED_INVITATION"],
  ] as const)("of an invitation that is %s is refused", (_, more, code) => {
    const draft = draftAt();
    loadInvitation(draft, more);
    expect(decideBadge(draft, DEVICE, claimOf())).toEqual(refused(code));
    expect(draft.badges.changes().inserted).toEqual([]);
  });

  it("of an unknown one is refused", () => {
    expect(decideBadge(draftAt(), DEVICE, claimOf())).toEqual(refused("UNKNOWN_INVITATION"));
  });

  it("past its time is refused, and the expiry is recorded with it: whoever saw it expired sees it so for ever", () => {
    const draft = draftAt();
    loadInvitation(draft, { expiresAtTime: NOW });
    expect(decideBadge(draft, DEVICE, claimOf())).toEqual(refused("EXPIRED_INVITATION"));
    expect(draft.invitations.changes().updated).toEqual([{ key: DIGEST, columns: { state: "expired", endedAt: NOW } }]);
    expect([draft.badges.changes().deleted, draft.freed.changes().inserted]).toEqual([
      [1050],
      [{ number: 1050, freedAt: NOW }],
    ]);
  });

  it("consumes nothing when it names another user than the invitation, or a blocked one, in this order", () => {
    const draft = draftAt();
    loadInvitation(draft, { userId: "bob" });
    const block = { blockedAt: NOW, isRevoking: false, throughPosition: 9, donePosition: 9, afterChange: 3 };
    draft.blocks.load("alice", { ...block, userId: "alice" });
    draft.blocks.load("bob", { ...block, userId: "bob" });
    expect(decideBadge(draft, DEVICE, claimOf())).toEqual(refused("WRONG_USER"));
    expect(decideBadge(draft, DEVICE, claimOf({ userId: "bob" }))).toEqual(refused("BLOCKED_USER"));
    expect(draft.invitations.changes().updated).toEqual([]);
  });

  it("needs no user token if the invitation was created with the secret (contract section 22)", () => {
    const draft = draftAt();
    loadInvitation(draft, { withSecret: false });
    expect(decideBadge(draft, DEVICE, claimOf({ isVerified: false }))).toEqual(refused("INVALID_USERTOKEN"));
    const vouchedFor = draftAt();
    loadInvitation(vouchedFor);
    expect(decideBadge(vouchedFor, DEVICE, claimOf({ isVerified: false }))).toMatchObject({ kind: "created" });
  });
});

describe("a claim by a user device that has a badge (contract sections 2, 12 and 15)", () => {
  it.each([
    ["active", {}],
    ["expired", { expiresAt: NOW - 1 }],
  ])("which is %s retires that one for ever, and the events name it", (_, more) => {
    const draft = draftAt();
    loadBadge(draft, { turn: 3, ...more });
    loadInvitation(draft, { withSecret: false });
    expect(decideBadge(draft, DEVICE, claimOf())).toMatchObject({ kind: "created", number: 1050 });
    expect(draft.issued(1001)).toMatchObject({
      state: "replaced",
      retiredAt: NOW,
      endedAt: NOW,
      change: 41,
      statusChange: 41,
    });
    expect(draft.issued(1050)).toMatchObject({ change: 42, turn: 4 });
    expect(eventsOf(draft)).toMatchObject([
      { event: "badge:replaced", data: { id: "1001", state: "replaced", change: 41 } },
      { event: "badge:created", data: { id: "1050", replacedBadgeId: "1001" } },
    ]);
    expect(actionsOf(draft)).toEqual(["badge:replaced", "badge:created"]);
    expect(draft.freed.changes().inserted).toEqual([]);
  });

  it("which is revoked gets a new one only by an invitation of the server, and the old one stays revoked", () => {
    const draft = draftAt();
    loadBadge(draft, { state: "revoked", endedAt: NOW - HOUR });
    loadInvitation(draft, { withSecret: false });
    expect(decideBadge(draft, DEVICE, claimOf())).toEqual(refused("REVOKED_BADGE"));
    const vouchedFor = draftAt();
    loadBadge(vouchedFor, { state: "revoked", endedAt: NOW - HOUR });
    loadInvitation(vouchedFor);
    expect(decideBadge(vouchedFor, DEVICE, claimOf())).toMatchObject({ kind: "created", number: 1050 });
    expect(vouchedFor.issued(1001)).toMatchObject({
      state: "revoked",
      endedAt: NOW - HOUR,
      retiredAt: NOW,
      change: 10,
    });
    expect(eventsOf(vouchedFor)).toHaveLength(1);
    expect(eventsOf(vouchedFor)[0]?.data).not.toHaveProperty("replacedBadgeId");
  });

  it("which is suspended is refused, and the invitation is not consumed", () => {
    const draft = draftAt();
    loadBadge(draft, { state: "suspended" });
    loadInvitation(draft);
    expect(decideBadge(draft, DEVICE, claimOf())).toEqual(refused("SUSPENDED_BADGE"));
    expect(draft.invitations.changes().updated).toEqual([]);
  });

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

  it.each(KEYS)("with %s", (_, bound, proved, invitation, expected) => {
    const draft = draftAt();
    loadBadge(draft, { keyThumbprint: bound });
    loadInvitation(draft, invitation);
    const told = decideBadge(draft, DEVICE, claimOf({ keyThumbprint: proved }));
    expect("code" in told ? told.code : told.kind).toBe(expected);
    if (expected === "created") expect(draft.issued(1050)?.keyThumbprint).toBe(proved);
    else expect(draft.invitations.changes().updated).toEqual([]);
  });

  it("while it is to be rebound, any proved key replaces it", () => {
    const draft = draftAt();
    loadBadge(draft, { keyThumbprint: "a", rebindUntil: NOW + 1 });
    loadInvitation(draft, { withSecret: false });
    expect(decideBadge(draft, DEVICE, claimOf({ keyThumbprint: "b" }))).toMatchObject({ kind: "created" });
  });
});
