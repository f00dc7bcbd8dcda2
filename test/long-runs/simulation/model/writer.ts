import type { Caller } from "../platform/wire.ts";
import { type Content, type Position, Refused, type Statement, write } from "./d1.ts";
import { type Command, decide, type Result, type Row, View } from "./decide.ts";
import { type Entry, Journal } from "./journal.ts";
import type { Rule } from "./rules.ts";
import type { Model } from "./world.ts";

export type Answer = Result | "unavailable" | "failed";

interface Waiting {
  command: Command;
  /** Must be decided by itself: the group that it was in was refused. */
  isSuspect: boolean;
  answer(answer: Answer): void;
}

/** What became of a batch: D1 refused it for its turn, for what it requires, for another error; or nothing is known. */
type Outcome = "applied" | "wrong turn" | "precondition" | "error" | "unknown";

const GROUP_COMMANDS = 3;
const BATCH_ENTRIES = 3;
const CALL_MILLISECONDS = 10_000;
const D1_DEADLINE_MILLISECONDS = 3000;
const COMPARE_AFTER_MILLISECONDS = 120_000;
/** What accepting a loss adds to every counter beyond all known. */
const SKIPPED = 1000;

class Gap extends Error {}
class Superseded extends Error {}

/** An instance of the application's object: the only writer of what D1 says of the application. */
export class Writer implements Caller {
  readonly #world: Model;
  readonly name: string;
  isAlive = true;
  readonly #beganAt: number;
  readonly death = Promise.withResolvers<void>();
  #waiting: Waiting[] = [];
  #jobs: (() => Promise<void>)[] = [];
  #isRunning = false;
  /** What it has read of its storage, or written there. */
  #journal: Journal;
  /** Whether an entry of this instance is in D1. */
  #hasWritten = false;
  /** Whether D1 ended where the journal ends when it was last heard of: only then anything is decided without reading. */
  #isSettled = false;
  /** What this instance wrote and does not yet know to be in D1, and who waits for it. */
  #underWay: { entry: Entry; group: Waiting[]; mayBeSeen: boolean } | null = null;
  /** Blocks that are not finished, by user. */
  readonly #remembered = new Map<string, Row>();
  /** Answers that changed nothing, by command: a second copy of it gets the same. */
  readonly #answered = new Map<string, Result>();
  /** Calls that were told 503 before their deadline. */
  readonly #refused = new Set<string>();

  constructor(world: Model, name: string) {
    this.#world = world;
    this.name = name;
    this.#beganAt = world.timeline.now;
    this.#journal = world.journal;
  }

