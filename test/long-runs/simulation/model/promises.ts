import { Member } from "../member.ts";
import type { Content, Position } from "./d1.ts";
import type { Command, Result, Row } from "./decide.ts";
import type { Model } from "./world.ts";

interface Told {
  command: Command;
  beganAt: number;
  endedAt: number;
  /** null: 503. */
  result: Result | null;
}

const ownerOf = ({ device, user }: Row): string => `${device}/${user}`;
const isLive = ({ kind, state }: Row): boolean => kind === "badge" && state !== "revoked";
const changesIn = (rows: readonly Row[]): Row[] =>
  rows.filter(({ kind }) => kind === "change").sort((one, other) => one.number - other.number);

/** What callers were promised, held against what D1 has. */
export class Promises extends Member<Model> {
  readonly #told: Told[] = [];
  /** What callers and readers of the feed saw by change numbers, and which of it need not be there any more. */
  readonly #seen = new Map<number, { content: string; isLost: boolean; isAnswered: boolean }>();
  readonly #owners = new Map<number, string>();
  /** Entries that D1 ever had, in whatever life, by sequence number. */
  readonly #lives = new Map<number, Set<string>>();
  /** The highest sequence number that D1 had, of entries that are not lost unnoticed; and the newest entry. */
  #highest = 0;
  #newest = "";
  /** Since when answers count for the order of calls. */
  #countsFrom = 0;
  /** Whether an object was restored or lost: then more may be lost than anybody can know. */
  #wasObjectLost = false;
  #cursor = 0;
  /** Whether a restoration was undone before the object saw it: for 30 days D1 can be restored to what it was then. */
  wasHidden = false;
  /** When something was lost that nobody can know of, in milliseconds. */
  unnoticedAt = 0;

  /** A call ended. */
  tell(told: Told): void {
    this.#told.push(told);
    const { result } = told;
    if (!result) return;
    const { facts, owner } = result;
    // The answer was on its way while what it says was lost.
    const isThere = this.#whatIsThere();
    const says = facts.map(({ content }) => content);
    if (owner) says.push(issued(owner.number, owner.of));
    if (told.beganAt <= this.#countsFrom && !says.every(isThere)) return;
    for (const { change, content } of facts) this.#see(change, content, "was answered");
    if (owner) this.#own(owner.number, owner.of);
  }

  /** Somebody reads D1, past the object: the feed, and whose badges there are. */
  read(rows: readonly Row[]): void {
    // Until a gap is noticed, readers may see another life.
    if (!this.#isOneLife()) return;
    for (const { number, state } of changesIn(rows).filter(({ number }) => number > this.#cursor)) {
      this.#see(number, state, "was read");
      this.#cursor = number;
    }
    for (const row of rows.filter(({ kind }) => kind === "badge")) this.#own(row.number, ownerOf(row));
  }

  /** Whether D1 and the journal can be of one life, as far as either knows. */
  #isOneLife(): boolean {
    const { d1, journal } = this.world;
    const { position } = d1.read();
    const isAhead = (position?.sequence ?? 0) > (journal.top?.sequence ?? -1);
    return isAhead || [journal.base, ...journal.entries].some((kept) => kept?.entry === position?.entry);
  }

  /** Tells whether a change is in D1, or in an entry of the journal that D1 once had. */
  #whatIsThere(): (content: string) => boolean {
    const { d1, journal } = this.world;
    const { rows } = d1.read();
    const had = journal.entries.filter(({ sequence, entry }) => this.#lives.get(sequence)?.has(entry));
    const text = JSON.stringify(had.map(({ writes }) => writes));
    return (content) => rows.some(({ state }) => state.endsWith(content)) || text.includes(content);
  }

  #see(change: number, content: string, how: string): void {
    const seen = this.#seen.get(change) ?? { content, isLost: false, isAnswered: false };
    this.#expect(seen.content === content, "a change number stands for one change", change, seen, content, how);
    this.#seen.set(change, { ...seen, isAnswered: seen.isAnswered || how === "was answered" });
  }

  #own(number: number, of: string): void {
    const owner = this.#owners.get(number) ?? of;
    this.#expect(owner === of, "no number has two owners", number, owner, of);
    this.#owners.set(number, owner);
  }

