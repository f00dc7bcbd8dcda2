import { readFileSync } from "node:fs";
import type { Dice } from "../../dice.ts";
import { migrationFiles } from "../../migrations.ts";
import { Member } from "../member.ts";
import { HOMES } from "../plan.ts";
import type { World } from "../world.ts";
import { Sqlite } from "./sqlite.ts";

export const SCHEMA = migrationFiles()
  .map((file) => readFileSync(file, "utf8"))
  .join("\n");

/** By home a database for each copy, for all seeds; emptied for each. */
const databases = new Map(HOMES.map((home) => [Number(home), [new Sqlite(SCHEMA), new Sqlite(SCHEMA)]]));

/** How a copy follows the primary; a `restored` one goes back to an older state first, and stops there. */
const MODES = ["following", "following", "following", "following", "slow", "stopped", "restored"] as const;
type Mode = (typeof MODES)[number];

const MINUTE = 60_000;
/** How far a copy is behind while nothing is wrong, at most, in milliseconds. */
const USUAL_LAG_MILLISECONDS = 50;
/** How often a read waits for its copy to be new enough, and how long each time. */
const MAX_WAITS = 50;
const WAIT_MILLISECONDS = 50;

/** What one transaction changed, in SQLite's own format, and when, in milliseconds. */
interface Commit {
  changeset: Uint8Array;
  at: number;
}

/** D1's read copies: each is the primary as it was after one of its commits. */
export class Copies extends Member {
  readonly #dice: Dice;
  readonly #commits: Commit[] = [];
  readonly #copies: Copy[];

  constructor(world: World, home: number) {
    super(world);
    this.#dice = world.dice.of(`copies of home ${home}`);
    this.#copies = (databases.get(home) ?? []).map((sqlite) => new Copy(world, sqlite, this.#dice));
  }

  /** The primary has committed. */
  add(changeset: Uint8Array): void {
    if (changeset.length > 0) this.#commits.push({ changeset, at: this.world.timeline.now });
  }

  /** Of the primary: commits so far. A bookmark stands for this number. */
  get position(): number {
    return this.#commits.length;
  }

  /** Since when the primary is at a position, in milliseconds; Infinity: it is not there yet. */
  since(position: number): number {
    const at = position === 0 ? 0 : (this.#commits[position - 1]?.at ?? Infinity);
    // What was before it counts no more, unless there was another commit at the same time.
    return this.#commits[position]?.at === at ? at : at + 0.5;
  }

  /** @returns a copy that is at least as new as a position, once there is one */
  async find(position: number): Promise<{ sqlite: Sqlite; position: number }> {
    const copy = this.#dice.pick(this.#copies);
    for (let waits = 0; copy && waits < MAX_WAITS; waits++) {
      copy.follow(this.#commits);
      if (copy.position >= position) return copy;
      await this.world.timeline.sleep(WAIT_MILLISECONDS);
    }
    throw new Error("D1_ERROR: the copy did not become as new as the bookmark.");
  }

  /** D1 was restored: what was before is not to be had any more, from no copy. */
  restored(): void {
    for (const copy of this.#copies) copy.restored(this.#commits);
  }
}

class Copy {
  readonly sqlite: Sqlite;
  readonly #world: World;
  readonly #dice: Dice;
  #mode: Mode = "following";
  #modeUntil = 0;
  #lagMilliseconds = 0;
  #oldest = 0;
  /** Before its first use it is as an earlier seed left it. */
  position = Infinity;

  constructor(world: World, sqlite: Sqlite, dice: Dice) {
    this.#world = world;
    this.#dice = dice;
    this.sqlite = sqlite;
  }

  /** Is where it would be by now. */
  follow(commits: readonly Commit[]): void {
    const { now } = this.#world.timeline;
    const isRepaired = this.#mode !== "following" && !this.#world.faults.isOn;
    if (this.position === Infinity) this.become(commits, 0);
    if (now >= this.#modeUntil || isRepaired) this.#change(commits);
    if (this.#mode === "stopped" || this.#mode === "restored") return;
    const reached = commits.findLastIndex(({ at }) => at <= now - this.#lagMilliseconds) + 1;
    if (reached > this.position) this.become(commits, reached);
  }

  become(commits: readonly Commit[], position: number): void {
    if (position < this.position) {
      this.sqlite.clear();
      this.position = 0;
    }
    for (const { changeset } of commits.slice(this.position, position)) this.sqlite.apply(changeset);
    this.position = position;
  }

  restored(commits: readonly Commit[]): void {
    this.#oldest = commits.length;
    this.become(commits, commits.length);
  }

  #change(commits: readonly Commit[]): void {
    const { timeline, plan, faults, trace } = this.#world;
    const longest = this.#dice.oneOf([4 * plan.thinkMilliseconds, 5 * MINUTE] as const);
    this.#mode = faults.isOn ? this.#dice.oneOf(MODES) : "following";
    this.#modeUntil = timeline.now + this.#dice.below(longest);
    this.#lagMilliseconds = this.#dice.below(this.#mode === "slow" ? longest : USUAL_LAG_MILLISECONDS);
    if (this.#mode === "restored") this.become(commits, this.#dice.between(this.#oldest, this.position));
    trace.add("copy", `${this.#mode} at ${this.position} of ${commits.length}`);
  }
}
