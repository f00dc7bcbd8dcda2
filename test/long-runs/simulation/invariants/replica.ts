import { homeOf } from "../../../../src/shared/homes.ts";
import { fromStored } from "../../../../src/worker/allocator/log-entry.ts";
import { Member } from "../member.ts";
import { type Change, OWNED_TABLES } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";

/** A time in which something of an application was missing, in milliseconds; Infinity: it still is. */
interface Gap {
  applicationId: string;
  from: number;
  to: number;
}

interface Move {
  before: Row;
  after: Row;
}

/** How long an allocator that cannot be reached keeps copies from being trusted, in milliseconds. */
const MAX_WAIT_MILLISECONDS = 600_000;

/** What the head says while an administrator has D1's rows replaced, or is still to decide. */
export const CLOSED = Number.MAX_SAFE_INTEGER;

/**
 * D1 beside the allocators' logs: D1 stores entries in their order, each once, and after a restoration again what it did then
 * (contract section 21).
 */
export class Replica extends Member {
  /** By application: each logged entry's ID, its sequence number, and when it was logged, in milliseconds. */
  readonly #logged = new Map<string, { id: string; sequence: number; at: number }[]>();
  /** Each entry's ID that D1 has had, by its application and sequence number. */
  readonly #places = new Map<string, string>();
  /** The rows with which D1 was at an entry, by application and entry. */
  readonly #rows = new Map<string, string>();
  readonly #highest = new Map<string, number>();
  readonly #gaps: Gap[] = [];
  readonly #losses: (Gap & { epoch: string })[] = [];
  /** The epoch that readers last saw. */
  readonly #seenEpochs = new Map<string, string>();
  readonly #burned = new Map<number, string>();
  readonly #epochs = new Map<string, Set<string>>();
  /** Applications that were closed until an administrator decides, and have sent nothing since. */
  readonly #closed = new Set<string>();
  /** Applications whose allocator may not know what D1 has: another instance began, or a batch had no response. */
  readonly #unsure = new Set<string>();
  /** By application, the newest batch that has no response yet. */
  readonly #unanswered = new Map<string, object>();
  /** By application, when the newest instance of its allocator began, in milliseconds. */
  readonly #instances = new Map<string, number>();
  /** By home, D1's heartbeat, and when a tick could notice by it that D1 was restored, in milliseconds. */
  readonly #heartbeats = new Map<number, { sequence: number; noticed: number[] }>();

  noteLogged(applicationId: string, sequence: number, id: string, changes: string): void {
    const { withdrawn, erasures } = fromStored(JSON.parse(changes));
    for (const erasure of erasures) if (!erasure.isDone) this.world.erased.note(applicationId, erasure);
    for (const number of withdrawn) this.#burned.set(number, applicationId);
    const { planted } = this.world.planter;
    const isForeign = withdrawn.every((number) => planted.some((other) => other.number === number));
    this.world.verdict.expect(isForeign, "only a number that somebody else has is withdrawn", withdrawn);
    const logged = this.#logged.get(applicationId) ?? [];
    logged.push({ id, sequence, at: this.world.timeline.now });
    this.#logged.set(applicationId, logged);
  }