  /** A transaction of D1, by the object or by nobody. */
  commit(before: Content, { position, rows }: Content): void {
    const { losses } = this.world;
    const from = before.position;
    if (!position || !from || from.entry === position.entry) return;
    this.#highest = Math.max(this.#highest, position.sequence);
    this.#newest = position.entry;
    const ids = this.#lives.get(position.sequence) ?? new Set();
    this.#lives.set(position.sequence, ids.add(position.entry));
    const numbers = rows.filter(({ kind, state }) => kind === "badge" || kind === "freed" || state === "pending");
    const places = new Set(numbers.map(({ number }) => number));
    this.#expect(places.size === numbers.length, "a number has one place", numbers);
    const isNoneLost = places.size === position.fresh || losses.length > 0;
    this.#expect(isNoneLost, "every number that was handed out has a place", numbers, position);
    this.#expect(Math.max(0, ...places) <= position.fresh, "fresh numbers are counted", position);
    if (losses.some((sequence) => sequence > from.sequence && sequence <= position.sequence)) this.#startAgain(rows);
    else this.#checkChanges(before.rows, from, position, rows);
    this.#checkBlocks(before.rows, rows);
  }

  /**
   * An accepted loss: what is not there is lost, and readers of the feed start again. Numbers keep their owners, unless D1 was
   * restored to where it had an entry that was abandoned: it gave a number that another entry gave again (seed 1241).
   */
  #startAgain(rows: readonly Row[]): void {
    for (const change of this.#lacking(rows)) this.#seen.delete(change);
    const given = new Map(rows.filter(({ kind }) => kind === "badge").map((row) => [row.number, ownerOf(row)]));
    for (const [number, of] of this.#isDivided() ? given : []) {
      if (this.#owners.has(number)) this.#owners.set(number, of);
    }
    this.#cursor = 0;
    this.#countsFrom = this.world.timeline.now;
  }

  /** Change numbers of what was seen and is not there. */
  #lacking(rows: readonly Row[]): number[] {
    const there = new Map(changesIn(rows).map(({ number, state }) => [number, state]));
    return [...this.#seen].flatMap(([change, { content }]) => (there.get(change) === content ? [] : [change]));
  }

  #checkChanges(before: readonly Row[], from: Position, to: Position, rows: readonly Row[]): void {
    const old = new Set(before.map(({ key }) => key));
    const made = changesIn(rows).filter(({ key }) => !old.has(key));
    const isNext = made.every(({ number }, index) => number === from.change + 1 + index);
    const isCounted = isNext && to.change === from.change + made.length;
    this.#expect(isCounted, "change numbers are counted without gaps", made, from, to);
  }

