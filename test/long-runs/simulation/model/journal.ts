import type { Position, Statement } from "./d1.ts";
import type { Command, Result } from "./decide.ts";

/** A group's changes, as D1 takes them: in their turn or not at all. */
export interface Entry extends Position {
  /** The entry before it. */
  previous: { sequence: number; entry: string };
  writes: Statement[];
  results: Record<string, Result>;
  /** What was decided without reading: their devices must have no badge, and their users no block. */
  needs: readonly Command[];
  /** When it was decided, or D1 last seen to have it, or to lack what came before it, in milliseconds. */
  since: number;
  isEmpty: boolean;
}

/** One day more than Time Travel goes back. */
const KEPT_MILLISECONDS = 31 * 86_400_000;

/** What an object keeps. Versions are never changed: an instance goes on with the one that it has read. */
export class Journal {
  /** The entry before the oldest; null: this object has never compared itself with D1. */
  readonly base: Position | null;
  /** In order; only the last may have another one of the same sequence number beside it. */
  readonly entries: readonly Entry[];

  constructor(base: Position | null = null, entries: readonly Entry[] = []) {
    this.base = base;
    this.entries = entries;
  }

  get top(): Position | null {
    return this.entries.at(-1) ?? this.base;
  }

  /** Those that D1 may name as its last. */
  get candidates(): Entry[] {
    return this.entries.filter(({ sequence }) => sequence === this.top?.sequence);
  }

  find(id: string | undefined): Entry | undefined {
    return this.entries.find(({ entry }) => entry === id);
  }

  with(entries: readonly Entry[]): Journal {
    return new Journal(this.base, entries);
  }

  without(ids: readonly string[]): Journal {
    return this.with(this.entries.filter(({ entry }) => !ids.includes(entry)));
  }

  /** Some of its entries otherwise. */
  changed(ids: readonly string[], change: Partial<Entry>): Journal {
    return this.with(this.entries.map((entry) => (ids.includes(entry.entry) ? { ...entry, ...change } : entry)));
  }

  /** Without what D1 has had for longer than it can go back. */
  pruned(now: number): Journal {
    const first = this.entries.findIndex(({ since }) => since >= now - KEPT_MILLISECONDS);
    const count = Math.min(first === -1 ? Infinity : first, this.entries.length - 2);
    const last = this.entries[count - 1];
    return last ? new Journal(last, this.entries.slice(count)) : this;
  }
}
