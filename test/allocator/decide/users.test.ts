import { describe, expect, it } from "vitest";
import { MAX_GROUP_CHARACTERS, REPEATED_BLOCK_MILLISECONDS } from "../../../src/shared/limits.ts";
import { decideBadge } from "../../../src/worker/core/decide/badge.ts";
import {
  AGAIN,
  decideBlock,
  decideFinishBlock,
  decideUnblock,
  type ReadThrough,
} from "../../../src/worker/core/decide/block.ts";
import type { Draft } from "../../../src/worker/core/decide/draft.ts";
import { decideErase } from "../../../src/worker/core/decide/erase.ts";
import { toEntry } from "../../../src/worker/core/entry.ts";
import {
  actionsOf,
  DEVICE,
  DIGEST,
  device,
  draftAt,
  eventsOf,
  loadBadge,
  loadInvitation,
  NOW,
  request,
  SERVER,
} from "./support.ts";

/** Three of alice's badges at the positions 3, 1 and 2, and one of bob's. */
function loadBadges(draft: Draft) {
  for (const [number, position] of [
    [1003, 3],
    [1001, 1],
    [1002, 2],
  ] as const) {
    loadBadge(draft, {
      number,
      position,
      device: device(`phone-${number}`),
      state: position === 2 ? "suspended" : "active",
    });
  }
  loadBadge(draft, { number: 1004, position: 4, device: device("phone-4"), userId: "bob" });
}

const statesOf = (draft: Draft) => [1001, 1002, 1003, 1004].map((number) => draft.issued(number)?.state);

/** A badge of which a group takes only one. */
const HUGE = JSON.stringify({ os: "x".repeat(MAX_GROUP_CHARACTERS) });

const block = (draft: Draft, through: ReadThrough = null, wasAnswered = false) =>
  decideBlock(draft, SERVER, "alice", through, wasAnswered);

describe("blocking a user (contract section 12)", () => {
  it("revokes the user's badges in the order of issue, and no others, and is finished in one group if it can be", () => {
    const draft = draftAt();
    loadBadges(draft);
    expect(block(draft)).toEqual({ kind: "user", userId: "alice", numbers: [1001, 1002, 1003] });
    expect(statesOf(draft)).toEqual(["revoked", "revoked", "revoked", "active"]);
    expect(eventsOf(draft).map(({ event }) => event)).toEqual(new Array(3).fill("badge:revoked"));
    expect(actionsOf(draft)).toEqual(["user:blocked", ...new Array(3).fill("badge:revoked")]);
    expect(draft.blocks.get("alice")).toMatchObject({
      blockedAt: NOW,
      isRevoking: false,
      throughPosition: 20,
      afterChange: 40,
    });
  });

  it("goes on with the next rows when not all were read, unfinished until then", () => {
    const draft = draftAt();
    loadBadges(draft);
    expect(block(draft, 2)).toBe(AGAIN);
    expect(statesOf(draft)).toEqual(["revoked", "revoked", "active", "active"]);
    expect(draft.blocks.get("alice")).toMatchObject({ isRevoking: true, donePosition: 2 });
    expect(block(draft)).toMatchObject({ kind: "revoked-by", block: { afterChange: 40 }, numbers: [1003] });
    expect(draft.blocks.get("alice")).toMatchObject({ isRevoking: false });
    expect(actionsOf(draft).filter((action) => action === "user:blocked")).toHaveLength(1);
  });

  it("takes no more badges than fit into a group, and at least one", () => {
    const draft = draftAt();
    for (const position of [1, 2]) {
      loadBadge(draft, { number: 1000 + position, position, metadata: HUGE, device: device(`phone-${position}`) });
    }
    expect(block(draft)).toBe(AGAIN);
    expect(draft.blocks.get("alice")).toMatchObject({ isRevoking: true, donePosition: 1 });
    expect(draft.issued(1002)?.state).toBe("active");
  });

  it("leaves badges that were issued after it began", () => {
    const draft = draftAt();
    loadBadges(draft);
    draft.blocks.load("alice", { ...UNFINISHED, throughPosition: 2 });
    decideFinishBlock(draft, "alice", null);
    expect(statesOf(draft)).toEqual(["revoked", "revoked", "active", "active"]);
    expect(draft.history).toMatchObject([{ actorKind: "service" }, { actorKind: "service" }]);
  });

  it.each([
    ["returns what it revoked when the response was lost", 0, false, "revoked-by"],
    ["returns nothing when the first response came", 0, true, "user"],
    ["returns nothing when the first one is long ago", REPEATED_BLOCK_MILLISECONDS, false, "user"],
  ])("again %s, and changes nothing", (_, age, wasAnswered, kind) => {
    const draft = draftAt();
    draft.blocks.load("alice", { ...UNFINISHED, isRevoking: false, blockedAt: NOW - age });
    expect(block(draft, null, wasAnswered)).toMatchObject({ kind, numbers: [] });
    expect(draft.blocks.changes()).toEqual({ inserted: [], updated: [], deleted: [] });
  });
});

const UNFINISHED = {
  ...{ userId: "alice", blockedAt: NOW - 1, isRevoking: true },
  ...{ throughPosition: 20, donePosition: 0, afterChange: 5 },
};

