import { Verdict } from "../invariants/verdict.ts";
import type { Content, Position } from "./d1.ts";
import type { Command, Result, Row } from "./decide.ts";
import type { World } from "./world.ts";

interface Told {
  command: Command;
  beganAt: number;
  endedAt: number;
  /** null: 503. */
  result: Result | null;
}

/** What callers were promised, held against what D1 has. */
export class Promises {
  readonly verdict = new Verdict();
  readonly #world: World;
  readonly #told: Told[] = [];
  /** What callers and readers of the feed saw by change numbers, and which of it need not be there any more. */
  readonly #seen = new Map<number, { content: string; isLost: boolean }>();
  readonly #owners = new Map<number, { of: string; isLost: boolean }>();
  /** Entries that D1 ever had, in whatever life, by sequence number. */
  readonly #lives = new Map<number, Set<string>>();
  /** The highest sequence number that D1 had, of entries that are not lost unnoticed. */
  #highest = 0;
  /** Since when answers count for the order of calls. */
  #countsFrom = 0;
  /** Whether an object was restored or lost: then more may be lost than anybody can know. */
  #wasObjectLost = false;
  #cursor = 0;
  /** Whether a restoration was undone before the object saw it: for 30 days D1 can be restored to what it was then. */
  wasHidden = false;
  /** When something was lost that nobody can know of, in milliseconds. */
  unnoticedAt = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** A call ended. */
  tell(told: Told): void {
    this.#told.push(told);
    const { result } = told;
    if (!result) return;
    // The answer was on its way while what it says was lost.
    const isThere = this.#whatIsThere();
    const says = result.facts.map(({ content }) => content);
    if (result.owner) says.push(`: badge ${result.owner.number} active ${result.owner.of}`);
    if (told.beganAt <= this.#countsFrom && !says.every(isThere)) return;
    for (const { change, content } of result.facts) this.#see(change, content, "was answered");
    if (result.owner) this.#own(result.owner.number, result.owner.of);
  }

  /** Somebody reads D1, past the object: the feed, and whose badges there are. */
  read(rows: readonly Row[]): void {
    // Until a gap is noticed, readers may see another life.
    if (!this.#isOneLife()) return;
    const changes = rows.filter(({ kind, number }) => kind === "change" && Number(number) > this.#cursor);
    for (const { number, state } of changes.sort((one, other) => Number(one.number) - Number(other.number))) {
      this.#see(Number(number), String(state), "was read");
      this.#cursor = Number(number);
    }
    for (const row of rows.filter(({ kind }) => kind === "badge")) this.#own(Number(row.number), ownerOf(row));
  }

  /** Whether D1 and the journal can be of one life, as far as either knows. */
  #isOneLife(): boolean {
    const { d1, journal } = this.#world;
    const { position } = d1.read();
    const isAhead = (position?.sequence ?? 0) > (journal.top?.sequence ?? -1);
    return isAhead || [journal.base, ...journal.entries].some((kept) => kept?.entry === position?.entry);
  }

  /** Tells whether a change is in D1, or in an entry of the journal that D1 once had. */
  #whatIsThere(): (content: string) => boolean {
    const { d1, journal } = this.#world;
    const { rows } = d1.read();
    const had = journal.entries.filter(({ sequence, entry }) => this.#lives.get(sequence)?.has(entry));
    const text = JSON.stringify(had.map(({ writes }) => writes));
    return (content) => rows.some(({ state }) => state?.endsWith(content)) || text.includes(content);
  }

  #see(change: number, content: string, how: string): void {
    const seen = this.#seen.get(change);
    if (seen)
      this.#expect(seen.content === content, "a change number stands for one change", change, seen, content, how);
    else this.#seen.set(change, { content, isLost: false });
  }

  #own(number: number, of: string): void {
    const owner = this.#owners.get(number);
    if (owner) this.#expect(owner.of === of, "no number has two owners", number, owner, of);
    else this.#owners.set(number, { of, isLost: false });
  }