  #checkBlocks(before: readonly Row[], rows: readonly Row[]): void {
    for (const block of rows.filter(({ kind, state }) => kind === "block" && state === "done")) {
      const left = rows.filter((row) => isLive(row) && row.user === block.user);
      this.#expect(left.length === 0, "who is blocked has no badge", block, left);
    }
    for (const block of before.filter(({ kind, state }) => kind === "block" && state === "revoking")) {
      if (rows.some(({ key, cause }) => key === block.key && cause === block.cause)) continue;
      const left = rows.filter((row) => isLive(row) && row.user === block.user && row.list <= block.list);
      this.#expect(left.length === 0, "a block revokes every badge before the next step begins", block, left);
    }
    const known = new Set(before.map(({ key }) => key));
    const changes = changesIn(rows);
    for (const { key, number, state } of changes) {
      const [, badge, cause] = /: (badge \d+) revoked by (.*)/.exec(state) ?? [];
      if (known.has(key) || badge === undefined) continue;
      const block = changes.find((row) => row.cause === cause && row.state.includes(" blocked "));
      const created = changes.find((row) => row.state.includes(`: ${badge} active `));
      const isMeant = block && created && created.number < block.number;
      const unblocked = `: un${block?.state.split(": ").at(-1)}`;
      const since = changes.filter((row) => block && row.number > block.number && row.number < number);
      const isEnded = since.some((row) => row.state.endsWith(unblocked));
      this.#expect(isMeant && !isEnded, "a block revokes what there was, and nothing after an unblock", state);
    }
  }

  /**
   * D1 or the object was restored. Both keep what callers were told; only what an object forgot that D1 forgets before they
   * compare is lost, and nobody can know of it, unless they now differ in what they have.
   */
  restored(isObject: boolean): void {
    const { timeline, d1, journal } = this.world;
    if (!isObject) this.#forgetUnanswered();
    this.#wasObjectLost ||= isObject;
    if (!this.#wasObjectLost) return;
    const isThere = this.#whatIsThere();
    const isUnnoticed = this.#isOneLife();
    const lost = [...this.#seen].filter(([, { content }]) => !isThere(content));
    // Also what nobody was told of yet.
    const kept = Math.max(d1.read().position?.sequence ?? 0, journal.top?.sequence ?? 0);
    // An object that was restored may have an entry again in whose place D1 had another.
    const isNewestKept = [d1.read().position, ...journal.entries].some((each) => each?.entry === this.#newest);
    if (lost.length > 0 || kept < this.#highest || !isNewestKept) this.#countsFrom = timeline.now;
    if (kept < this.#highest && isUnnoticed) {
      this.unnoticedAt = timeline.now;
      this.#highest = kept;
    }
    for (const [change, seen] of lost) {
      seen.isLost = true;
      if (!isUnnoticed) continue;
      this.#seen.delete(change);
      this.#cursor = Math.min(this.#cursor, change - 1);
    }
    for (const [number, of] of isUnnoticed ? this.#owners : []) {
      if (!isThere(issued(number, of))) this.#owners.delete(number);
    }
  }

  /**
   * D1 was restored while the object waits for the result of its last entry: if readers alone saw that D1 had it, the entry may
   * be abandoned (seed 7272).
   */
  #forgetUnanswered(): void {
    const { d1, journal } = this.world;
    const waiting = JSON.stringify(journal.entries.at(-1)?.writes ?? []);
    const { rows } = d1.read();
    for (const [change, { content, isAnswered }] of this.#seen) {
      if (isAnswered || !waiting.includes(content) || rows.some(({ state }) => state === content)) continue;
      this.#seen.delete(change);
      this.#cursor = Math.min(this.#cursor, change - 1);
      const [, number = "", of] = /: badge (\d+) active (.*)$/.exec(content) ?? [];
      if (this.#owners.get(Number(number)) === of) this.#owners.delete(Number(number));
    }
  }

  /** A gap may only be reported when D1 changed lives, an object forgot something, or D1 was restored to what it was unseen. */
  gap(name: string, detail: string): void {
    const isCaused = this.#isDivided() || this.wasHidden || this.#wasObjectLost || detail === "no position";
    this.#expect(isCaused, "no gap without a cause", name, detail);
  }

  /** Time has passed, and nobody has called. */
  unasked(): void {
    if (this.#wasObjectLost || this.#isDivided() || !this.#isOneLife()) return;
    const lacking = this.#lacking(this.world.d1.read().rows);
    this.#expect(lacking.length === 0, "what was answered comes back unasked", lacking);
  }

  #isDivided(): boolean {
    return [...this.#lives.values()].some((ids) => ids.size > 1);
  }

  /** Nothing fails any more, and time has passed. */
  atRest(): void {
    const { d1, journal } = this.world;
    const { position, rows } = d1.read();
    const changes = changesIn(rows);
    const last = journal.top?.entry;
    this.#expect(position?.entry === last, "D1 ends where the journal ends", position, last);
    for (const change of this.#lacking(rows)) {
      const { isLost, content } = this.#seen.get(change) ?? { isLost: false, content: "", isAnswered: false };
      this.#expect(isLost, "what was answered is there", change, content);
      const isOther = changes.some(({ number }) => number === change);
      this.#expect(!isOther, "a change number stands for one change", change, content);
    }
    for (const row of rows.filter(({ kind }) => kind === "badge")) {
      const owner = this.#owners.get(row.number) ?? ownerOf(row);
      this.#expect(owner === ownerOf(row), "no number has two owners", owner, row);
      const pattern = new RegExp(`: ${row.key} (active|suspended|revoked)`);
      const newest = changes.map(({ state }) => pattern.exec(state)?.[1]).findLast((state) => state !== undefined);
      this.#expect(newest === row.state, "a badge is what its last change says", row, newest);
    }
    const causes = changes.map(({ cause }) => cause).filter((cause) => !/^(block|chunk)/.test(cause));
    const twice = causes.filter((cause, index) => causes.indexOf(cause) !== index);
    this.#expect(twice.length === 0 || this.#wasObjectLost, "a command takes effect once", twice);
    this.#checkOrder(changes);
    const unfinished = rows.filter(({ kind, state }) => kind === "block" && state === "revoking");
    this.#expect(unfinished.length === 0, "every block ends", unfinished);
  }

  #checkOrder(changes: readonly Row[]): void {
    const told = this.#told.filter(({ endedAt }) => endedAt > this.#countsFrom);
    for (const { number, state, cause } of changes) {
      const first = told.find(({ command }) => state.startsWith(`${command.call}: `));
      const calls = this.#told.filter(({ command }) => command.id === cause);
      for (const later of first && calls.length <= 1 ? told : []) {
        if (!first || !later.result || later.beganAt <= first.endedAt) continue;
        const isBefore = number <= later.result.base;
        this.#expect(isBefore, "what a call did comes before every later call", state, first, later);
      }
    }
  }

  #expect(isKept: boolean | undefined, invariant: string, ...details: unknown[]): void {
    this.world.verdict.expect(isKept === true, invariant, ...details);
  }
}

/** What the change says by which a badge is issued. */
const issued = (number: number, of: string): string => `: badge ${number} active ${of}`;