describe("unblocking a user (contract section 12)", () => {
  it("finishes an unfinished block first: what it was to revoke stays revoked", () => {
    const draft = draftAt();
    loadBadges(draft);
    draft.blocks.load("alice", UNFINISHED);
    expect(decideUnblock(draft, SERVER, "alice", 2)).toBe(AGAIN);
    expect(draft.isBlocked("alice")).toBe(true);
    expect(decideUnblock(draft, SERVER, "alice", null)).toEqual({ kind: "user", userId: "alice", numbers: [] });
    expect(statesOf(draft)).toEqual(["revoked", "revoked", "revoked", "active"]);
    expect(draft.blocks.changes().deleted).toEqual(["alice"]);
  });

  it("of somebody who is not blocked is no entry in history", () => {
    const draft = draftAt();
    expect(decideUnblock(draft, SERVER, "alice", null)).toEqual({ kind: "user", userId: "alice", numbers: [] });
    expect(draft.history).toEqual([]);
  });
});

describe("erasing a person (contract section 24)", () => {
  const command = { kind: "erase", userId: "alice", alias: "erased:1" } as const;
  const erase = (draft: Draft, { isLast = true, numbers = [1001, 1002, 1003], isBegun = false, erased = 0 } = {}) =>
    decideErase(draft, SERVER, command, { isLastOfUser: isLast, numbersOfUser: numbers }, { isBegun, erased });

  it("revokes the badges under the alias, without metadata and name, in every event and change too", () => {
    const draft = draftAt();
    loadBadges(draft);
    loadBadge(draft, {
      number: 1005,
      position: 5,
      state: "revoked",
      endedAt: NOW - 1,
      metadata: '{"os":"iOS"}',
      name: "Ada",
    });
    expect(erase(draft)).toEqual({ outcome: { kind: "erased", userId: "erased:1", erased: 4 }, erased: 4 });
    for (const number of [1001, 1002, 1003, 1005]) {
      const blank = { userId: "erased:1", state: "revoked", metadata: null, name: null };
      expect(draft.issued(number)).toMatchObject(blank);
      expect(draft.issued(number)?.change).toBeGreaterThan(40);
    }
    expect(draft.issued(1004)).toMatchObject({ userId: "bob", state: "active" });
    expect(JSON.stringify([draft.events, draft.history])).not.toContain("alice");
    expect(actionsOf(draft).at(-1)).toBe("user:erased");
  });

  it("goes on until all that names the user was read, counts all badges, and stands in history from the first group on", () => {
    const draft = draftAt();
    loadBadges(draft);
    expect(erase(draft, { isLast: false })).toEqual({ outcome: AGAIN, erased: 3 });
    expect(actionsOf(draft).at(-1)).toBe("user:erased");
    expect(erase(draft, { isLast: false, isBegun: true, erased: 3 }).outcome).toBe(AGAIN);
    loadInvitation(draft, { userId: "alice" });
    const outcome = { kind: "erased", userId: "erased:1", erased: 3 };
    expect(erase(draft, { isBegun: true, erased: 3 })).toEqual({ outcome, erased: 0 });
    expect(actionsOf(draft).filter((action) => action === "user:erased")).toHaveLength(1);
  });

  it("leaves a badge that was read for another call to the group that reads its invitation too", () => {
    const draft = draftAt();
    loadBadges(draft);
    expect(erase(draft, { isLast: false, numbers: [1001] })).toEqual({ outcome: AGAIN, erased: 1 });
    expect([1001, 1002, 1003].map((number) => draft.issued(number)?.userId)).toEqual(["erased:1", "alice", "alice"]);
  });

  it("takes the person out of events of the calls before it in the group, and of no others", () => {
    const draft = draftAt();
    const metadata = JSON.stringify({ os: "Ada's" });
    for (const userId of ["alice", "bob"])
      decideBadge(draft, DEVICE, request({ userId, metadata, device: device(userId) }));
    erase(draft);
    decideBadge(draft, DEVICE, request({ metadata }));
    expect(eventsOf(draft)).toMatchObject([
      { event: "badge:created", data: { userId: "erased:1" } },
      { event: "badge:created", data: { userId: "bob", metadata: { os: "Ada's" } } },
      { event: "badge:revoked", data: { userId: "erased:1" } },
      { event: "badge:created", data: { userId: "alice", metadata: { os: "Ada's" } } },
    ]);
    expect(eventsOf(draft)[0]?.data).not.toHaveProperty("metadata");
  });

  it("again, or of somebody unknown, is nothing, and history does not say so", () => {
    const draft = draftAt();
    expect(erase(draft)).toEqual({ outcome: { kind: "erased", userId: "erased:1", erased: 0 }, erased: 0 });
    expect(draft.history).toEqual([]);
  });

  it("puts the alias into invitations and the block, and leaves no name there", () => {
    const draft = draftAt();
    loadInvitation(draft, { userId: "alice", name: "Ada", state: "claimed", claimUserId: "alice" });
    draft.blocks.load("alice", UNFINISHED);
    erase(draft);
    const columns = { userId: "erased:1", claimUserId: "erased:1", name: null };
    expect(draft.invitations.changes().updated).toEqual([{ key: DIGEST, columns }]);
    expect(draft.blocks.changes()).toMatchObject({
      deleted: ["alice"],
      inserted: [{ userId: "erased:1", isRevoking: false, blockedAt: NOW - 1 }],
    });
    const { writes } = toEntry(draft.position, draft, { calls: [], results: [], erasures: [], unless: null });
    expect(JSON.stringify(writes)).not.toMatch(/Ada/);
  });
});
