import { describe, expect, it } from "vitest";
import { invitationDigest } from "../../../src/shared/identifiers.ts";
import { decideInvite, decideRevocation } from "../../../src/worker/allocator/decide/invitation.ts";
import { decideBadge } from "../../../src/worker/core/decide/badge.ts";
import { RowSet } from "../../../src/worker/core/decide/row-set.ts";
import { isEmpty, toEntry } from "../../../src/worker/core/entry.ts";
import {
  claimOf,
  DEVICE,
  DIGEST,
  draftAt,
  loadBadge,
  loadInvitation,
  NEW_INVITATION,
  NOW,
  RULES,
  request,
  SERVER,
} from "./support.ts";

const NOBODY = { calls: [], results: [], erasures: [], unless: null };

interface Row {
  id: number;
  name: string | null;
  state: string;
}

describe("the rows of a group", () => {
  const stored: Row = { id: 1, name: null, state: "a" };

  it("are stored with the columns that have other values, and no others", () => {
    const rows = new RowSet<number, Row>();
    rows.load(1, stored);
    rows.set(1, { ...stored, name: "new" });
    expect(rows.changes()).toEqual({ inserted: [], updated: [{ key: 1, columns: { name: "new" } }], deleted: [] });
    rows.set(1, { ...stored });
    expect(rows.changes()).toEqual({ inserted: [], updated: [], deleted: [] });
  });

  it("that were made and removed within the group are nothing, and one that was removed and made again is changed", () => {
    const rows = new RowSet<number, Row>();
    rows.load(1, stored);
    rows.set(2, { ...stored, id: 2 });
    rows.delete(2);
    rows.delete(1);
    expect(rows.changes()).toEqual({ inserted: [], updated: [], deleted: [1] });
    rows.set(1, { ...stored, state: "b" });
    expect(rows.changes()).toEqual({ inserted: [], updated: [{ key: 1, columns: { state: "b" } }], deleted: [] });
  });

  it("are those that D1 had first, however often they were read", () => {
    const rows = new RowSet<number, Row>();
    rows.load(1, stored);
    rows.set(1, { ...stored, state: "b" });
    rows.load(1, { ...stored, state: "c" });
    expect(rows.get(1)?.state).toBe("b");
  });
});

describe("an entry", () => {
  it("follows the one before, and is empty when nothing was decided", () => {
    const draft = draftAt();
    const entry = toEntry(draft.position, draft, NOBODY);
    expect(entry).toMatchObject({ previous: "entry 7", position: { sequence: 8, entry: entry.id }, lastNumber: null });
    expect(isEmpty(entry, draft.position)).toBe(true);
    const skipped = { ...draft.position, fresh: [{ first: 1000, size: 100, used: 9 }] };
    expect(isEmpty(entry, skipped)).toBe(false);
  });

  it("retires the badge that gives up its user device before the badge that takes it (contract section 2)", () => {
    const draft = draftAt();
    loadBadge(draft);
    loadInvitation(draft);
    decideBadge(draft, DEVICE, claimOf());
    const { writes } = toEntry(draft.position, draft, NOBODY);
    const badges = writes.filter(({ table }) => table === "badge");
    expect(badges.map(({ op, rows }) => [op, rows[0]?.[0]])).toEqual([
      ["update", 1001],
      ["update", 1050],
    ]);
    expect(badges[0]?.columns).toContain("retiredAt");
  });

  it("has no column that is null in all of its new rows", () => {
    const draft = draftAt();
    decideBadge(draft, DEVICE, request());
    const { writes } = toEntry(draft.position, draft, NOBODY);
    expect(writes).toHaveLength(1);
    expect(writes[0]).toMatchObject({ op: "insert", table: "badge", rows: [expect.arrayContaining([1010, "alice"])] });
    expect(writes[0]?.columns).not.toContain("keyThumbprint");
  });

  it("gives a number that was freed and reserved again in one group to its new invitation alone (contract section 5)", () => {
    const full = { fresh: [{ first: 1000, size: 100, used: 100 }] };
    const draft = draftAt(NOW, full);
    loadInvitation(draft);
    decideRevocation(draft, SERVER, { kind: "revoke-invitation", id: DIGEST, revoker: { kind: "server" } });
    const digest = invitationDigest.parse("another");
    decideInvite(draft, SERVER, { kind: "invite", rules: RULES, invitations: [{ ...NEW_INVITATION, digest }] });
    expect(draft.badges.changes()).toEqual({
      inserted: [],
      updated: [{ key: 1050, columns: { invitation: "another" } }],
      deleted: [],
    });
    expect(draft.freed.changes()).toEqual({ inserted: [], updated: [], deleted: [] });
    expect(draft.invitations.get(DIGEST)?.state).toBe("revoked");
  });

  it("says where the range ends now that it has grown (contract section 21)", () => {
    const draft = draftAt(NOW, { fresh: [{ first: 1000, size: 100, used: 100 }] });
    const before = { ...draft.position };
    decideBadge(draft, DEVICE, request({ rules: { ...RULES, range: { first: 1000, last: 1149 } } }));
    expect(toEntry(before, draft, NOBODY).lastNumber).toBe(1149);
  });
});
