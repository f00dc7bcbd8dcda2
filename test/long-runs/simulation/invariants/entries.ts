import { homeOf } from "../../../../src/shared/homes.ts";
import type { ApplicationId } from "../../../../src/shared/identifiers.ts";
import type { Entry } from "../../../../src/worker/core/entry.ts";
import { Member } from "../member.ts";
import { type Change, ENTRY_TABLES } from "../platform/d1.ts";
import type { Row } from "../platform/sqlite.ts";
import { nameOfRow } from "./history.ts";

/** A time in which D1 lacked entries that it once had, in milliseconds; Infinity: it still does. */
interface Gap {
  applicationId: string;
  from: number;
  to: number;
}

/**
 * What the entries of each application did when D1 applied them first. After a restoration they are applied again, in order, and
 * do the same, so that D1 has in the end whatever callers were told (contract section 21).
 */
export class Entries extends Member {
  /** What each entry changed, by its ID. */
  readonly #effects = new Map<string, string>();
  /** Each entry's ID, by its application and sequence number. */
  readonly #places = new Map<string, string>();
  readonly #highest = new Map<string, number>();
  /** What the newest entry of each application changed, and its ID. */
  readonly #newest = new Map<string, { entry: string; changes: readonly Change[] }>();
  readonly #gaps: Gap[] = [];
  /** By an entry's ID: the calls that it carries out, and which instance of its object kept it first, when. */
  readonly #kept = new Map<string, { calls: readonly string[]; instance: string; at: number }>();
  /** When an instance told that a call changes nothing, in milliseconds, by their names. */
  readonly #givenUp = new Map<string, number>();
  /** Rows as the last entries left them, by table and key. */
  readonly #rows = new Map<string, Row>();

