import { describe, expect, it } from "vitest";
import { invitationDigest } from "../../../src/shared/identifiers.ts";
import { MAX_ENTRY_CHARACTERS } from "../../../src/shared/limits/allocator-limits.ts";
import { decideInvite, decideRevocation } from "../../../src/worker/allocator/decide/invitation.ts";
import { decideBadge } from "../../../src/worker/allocator/decide/request-badge.ts";
import { NetChanges } from "../../../src/worker/allocator/net-changes.ts";
import { claimOf, DEVICE, DIGEST, inAllocator, NEW_INVITATION, RULES, request, SERVER } from "./support.ts";

const FULL = { rangeSegments: [{ first: 1000, size: 100, used: 100 }] };

describe("the changes of a row in one group", () => {
  it.each<[string, ["insert" | "update" | "delete", object][], object | null]>([
    [
      "of an insert and a delete are nothing",
      [
        ["insert", { freedAt: 1 }],
        ["delete", {}],
      ],
      null,
    ],
    [
      "of a delete and an insert are an update",
      [
        ["delete", {}],
        ["insert", { freedAt: 2 }],
      ],
      { op: "update", rows: [[7, 2]] },
    ],
    [
      "of two updates are the later values",
      [
        ["update", { freedAt: 1 }],
        ["update", { freedAt: 2 }],
      ],
      { op: "update", rows: [[7, 2]] },
    ],
    [
      "of an update and a delete are a delete",
      [
        ["update", { freedAt: 1 }],
        ["delete", {}],
      ],
      { op: "delete", rows: [[7]] },
    ],
  ])("%s", (_, steps, expected) => {
    const changes = new NetChanges();
    for (const [op, columns] of steps) changes.add(op, "freedNumber", 7, columns);
    expect(changes.toWrites()).toMatchObject(expected === null ? [] : [expected]);
    expect(changes.isEmpty).toBe(expected === null);
  });
});

describe("an entry (contract section 21)", () => {
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

  it("there is no entry when nothing was changed", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge();
      decideBadge(scene, DEVICE, request());
      expect(scene.entries).toEqual([]);
    }));

  it("an entry retires the replaced badge before it adds the badge that takes its user device (contract section 2)", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge();
      scene.loadInvitation();
      decideBadge(scene, DEVICE, claimOf());
      const badges = scene.changes("badge").updated;
      expect(badges.map(({ key }) => key)).toEqual([1001, 1050]);
      expect(badges[0]?.columns).toHaveProperty("supersededAt");
    }));

  it("an entry has no null columns of a new row, and only the changed columns of a changed row", () =>
    inAllocator((open) => {
      const scene = open();
      scene.loadBadge({ loginSequence: 3 });
      scene.loadBadge({ number: 1002, ordinal: 2, userId: "bob", loginSequence: 4 });
      decideBadge(scene, DEVICE, request());
      decideBadge(scene, DEVICE, request({ userId: "carol" }));
      const { inserted, updated } = scene.changes("badge");
      expect(inserted).toMatchObject([{ number: 1010, userId: "carol" }]);
      expect(inserted[0]).not.toHaveProperty("keyThumbprint");
      expect(updated).toEqual([{ key: 1001, columns: { loginSequence: 5 } }]);
    }));

  it("a number that was freed and reserved again in one group belongs only to its new invitation (contract section 5)", () =>
    inAllocator((open) => {
      const scene = open(FULL);
      scene.loadInvitation();
      decideRevocation(scene, SERVER, { kind: "revoke-invitation", id: DIGEST, revoker: { kind: "server" } });
      const digest = invitationDigest.parse("another");
      decideInvite(scene, SERVER, { kind: "invite", rules: RULES, invitations: [{ ...NEW_INVITATION, digest }] });
      expect(scene.changes("badge")).toMatchObject({ inserted: [], updated: [{ key: 1050 }], deleted: [] });
      expect(scene.tables.badge(1050)?.invitation).toBe("another");
      expect(scene.changes("freedNumber")).toEqual({ inserted: [], updated: [], deleted: [] });
      expect(scene.tables.invitation(DIGEST)?.state).toBe("revoked");
    }));

  it("an entry after the range has grown has its new end", () =>
    inAllocator((open) => {
      const scene = open(FULL);
      decideBadge(scene, DEVICE, request({ rules: { ...RULES, range: { first: 1000, last: 1149 } } }));
      expect(scene.entries).toMatchObject([{ changes: { lastNumber: 1149 } }]);
    }));
});