  get #now(): number {
    return this.#world.timeline.now;
  }

  die(): void {
    if (this.isAlive) this.#world.trace.add(this.name, "dies");
    this.isAlive = false;
    this.death.resolve();
  }

  /** @param sentAt by the Worker's clock, in milliseconds @throws Error when it must be sent again */
  async submit(command: Command, sentAt: number): Promise<Answer> {
    // A copy of what an earlier instance has answered: who still waits sends it again.
    if (sentAt < this.#beganAt && this.#follows("answered-by-earlier")) throw new Error("sent to an earlier instance");
    if (this.#refused.has(command.call)) return "unavailable";
    const deadline = this.#follows("absolute-deadline") ? command.deadline : this.#now + CALL_MILLISECONDS;
    return new Promise((answer) => {
      this.#waiting.push({ command: { ...command, deadline }, isSuspect: false, answer });
      this.#wake();
    });
  }

  /** Compares D1 with the journal, and applies what D1 lacks. */
  compare(): Promise<void> {
    return this.#do(async () => {
      await this.#settle();
      this.#change((journal) => journal.pruned(this.#now));
    });
  }

  /** Goes on after a gap, by what both sides know. */
  acceptLoss(): Promise<void> {
    return this.#do(() => this.#acceptLoss());
  }

  #do(job: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#jobs.push(() => job().then(resolve, reject));
      this.#wake();
    });
  }

  #follows(rule: Rule): boolean {
    return this.#world.without !== rule;
  }

  #trace(what: string): void {
    this.#world.trace.add(this.name, what);
  }

  /** The object's storage: an instance that is no longer the object's ends here. */
  #touch(): Journal {
    if (this.#world.current !== this) this.die();
    if (!this.isAlive) throw new Superseded();
    this.#journal = this.#world.journal;
    return this.#journal;
  }

  #change(change: (journal: Journal) => Journal): void {
    this.#world.journal = change(this.#touch());
    this.#touch();
  }

  #wake(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run().finally(() => {
      this.#isRunning = false;
    });
  }

  async #run(): Promise<void> {
    for (let isMore = true; isMore && this.isAlive; ) {
      try {
        await this.#jobs.shift()?.();
        isMore = (await this.#group()) || this.#waiting.length > 0 || this.#jobs.length > 0;
      } catch (error) {
        if (error instanceof Superseded) return;
        if (!(error instanceof Gap)) throw error;
        // At once, and for every copy of the call.
        for (const { command, answer } of this.#waiting.splice(0)) {
          if (this.#follows("refusals-kept")) this.#refused.add(command.call);
          answer("unavailable");
        }
        isMore = this.#jobs.length > 0;
      }
    }
  }

  #dropLate(): void {
    this.#waiting = this.#waiting.filter(({ command }) => command.deadline > this.#now);
  }

  /** Decides and writes one group. @returns whether there is more to do at once */
  async #group(): Promise<boolean> {
    this.#dropLate();
    const blind = this.#blindView();
    const view = blind ?? viewOf(await this.#settle());
    this.#dropLate();
    const kept = this.#journal.entries.flatMap(({ results }) => Object.entries(results));
    const known = new Map([...this.#answered, ...kept]);
    const suspect = this.#waiting.find(({ isSuspect }) => isSuspect);
    const taken = suspect ? [suspect] : this.#waiting.slice(0, GROUP_COMMANDS);
    const results: Record<string, Result> = {};
    const answers: [Waiting, Result][] = [];
    for (const chunk of this.#chunks(view)) this.#decide(view, chunk);
    for (const waiting of taken) {
      const { id } = waiting.command;
      const earlier = results[id] ?? known.get(id);
      const result = earlier ? { ...earlier, base: view.counters.change } : this.#decide(view, waiting.command);
      if (!result) continue;
      answers.push([waiting, result]);
      if (!earlier) results[id] = result;
    }
    const group = answers.map(([waiting]) => waiting);
    this.#waiting = this.#waiting.filter((waiting) => !group.includes(waiting));
    const writes = this.#writesOf(view);
    if (writes.length === 0 && (this.#hasWritten || group.length === 0 || !this.#follows("first-entry"))) {
      for (const [{ answer, command }, result] of answers) {
        if (this.#follows("answers-kept")) this.#answered.set(command.id, result);
        answer(result);
      }
      return false;
    }
    const entry = this.#entry(view, writes, results, blind ? group.map(({ command }) => command) : []);
    if (await this.#write(entry, group)) for (const [{ answer }, result] of answers) answer(result);
    return true;
  }

  /** Nothing is read for a group of new badges alone, by one who knows where D1 stands. */
  #blindView(): View | null {
    const { size, isBlind } = this.#world.plan;
    const { top } = this.#journal;
    const group = this.#waiting.slice(0, GROUP_COMMANDS);
    const isPlain = group.length > 0 && group.every(({ command }) => command.kind === "issue" && command.isNew);
    const isFit = isBlind && isPlain && this.#hasWritten && this.#isSettled;
    if (!isFit || !top || this.#waiting.some(({ isSuspect }) => isSuspect)) return null;
    return top.fresh + group.length <= size ? new View(top, []) : null;
  }

  #decide(view: View, command: Command): Result | null {
    const { plan, dice } = this.#world;
    const result = decide(view, command, {
      size: plan.size,
      random: (below) => dice.below(below),
      unblockFinishes: this.#follows("unblock-finishes"),
      remembered: this.#follows("chunks-by-row") ? undefined : this.#remembered.get(command.user),
    });
    const block = view.get(`block ${command.user}`);
    if (command.kind === "block" && block?.state === "revoking") this.#remembered.set(command.user, block);
    if (command.kind === "chunk" && block?.state === "done") this.#remembered.delete(command.user);
    return result;
  }

  /** One chunk for each block that is not finished. */
  #chunks(view: View): Command[] {
    const rows = view.all("block").filter(({ state }) => state === "revoking");
    const due = this.#follows("chunks-by-row") ? rows : [...this.#remembered.values()];
    return due.map(({ user }) => this.#own("chunk", user, ""));
  }

  #own(kind: "chunk" | "withdraw", user: string, subject: string): Command {
    const id = this.#world.newId(kind);
    return { id, call: id, kind, device: "", user, subject, deadline: Infinity, isNew: false };
  }

  #writesOf(view: View): Statement[] {
    const diff = view.diff();
    const releases = diff.filter(({ before, after }) => before?.place && after?.place !== before.place);
    const others = diff.filter((change) => !releases.includes(change));
    const inOrder = this.#follows("releases-first") ? [...releases, ...others] : [...others, ...releases];
    return inOrder.map(({ before, after }) => write(before, after));
  }

  #entry(view: View, writes: Statement[], results: Record<string, Result> = {}, needs: Command[] = []): Entry {
    const { sequence, entry } = this.#journal.top ?? fail("an entry before the first comparison");
    return {
      ...{ ...view.counters, writes, results, needs, isEmpty: writes.length === 0, since: this.#now },
      ...{ sequence: sequence + 1, entry: this.#world.newId(`entry of ${this.name}`), previous: { sequence, entry } },
    };
  }

  /** @returns whether D1 has it; if not, its commands wait again or were answered */
  async #write(entry: Entry, group: Waiting[]): Promise<boolean> {
    this.#change((journal) => journal.with([...journal.entries, entry]));
    this.#underWay = { entry, group, mayBeSeen: false };
    this.#isSettled = false;
    try {
      const outcome = await this.#send([entry]);
      if (outcome === "applied") this.#name(entry);
      else if (!this.#giveUp(entry, outcome)) await this.#settle();
    } finally {
      // After a gap nobody may be told that it was not done: only its turn tells.
      this.#underWay = null;
    }
    const has = this.#touch().find(entry.entry) !== undefined;
    if (has) {
      this.#hasWritten = true;
      this.#isSettled = true;
      this.#endUntold(entry, group);
    } else this.#waiting.unshift(...group.filter(({ command }) => command.deadline > this.#now));
    return has;
  }

  /** Ends invitations of an entry that was applied when their callers had been told 503. */
  #endUntold(entry: Entry, group: Waiting[]): void {
    const untold = group.filter(({ command }) => command.kind === "invite" && command.deadline <= this.#now);
    for (const { command } of untold) {
      if (entry.results[command.id]?.facts.length === 0) continue;
      const { [command.id]: _, ...results } = entry.results;
      this.#change((journal) => journal.changed([entry.entry], { results }));
      this.#waiting.push({ command: this.#own("withdraw", "", command.id), isSuspect: false, answer: () => {} });
    }
  }

  /** @returns whether it will never be applied, so that something else may take its place */
  #giveUp(entry: Entry, outcome: Outcome): boolean {
    const isWrongTurn = outcome === "wrong turn" && !this.#follows("turn-is-no-refusal");
    const isUnknown = outcome === "unknown" && !this.#follows("unknown-is-no-refusal");
    if (outcome !== "precondition" && outcome !== "error" && !isWrongTurn && !isUnknown) return false;
    this.#trace(`gives up ${entry.entry}: ${outcome}`);
    this.#forget(entry);
    const group = this.#underWay?.entry.entry === entry.entry ? this.#underWay.group : [];
    for (const waiting of outcome === "precondition" ? group : []) waiting.command.isNew = false;
    if (outcome !== "error") return true;
    const areAlone = group.length === 1 || !this.#follows("one-at-fault");
    for (const waiting of group) {
      waiting.isSuspect = true;
      if (!areAlone) continue;
      waiting.answer("failed");
      waiting.command.deadline = 0;
    }
    return true;
  }

  #forget(entry: Entry): void {
    this.#change((journal) => journal.without([entry.entry]));
  }

  /** D1 has it: what could have stood in its place never will. */
  #name({ sequence, entry }: Entry): void {
    this.#change((journal) => {
      const others = journal.entries.filter((other) => other.sequence === sequence && other.entry !== entry);
      return journal.without(others.map((other) => other.entry)).changed([entry], { since: this.#now });
    });
  }

  /** Brings D1 to the end of the journal, however long it takes. @returns what D1 has then @throws Gap */
  async #settle(): Promise<Content> {
    for (;;) {
      const content = await this.#read();
      const due = this.#due(content.position);
      const [last] = due;
      if (!last) return content;
      if (due.length > 1 || last.sequence !== this.#touch().top?.sequence) {
        await this.#send(due);
        continue;
      }
      const entry = this.#abandoned(last) ?? last;
      const outcome = await this.#send([entry]);
      if (outcome === "applied") this.#name(entry);
      else if (outcome !== "unknown" && outcome !== "wrong turn") this.#giveUp(entry, outcome);
    }
  }

  /** What D1 lacks, as far as one batch takes it. @throws Gap */
  #due(position: Position | null): Entry[] {
    const { base, entries, top, candidates } = this.#journal;
    if (!position) return this.#gap("no position");
    if (!top || position.sequence > top.sequence) return this.#takeOver(position);
    const found = this.#journal.find(position.entry);
    const isBase =
      base?.sequence === position.sequence && (base.entry === position.entry || !this.#follows("id-before-oldest"));
    if (!found && !isBase) return this.#gap(`D1 is at ${position.sequence} ${position.entry}`);
    if (found && candidates.includes(found)) {
      if (candidates.length > 1 || this.#underWay) this.#name(found);
      return [];
    }
    const lacked = entries.slice(found ? entries.indexOf(found) + 1 : 0);
    const last = candidates.at(-1);
    if (lacked.length === 0 || !last) return [];
    // D1 goes back: it may have had what is under way, and readers may have seen it.
    if (this.#underWay && position.entry !== this.#underWay.entry.previous.entry) this.#underWay.mayBeSeen = true;
    this.#trace(`D1 is at ${position.sequence}, the journal at ${top.sequence}`);
    if (this.#follows("kept-since-lacked")) {
      const ids = lacked.map(({ entry }) => entry);
      this.#change((journal) => journal.changed(ids, { since: this.#now }));
    }
    const middle = lacked.filter((entry) => !candidates.includes(entry)).slice(0, BATCH_ENTRIES);
    if (middle.length === 0) return [last];
    const isEnd = middle.length + candidates.length >= lacked.length && !this.#follows("last-alone");
    return isEnd ? [...middle, last] : middle;
  }

  /** D1 is ahead: this object was restored, or is new. */
  #takeOver(position: Position): [] {
    this.#trace(`takes over at ${position.sequence} ${position.entry}`);
    this.#change(() => new Journal(position));
    return [];
  }

  #gap(detail: string): never {
    if (this.#follows("touch-before-gap")) this.#touch();
    this.#world.reportGap(this.name, detail);
    throw new Gap(detail);
  }

  /** The empty entry in the place of one that nobody waits for any more; null while somebody does, or nobody knows. */
  #abandoned(last: Entry): Entry | null {
    const underWay = this.#underWay?.entry.entry === last.entry ? this.#underWay : null;
    if (underWay?.group.some(({ command }) => command.deadline > this.#now)) return null;
    if (this.#underWay?.mayBeSeen && this.#follows("no-abandoning-after-restoration")) return null;
    if (last.isEmpty || (!underWay && this.#follows("no-abandoning-after-restart"))) return null;
    if (!this.#follows("empty-entry")) {
      this.#forget(last);
      return null;
    }
    const { base, entries } = this.#journal;
    const before = entries.findLast(({ sequence }) => sequence < last.sequence) ?? base;
    const view = new View(before ?? fail("nothing before the last entry"), []);
    const entry = { ...this.#entry(view, []), sequence: last.sequence, previous: last.previous };
    this.#trace(`abandons ${last.entry} for ${entry.entry}`);
    if (!this.#follows("both-kept")) this.#forget(last);
    this.#change((journal) => journal.with([...journal.entries, entry]));
    return entry;
  }

  async #acceptLoss(): Promise<void> {
    const content = await this.#read();
    const { position } = content;
    if (!position) return;
    try {
      this.#due(position);
      return;
    } catch (error) {
      if (!(error instanceof Gap)) throw error;
    }
    const top = this.#journal.top ?? position;
    const view = viewOf(content);
    for (const counter of ["fresh", "list", "change"] as const) {
      const beyond = Math.max(position[counter], top[counter]) + SKIPPED;
      if (this.#follows("loss-beyond-both")) view.counters[counter] = beyond;
    }
    const keepsNumbers = this.#follows("loss-keeps-numbers");
    for (const row of view.all("invitation").filter(({ state }) => state === "pending")) {
      view.put({ ...row, state: "revoked" });
      if (!keepsNumbers) view.put({ key: `freed ${row.number}`, kind: "freed", number: row.number });
    }
    for (const row of keepsNumbers ? view.all("freed") : []) view.delete(row.key);
    const sequence = Math.max(position.sequence, top.sequence) + 1;
    const made = this.#entry(view, this.#writesOf(view));
    this.#change(() => new Journal(position, [{ ...made, sequence, previous: position, isEmpty: false }]));
    this.#world.losses.push(sequence);
    await this.#settle();
  }

  async #read(): Promise<Content> {
    for (;;) {
      if (!this.isAlive) throw new Superseded();
      const content = await this.#ask("reads", () => this.#world.d1.read()).catch(() => null);
      if (content) return content;
      await this.#world.sleep(this, 300);
    }
  }

  async #send(entries: readonly Entry[]): Promise<Outcome> {
    const statements = entries.flatMap((entry) => [this.#fence(entry), ...entry.writes]);
    this.#world.setAlarm(COMPARE_AFTER_MILLISECONDS);
    this.#world.sent();
    try {
      const done = await this.#ask(`writes ${entries.map(({ entry }) => entry)}`, () => {
        this.#world.d1.execute(statements);
        return true;
      });
      return done ? "applied" : "unknown";
    } catch (error) {
      if (!(error instanceof Refused)) return "unknown";
      if (error.message.includes("position.sequence")) return "wrong turn";
      return error.message.includes("position.entry") ? "precondition" : "error";
    }
  }

  /** One call of D1. @returns null when it takes too long */
  #ask<T>(what: string, effect: () => T): Promise<T | null> {
    const late = this.#world.sleep(this, D1_DEADLINE_MILLISECONDS).then(() => null);
    return Promise.race([this.#world.call(this, "d1", what, effect), late]);
  }

  /** A batch applies in its turn or not at all. */
  #fence({ sequence, entry, fresh, list, change, needs, previous }: Entry): Statement {
    const preconditions = needs.map(({ device, user }) => {
      const ofUser = this.#follows("device-precondition") ? "" : `AND row ->> 'user' = '${user}'`;
      const badge = `row ->> 'kind' = 'badge' AND row ->> 'device' = '${device}' ${ofUser}`;
      return `NOT EXISTS (SELECT 1 FROM item WHERE key = 'block ${user}' OR (${badge}))`;
    });
    const isAt = this.#follows("predecessor") ? "entry = ?1" : `?1 <> '' AND sequence = ${previous.sequence}`;
    const next = `(SELECT ?2 FROM position WHERE ${isAt})`;
    const turn = this.#follows("missing-row") ? next : `iif(EXISTS (SELECT 1 FROM position), ${next}, ?2)`;
    const id = `iif(${preconditions.join(" AND ") || "1"}, ?3, NULL)`;
    return {
      sql: `INSERT INTO position VALUES ('app', ${turn}, ${id}, ?4, ?5, ?6)
        ON CONFLICT (application) DO UPDATE SET sequence = excluded.sequence, entry = excluded.entry,
          fresh = excluded.fresh, list = excluded.list, change = excluded.change`,
      parameters: [previous.entry, sequence, entry, fresh, list, change],
    };
  }
}

const viewOf = ({ position, rows }: Content): View => new View(position ?? fail("settled without a position"), rows);

function fail(what: string): never {
  throw new Error(what);
}