  /** An object keeps an entry, before it sends it to D1. */
  noteKept({ id, calls }: Pick<Entry, "id" | "calls">, instance: string): void {
    const { now: at } = this.world.timeline;
    if (!this.#kept.has(id)) this.#kept.set(id, { calls: calls.map((call) => call.id), instance, at });
  }

  /** Since when an entry may be applied, in milliseconds: an instance that dies leaves it to the next one. */
  keptAt(entry: unknown): number {
    return this.#kept.get(String(entry))?.at ?? this.world.timeline.now;
  }

  /** An instance of an object tells that a call changes nothing. */
  noteGivenUp(callId: string, instance: string): void {
    this.#givenUp.set(`${instance} ${callId}`, this.world.timeline.now);
  }

  /**
   * Takes a transaction apart into entries.
   *
   * @param lateMilliseconds how long ago it was sent
   * @returns what D1 did for the first time, and what it did again
   */
  see(changes: readonly Change[], lateMilliseconds: number): { changes: Change[]; isRepeated: boolean }[] {
    const parts: Change[][] = [];
    for (const change of changes) {
      const isFence = change.table === "position" && change.after !== null;
      if (isFence || parts.length === 0) parts.push([]);
      parts.at(-1)?.push(change);
    }
    return parts.map((part) => ({ changes: part, isRepeated: this.#isRepeated(part, lateMilliseconds) }));
  }

  /** Whether a change of a position would put another entry in the place of one that D1 has had. */
  isReplaced({ table, after }: Change): boolean {
    if (table !== "position" || after === null) return false;
    return (this.#places.get(`${after.application_id} ${after.sequence}`) ?? after.entry) !== after.entry;
  }

  /** Whether D1 lacked something of an application at some moment of a time. Reads may show the older state then. */
  lacked(applicationId: string, from: number, to: number): boolean {
    return this.#gaps.some((gap) => gap.applicationId === applicationId && gap.from <= to && gap.to >= from);
  }

  /** A home's D1 was restored. */
  restored(home: number): void {
    const { plan, timeline } = this.world;
    for (const { id } of plan.applications.filter((application) => homeOf(application.id) === home)) {
      const isBehind = this.#sequenceOf(id) < (this.#highest.get(id) ?? 0);
      const isOpen = this.#gaps.some(({ applicationId, to }) => applicationId === id && to === Infinity);
      if (isBehind && !isOpen) this.#gaps.push({ applicationId: id, from: timeline.now, to: Infinity });
      if (!isBehind) this.#close(id);
    }
  }

  /** Nothing is under way: D1 has everything that it ever had, as the last entries left it. */
  checkAtRest(): void {
    const { d1, plan, verdict, timeline } = this.world;
    for (const { id } of plan.applications) {
      const lacks = this.lacked(id, timeline.now, timeline.now);
      verdict.expect(!lacks, "what D1 forgot in a restoration comes back by itself", id, this.#sequenceOf(id));
    }
    const there = new Map(
      ENTRY_TABLES.flatMap((table) => d1.look(`SELECT * FROM ${table}`).map((row) => [nameOfRow(table, row), row])),
    );
    for (const [name, row] of this.#rows) {
      const isThere = contentOf(there.get(name) ?? null) === contentOf(row);
      verdict.expect(isThere, "D1 has every row as the last entry left it", name, row, there.get(name) ?? "nothing");
    }
    for (const [name, row] of there) verdict.expect(this.#rows.has(name), "D1 has no row that no entry left", row);
  }

  #isRepeated(changes: readonly Change[], lateMilliseconds: number): boolean {
    const { verdict } = this.world;
    const own = changes.filter(({ table }) => ENTRY_TABLES.includes(table));
    const { before, after: position } = changes.find(({ table }) => table === "position") ?? {};
    verdict.expect(own.length === 0 || position != null, "only entries change badges, invitations and blocks", own);
    if (!position) return false;
    const { application_id: id, entry, sequence } = position;
    const place = `${id} ${sequence}`;
    const effect = effectOf(changes);
    const known = this.#effects.get(`${id} ${entry}`);
    this.#forget(String(id), String(entry), place, before ?? {});
    const isOne = (this.#places.get(place) ?? entry) === entry;
    verdict.expect(isOne, "one entry has one place in the list", position, this.#places.get(place) ?? "");
    const isSame = known === undefined || known === effect;
    verdict.expect(isSame, "an entry that is applied again does what it did", effect, "instead of", known ?? "");
    this.#places.set(place, String(entry));
    this.#effects.set(`${id} ${entry}`, effect);
    if (known === undefined) {
      this.#note(own);
      this.#checkGivenUp(String(id), String(entry), lateMilliseconds);
    }
    const highest = Math.max(this.#highest.get(String(id)) ?? 0, Number(sequence));
    this.#highest.set(String(id), highest);
    if (Number(sequence) === highest) {
      this.#newest.set(String(id), { entry: String(entry), changes });
      this.#close(String(id));
    }
    return known !== undefined;
  }

  /**
   * All callers of an application's newest entry were told 503, and D1 was restored to before it: then another entry may take
   * its place, and what it changed is gone.
   *
   * @param before the position that the other one follows
   */
  #forget(id: string, entry: string, place: string, before: Row): void {
    const newest = this.#newest.get(id);
    if (newest === undefined || newest.entry === entry || newest.entry !== this.#places.get(place)) return;
    const { calls, instance } = this.#kept.get(newest.entry) ?? { calls: [], instance: "" };
    const { now } = this.world.timeline;
    if (!this.lacked(id, now, now) || !calls.every((call) => this.#givenUp.has(`${instance} ${call}`))) return;
    const own = newest.changes.filter(({ table }) => ENTRY_TABLES.includes(table));
    this.#note(own.map(({ table, before, after }) => ({ table, before: after, after: before })));
    this.#places.delete(place);
    this.world.rows.forget(id, newest.changes, before);
  }

  /**
   * What was on its way may still arrive. Repeated is what an instance had kept when it died, and what D1 may have had before it
   * was restored: nothing else.
   */
  #checkGivenUp(id: string, entry: string, lateMilliseconds: number): void {
    const { verdict, timeline } = this.world;
    const { calls, instance, at } = this.#kept.get(entry) ?? { calls: [], instance: "", at: 0 };
    for (const call of calls) {
      const givenUpAt = this.#givenUp.get(`${instance} ${call}`) ?? Infinity;
      const isAllowed = timeline.now - lateMilliseconds <= givenUpAt || this.lacked(id, at, givenUpAt);
      verdict.expect(isAllowed, "what was answered 503 is not sent to D1 again", entry, call, givenUpAt);
    }
  }

  #note(changes: readonly Change[]): void {
    for (const { table, before, after } of changes) {
      if (after) this.#rows.set(nameOfRow(table, after), after);
      else if (before) this.#rows.delete(nameOfRow(table, before));
    }
  }

  #close(id: string): void {
    for (const gap of this.#gaps) {
      if (gap.applicationId === id && gap.to === Infinity) gap.to = this.world.timeline.now;
    }
  }

  #sequenceOf(id: ApplicationId): number {
    return Number(this.world.d1.of(id).look("SELECT sequence FROM position WHERE application_id = ?", id)[0]?.sequence);
  }
}

/** How far back the journal reaches is no part of an entry. */
const contentOf = (row: Row | null): string => JSON.stringify(row && { ...row, journal_since: null });

/** Of events, what was told: whether one is held depends on when it is recorded. */
function effectOf(changes: readonly Change[]): string {
  return changes
    .flatMap(({ table, before, after }) => {
      if (table === "webhook_event") return [JSON.stringify({ table, id: after?.id, payload: after?.payload })];
      return ENTRY_TABLES.includes(table) ? [`${table} ${contentOf(before)} ${contentOf(after)}`] : [];
    })
    .sort()
    .join("\n");
}