  /** A transaction of D1, by the object or by nobody. */
  commit(before: Content, { position, rows }: Content): void {
    const from = before.position;
    if (!position || !from || from.entry === position.entry) return;
    this.#highest = Math.max(this.#highest, position.sequence);
    const ids = this.#lives.get(position.sequence) ?? new Set();
    this.#lives.set(position.sequence, ids.add(position.entry));
    const numbers = rows.filter(({ kind, state }) => kind === "badge" || kind === "freed" || state === "pending");
    const places = new Set(numbers.map(({ number }) => number));
    this.#expect(places.size === numbers.length, "a number has one place", numbers);
    const isNoneLost = places.size === position.fresh || this.#world.losses.length > 0;
    this.#expect(isNoneLost, "every number that was handed out has a place", numbers, position);
    this.#expect(Math.max(0, ...[...places].map(Number)) <= position.fresh, "fresh numbers are counted", position);
    const isLoss = this.#world.losses.some((sequence) => sequence > from.sequence && sequence <= position.sequence);
    if (!isLoss) this.#checkChanges(before, from, position, rows);
    else this.#startAgain(rows);
    this.#checkBlocks(before.rows, rows);
  }

  /** An accepted loss: what is not there is lost, and readers of the feed start again. Numbers keep their owners. */
  #startAgain(rows: readonly Row[]): void {
    const there = new Set(rows.map(({ key, state }) => `${key}: ${state}`));
    for (const [change, { content }] of this.#seen) {
      if (!there.has(`change ${change}: ${content}`)) this.#seen.delete(change);
    }
    this.#cursor = 0;
    this.#countsFrom = this.#world.now;
  }

  #checkChanges(before: Content, from: Position, to: Position, rows: readonly Row[]): void {
    const old = new Set(before.rows.filter(({ kind }) => kind === "change").map(({ key }) => key));
    const made = rows.filter(({ kind, key }) => kind === "change" && !old.has(key)).map(({ number }) => Number(number));
    const isNext = made.sort((one, other) => one - other).every((number, index) => number === from.change + 1 + index);
    this.#expect(
      isNext && to.change === from.change + made.length,
      "change numbers are counted without gaps",
      made,
      from,
      to,
    );
  }

  #checkBlocks(before: readonly Row[], rows: readonly Row[]): void {
    const isActive = (row: Row) => row.kind === "badge" && row.state !== "revoked";
    for (const block of rows.filter(({ kind, state }) => kind === "block" && state === "done")) {
      const left = rows.filter((row) => isActive(row) && row.user === block.user);
      this.#expect(left.length === 0, "who is blocked has no badge", block, left);
    }
    for (const block of before.filter(({ kind, state }) => kind === "block" && state === "revoking")) {
      if (rows.some(({ key, cause }) => key === block.key && cause === block.cause)) continue;
      const old = (row: Row) => row.user === block.user && Number(row.list) <= Number(block.list);
      const left = rows.filter((row) => isActive(row) && old(row));
      this.#expect(left.length === 0, "a block revokes every badge before the next step begins", block, left);
    }
    const known = new Set(before.map(({ key }) => key));
    const changes = rows.filter(({ kind }) => kind === "change");
    for (const { key, number, state } of changes) {
      const [, badge, cause] = /: (badge \d+) revoked by (.*)/.exec(String(state)) ?? [];
      if (known.has(key) || badge === undefined) continue;
      const block = changes.find((row) => row.cause === cause && / blocked /.test(String(row.state)));
      const issued = changes.find((row) => String(row.state).includes(`: ${badge} active `));
      const unblocked = `un${String(block?.state).split(": ").at(-1)}`;
      const isBetween = (row: Row) => Number(row.number) > Number(block?.number) && Number(row.number) < Number(number);
      const isEnded = changes.some((row) => isBetween(row) && String(row.state).endsWith(`: ${unblocked}`));
      const isMeant = block !== undefined && Number(issued?.number) < Number(block.number);
      this.#expect(isMeant && !isEnded, "a block revokes what there was, and nothing after an unblock", state);
    }
  }

  /**
   * D1 or the object was restored. Both keep what callers were told; only what an object forgot that D1 forgets before they
   * compare is lost, and nobody can know of it, unless they now differ in what they have.
   */
  restored(isObject: boolean): void {
    const { now, d1, journal } = this.#world;
    this.#wasObjectLost ||= isObject;
    if (!this.#wasObjectLost) return;
    const isThere = this.#whatIsThere();
    const isUnnoticed = this.#isOneLife();
    const lost = [...this.#seen].filter(([, { content }]) => !isThere(content));
    // Also what nobody was told of yet.
    const kept = Math.max(d1.read().position?.sequence ?? 0, journal.top?.sequence ?? 0);
    if (lost.length > 0 || kept < this.#highest) this.#countsFrom = now;
    if (kept < this.#highest && isUnnoticed) {
      this.unnoticedAt = now;
      this.#highest = kept;
    }
    for (const [change, seen] of lost) {
      seen.isLost = true;
      if (!isUnnoticed) continue;
      this.#seen.delete(change);
      this.#cursor = Math.min(this.#cursor, change - 1);
    }
    for (const [number, { of }] of isUnnoticed ? this.#owners : []) {
      if (!isThere(`: badge ${number} active ${of}`)) this.#owners.delete(number);
    }
  }

  /** A gap may only be reported when D1 changed lives, an object forgot something, or D1 was restored to what it was unseen. */
  gap(name: string, detail: string): void {
    this.#expect(
      this.#isDivided() || this.wasHidden || this.#wasObjectLost || detail === "no position",
      "no gap without a cause",
      name,
      detail,
    );
  }

  failed(command: Command): void {
    this.#expect(command.kind === "fault", "D1 refuses only what is wrong", command);
  }

  /** Time has passed, and nobody has called. */
  unasked(): void {
    if (this.#wasObjectLost || this.#isDivided() || !this.#isOneLife()) return;
    const isThere = new Set(this.#world.d1.read().rows.map(({ key, state }) => `${key}: ${state}`));
    for (const [change, { content }] of this.#seen) {
      this.#expect(
        isThere.has(`change ${change}: ${content}`),
        "what was answered comes back unasked",
        change,
        content,
      );
    }
  }

  #isDivided(): boolean {
    return [...this.#lives.values()].some((ids) => ids.size > 1);
  }

  /** Nothing fails any more, and time has passed. */
  atRest(): void {
    const { d1, journal } = this.#world;
    const { position, rows } = d1.read();
    const changes = new Map(rows.filter(({ kind }) => kind === "change").map((row) => [Number(row.number), row]));
    this.#expect(
      position?.entry === journal.top?.entry,
      "D1 ends where the journal ends",
      position,
      journal.top?.entry,
    );
    for (const [change, { content, isLost }] of this.#seen) {
      if (!isLost) this.#expect(changes.get(change)?.state === content, "what was answered is there", change, content);
      const there = changes.get(change)?.state ?? content;
      this.#expect(there === content, "a change number stands for one change", change, content, there);
    }
    for (const row of rows) this.#checkRow(row, changes);
    const causes = [...changes.values()]
      .map(({ cause }) => String(cause))
      .filter((cause) => !/^(block|chunk)/.test(cause));
    const twice = causes.filter((cause, index) => causes.indexOf(cause) !== index);
    this.#expect(twice.length === 0 || this.#wasObjectLost, "a command takes effect once", twice);
    this.#checkOrder(changes);
    const unfinished = rows.filter(({ kind, state }) => kind === "block" && state === "revoking");
    this.#expect(unfinished.length === 0, "every block ends", unfinished);
  }

  #checkRow(row: Row, changes: ReadonlyMap<number, Row>): void {
    if (row.kind !== "badge") return;
    const owner = this.#owners.get(Number(row.number));
    if (owner) this.#expect(owner.of === ownerOf(row), "no number has two owners", owner, row);
    const states = [...changes.entries()].sort(([one], [other]) => one - other).map(([, { state }]) => String(state));
    const pattern = new RegExp(`: ${row.key} (active|suspended|revoked)`);
    const last = states.map((state) => pattern.exec(state)?.[1]).findLast((state) => state !== undefined);
    this.#expect(last === row.state, "a badge is what its last change says", row, last);
  }

  #checkOrder(changes: ReadonlyMap<number, Row>): void {
    const told = this.#told.filter(({ endedAt }) => endedAt > this.#countsFrom);
    for (const [change, { state, cause }] of changes) {
      const first = this.#told.find(({ command }) => String(state).startsWith(`${command.call}: `));
      const same = this.#told.filter(({ command }) => command.id === cause).length;
      if (!first || same > 1 || first.endedAt <= this.#countsFrom) continue;
      for (const later of told) {
        if (!later.result || later.beganAt <= first.endedAt) continue;
        const isBefore = change <= later.result.base;
        this.#expect(isBefore, "what a call did comes before every later call", change, state, first, later);
      }
    }
  }

  #expect(isKept: boolean, invariant: string, ...details: unknown[]): void {
    this.verdict.expect(isKept, invariant, ...details);
  }
}

const ownerOf = ({ device, user }: Row): string => `${device}/${user}`;
