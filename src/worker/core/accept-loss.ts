import { type ApplicationId, newEntryId, newRandomId } from "../../shared/identifiers.ts";
import type { InboxResult } from "../../shared/inbox.ts";
import { log } from "../log.ts";
import { Unavailable } from "../platform.ts";
import type { Database } from "../storage/database.ts";
import type { Position, RangePart } from "../storage/rows.ts";
import type { JournalReach } from "./allocator.ts";
import { applyEntry } from "./apply.ts";
import { catchUp } from "./catch-up.ts";
import type { Entry } from "./entry.ts";
import type { Journal } from "./journal.ts";

/** `reconcile ID [--accept-loss]` (contract section 21). */
interface Reconciliation {
  /** ID of the inbox command. */
  id: string;
  acceptLoss: boolean;
  /** Fresh numbers to skip besides those that are known to be used. */
  skip: number;
}

/**
 * Compares D1 with the journal. If one lacks what nobody has, and the administrator accepts that, the list goes on beyond
 * everything that either side knows: no number, list position or change number is used twice, and freed numbers are forgotten,
 * because nobody knows who has them.
 *
 * @throws Unavailable
 */
export async function reconcile(
  db: Database,
  applicationId: ApplicationId,
  journal: Journal,
  { id, acceptLoss, skip }: Reconciliation,
  now: number,
  reach: JournalReach,
): Promise<{ result: InboxResult; isStored: boolean }> {
  const level = await catchUp(db, applicationId, journal);
  const journalAt = journal.last()?.sequence ?? 0;
  if (level.kind !== "gap") {
    const { at, applied } = level;
    const { since: journalSince, bytes: journalBytes } = reach;
    return { result: { kind: "level", sequence: at.sequence, applied, journalSince, journalBytes }, isStored: false };
  }
  const { at } = level;
  if (!acceptLoss || !at)
    return { result: { kind: "gap", d1: at?.sequence ?? null, journal: journalAt }, isStored: false };
  const known = journal.lastEntry()?.position ?? at;
  const result: InboxResult = { kind: "loss-accepted", d1: at.sequence, journal: journalAt, skipped: skip };
  const entry = lossEntry(at, known, skip, now, { id, result: JSON.stringify(result) });
  journal.begin(applicationId, at, now);
  journal.append(entry, now, false);
  const applied = await applyEntry(db, applicationId, entry, journal.since());
  if (applied.kind !== "applied") throw new Unavailable("D1", "error" in applied ? applied.error : undefined, true);
  log("warn", {
    event: "loss-accepted",
    application: applicationId,
    d1: at.sequence,
    journal: journalAt,
    skipped: skip,
  });
  return { result, isStored: true };
}

function lossEntry(at: Position, known: Position, skip: number, now: number, result: Entry["results"][number]): Entry {
  const id = newEntryId(now);
  return {
    version: 1,
    id,
    previous: at.entry,
    position: {
      sequence: Math.max(at.sequence, known.sequence) + 1,
      entry: id,
      fresh: skipNumbers(furthest(at.fresh, known.fresh), skip),
      lastPosition: Math.max(at.lastPosition, known.lastPosition) + skip,
      lastChange: Math.max(at.lastChange, known.lastChange) + skip,
      lastSigningKey: 0,
      epoch: newRandomId(),
      hourStartedAt: now,
      hourUsed: 0,
    },
    writes: [],
    events: [],
    calls: [],
    results: [result],
    erasures: [],
    keys: [],
    lastNumber: null,
    unless: null,
    lossAcceptedAt: now,
  };
}

/** Each part as far as either side has used it. */
export function furthest(one: readonly RangePart[], other: readonly RangePart[]): RangePart[] {
  const parts = new Map(one.map((part) => [part.first, part]));
  for (const part of other) {
    const known = parts.get(part.first);
    parts.set(
      part.first,
      known ? { ...part, size: Math.max(part.size, known.size), used: Math.max(part.used, known.used) } : part,
    );
  }
  return [...parts.values()].sort((a, b) => a.first - b.first);
}

/** Leaves out so many fresh numbers more. */
function skipNumbers(parts: readonly RangePart[], skip: number): RangePart[] {
  let left = skip;
  return parts.map((part) => {
    const skipped = Math.min(left, part.size - part.used);
    left -= skipped;
    return { ...part, used: part.used + skipped };
  });
}