  countBurned(applicationId: string): number {
    return [...this.#burned.values()].filter((id) => id === applicationId).length;
  }

  /** An allocator has lost its rows: it responds when it has copied them from D1. */
  noteLoss(applicationId: string): void {
    const head = this.world.d1.headOf(applicationId);
    const epoch = Number(head?.last_change) > 0 ? String(head?.epoch) : "";
    this.#losses.push({ applicationId, from: this.world.timeline.now, to: Infinity, epoch });
  }

  noteNewInstance(applicationId: string): void {
    this.#unsure.add(applicationId);
    this.#instances.set(applicationId, this.world.timeline.now);
  }

  /** When the newest instance of an allocator began beside or after another one, in milliseconds. */
  newestInstanceOf(applicationId: string): number {
    return this.#instances.get(applicationId) ?? Number.NEGATIVE_INFINITY;
  }

  /** An allocator sends entries. @returns to be called when it has the response */
  noteSent(applicationId: string): () => void {
    if (this.#unanswered.has(applicationId)) this.#unsure.add(applicationId);
    const batch = {};
    this.#unanswered.set(applicationId, batch);
    return () => this.#unanswered.get(applicationId) === batch && this.#unanswered.delete(applicationId);
  }

  noteCopied(applicationId: string): void {
    const own = this.#losses.filter((loss) => loss.applicationId === applicationId);
    for (const loss of own) {
      // A superseded instance may have copied rows that were not kept: the copy that counts comes later.
      if (loss.to !== Infinity && loss !== own.at(-1)) continue;
      loss.to = this.world.timeline.now;
      this.#expectNewEpoch(loss.epoch, this.world.d1.headOf(applicationId));
    }
  }

  /** Cursors expire (contract section 13). */
  #expectNewEpoch(epoch: string | undefined, head: Row | undefined): void {
    const isNew = head?.epoch !== epoch;
    this.world.verdict.expect(isNew, "whoever follows the feed of copied rows begins again", head ?? "");
  }

  /** Whether an allocator was without rows at some moment of a time. */
  wasWithoutRows(applicationId: string, from: number, to: number): boolean {
    return this.#losses.some((loss) => loss.applicationId === applicationId && loss.from <= to && loss.to >= from);
  }

  /** When the entries of a transaction were logged: the earliest, in milliseconds. */
  loggedAt(changes: readonly Change[]): number {
    const move = moveOf(changes);
    const logged = this.#logged.get(String(move?.after.application_id)) ?? [];
    const [from, to] = [Number(move?.before.sequence), Number(move?.after.sequence)];
    const times = logged.filter(({ sequence }) => sequence > from && sequence <= to).map(({ at }) => at);
    return Math.min(this.world.timeline.now, ...times);
  }

  /** Whether D1 lacked something of an application at some moment of a time. Reads may show the older state then. */
  lacked(applicationId: string, from: number, to: number): boolean {
    return this.#gaps.some((gap) => gap.applicationId === applicationId && gap.from <= to && gap.to >= from);
  }

  /**
   * Since when it may have been so what a call is decided by, in milliseconds: while D1 lacks something, the allocator goes by what
   * D1 had before the restoration, and readers by what it had at an earlier time.
   */
  decidedSince(applicationId: string, from: number, to: number): number {
    return this.lacked(applicationId, from, to) ? 0 : from;
  }

  /** Whether an allocator may not know yet that it need not be closed any more: D1 was restored once more. */
  mayBeClosed(applicationId: string): boolean {
    return this.#closed.has(applicationId);
  }

  /** Whether whoever follows the feed had to begin again, ever. */
  hasNewEpoch(applicationId: string): boolean {
    return (this.#epochs.get(applicationId)?.size ?? 0) > 1;
  }

  restored(home: number): void {
    const { plan } = this.world;
    for (const { id } of plan.applications.filter((application) => homeOf(application.id) === home)) {
      const head = this.world.d1.headOf(id);
      const isBehind = Number(head?.sequence) < (this.#highest.get(id) ?? 0);
      if (isBehind || (head && !isReadable(head))) this.#open(id);
      else this.#close(id);
    }
  }

  /**
   * Looks at a transaction of D1.
   *
   * @param lateMilliseconds how long ago it was sent
   * @returns whether D1 has done it before, or some of it
   */
  see(changes: readonly Change[], lateMilliseconds: number): boolean {
    const { verdict, plan, timeline } = this.world;
    const isPlanned = ({ before, after }: Change) =>
      plan.applications.some(({ id }) => id === (after ?? before)?.application_id);
    const own = changes.filter((change) => OWNED_TABLES.includes(change.table) && isPlanned(change));
    const move = moveOf(changes);
    verdict.expect(own.length === 0 || move !== null, "only entries change badges, invitations and blocks", own);
    if (!move) return false;
    const { before, after } = move;
    const id = String(after.application_id);
    this.#epochs.set(id, (this.#epochs.get(id) ?? new Set()).add(String(after.epoch)));
    if (Number(after.readable_from) === CLOSED) {
      this.#open(id);
      this.#closed.add(id);
      return true;
    }
    this.#closed.delete(id);
    if (isReadable(after)) {
      this.#unsure.delete(id);
    } else {
      // What may have been lost keeps readers out until all of it is there.
      if (this.#unsure.has(id)) this.#open(id);
      const isDoubted = this.lacked(id, timeline.now, timeline.now);
      verdict.expect(isDoubted, "readers are kept out only while D1 may lack something", before, after);
    }
    if (before.entry === after.entry) return false;
    const isLogged = this.#logged.get(id)?.some((entry) => entry.id === before.entry);
    const isRepublished = Number(before.readable_from) === CLOSED && !isLogged;
    if (isRepublished) this.#expectNewEpoch(this.#seenEpochs.get(id), after);
    this.#seenEpochs.set(id, String(after.epoch));
    // Whoever copies the rows begins with another epoch.
    const isFlagged = before.epoch === after.epoch && Number(before.readable_from) !== CLOSED;
    const isKept = !isFlagged || !isReadable(after) || isReadable(before, after);
    verdict.expect(isKept, "D1 keeps readers out until it has all that it had", before, after);
    return this.#isRepeated(id, move, lateMilliseconds);
  }

  /**
   * The heartbeat of a home's D1 changes. By its time copies are trusted: when a tick has noticed a restoration, it stays until every
   * allocator has compared itself with D1.
   */
  seeHeartbeat(home: number, { before, after }: Change, lateMilliseconds: number): void {
    const { timeline, plan, d1, verdict } = this.world;
    const known = this.#heartbeats.get(home) ?? { sequence: 0, noticed: [] };
    const sequence = Number(after?.sequence);
    if (before?.sequence !== sequence) {
      if (Number(before?.sequence ?? 0) !== known.sequence) known.noticed.push(timeline.now);
      this.#heartbeats.set(home, { ...known, sequence });
    }
    if (before?.ticked_at === after?.ticked_at) return;
    const noticedAt = known.noticed.findLast((at) => at <= timeline.now - lateMilliseconds) ?? Number.NEGATIVE_INFINITY;
    for (const { id } of plan.applications.filter((application) => homeOf(application.id) === home)) {
      const head = d1.headOf(id);
      const isBehind = this.#gaps.some(
        ({ applicationId, from, to }) =>
          applicationId === id && to === Infinity && from < noticedAt && from > timeline.now - MAX_WAIT_MILLISECONDS,
      );
      const isHidden = !head || !isReadable(head) || d1.wasRestored(id, noticedAt, timeline.now);
      verdict.expect(!isBehind || isHidden, "no copy is trusted while D1 lacks what it had", head ?? "", after);
    }
  }

  #isRepeated(id: string, { before, after }: Move, lateMilliseconds: number): boolean {
    const { verdict, plan, timeline, d1 } = this.world;
    const highest = this.#highest.get(id) ?? 0;
    const sequence = Number(after.sequence);
    const place = `${id} ${sequence}`;
    const known = this.#places.get(place);
    verdict.expect((known ?? after.entry) === after.entry, "one entry has one place in the log", after, known ?? "");
    this.#places.set(place, String(after.entry));
    const isCovered = sequence >= highest || Number(after.readable_from) > sequence;
    const sentAt = timeline.now - lateMilliseconds;
    const isFromBefore = lateMilliseconds > 0 && d1.wasRestored(id, sentAt, timeline.now);
    verdict.expect(isCovered || isFromBefore, "readers do not see D1 while it is behind", after, highest);
    if (plan.restorations > 0) this.#compareRows(id, after);
    this.#highest.set(id, Math.max(highest, sequence));
    // It is readable again when it also has what was logged since, of which nobody was told yet.
    if (sequence >= highest && isReadable(after)) this.#close(id);
    return Number(before.sequence) < highest;
  }

  /** An entry that is applied again leaves D1 as it did. */
  #compareRows(id: string, { entry, refused }: Row): void {
    const rows = OWNED_TABLES.map((table) =>
      this.world.d1.look(`SELECT * FROM ${table} WHERE application_id = ? ORDER BY 1, 2`, id),
    );
    const now = JSON.stringify(rows);
    const name = `${id} ${entry}`;
    const known = this.#rows.get(name);
    const isSame = known === undefined || known === now || refused !== "[]";
    const promise = "an entry that is applied again does what it did";
    this.world.verdict.expect(isSame, promise, now, "instead of", known ?? "");
    if (known === undefined) this.#rows.set(name, now);
  }

  /** Nothing is under way: D1 has everything that it ever had. */
  checkAtRest(): void {
    const { plan, verdict, timeline, d1 } = this.world;
    for (const { id } of plan.applications) {
      const lacks = this.lacked(id, timeline.now, timeline.now);
      verdict.expect(!lacks, "what D1 forgot in a restoration comes back by itself", id, d1.headOf(id));
    }
  }

  #open(id: string): void {
    const isOpen = this.#gaps.some(({ applicationId, to }) => applicationId === id && to === Infinity);
    if (!isOpen) this.#gaps.push({ applicationId: id, from: this.world.timeline.now, to: Infinity });
  }

  #close(id: string): void {
    for (const gap of this.#gaps) {
      if (gap.applicationId === id && gap.to === Infinity) gap.to = this.world.timeline.now;
    }
  }
}

/** Whether readers may read at a head, by its flag or by that of the head before it. */
const isReadable = (flag: Row, head: Row = flag): boolean => Number(flag.readable_from) <= Number(head.sequence);

/** Where a transaction has moved a head; null: it has changed none, or made it. */
function moveOf(changes: readonly Change[]): Move | null {
  const heads = changes.filter(({ table }) => table === "application_head");
  const [before, after] = [heads[0]?.before, heads.at(-1)?.after];
  return before && after ? { before, after } : null;
}
