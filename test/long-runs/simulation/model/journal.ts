import type { Dice } from "../../dice.ts";
import type { Position, Statement } from "./d1.ts";
import type { Result } from "./decide.ts";

/** A group's changes, as D1 takes them: in their turn or not at all. */
export interface Entry extends Position {
  /** The entry before it. */
  previous: { sequence: number; entry: string };
  writes: Statement[];
  results: Record<string, Result>;
  /** What it was decided by without reading: devices without a badge, users without a block. */
  needs: { devices: string[]; badges: string[]; users: string[] } | null;
  /** When it was decided, in milliseconds. */
  decidedAt: number;
  /** When D1 was last seen to have it, or to lack what came before it. */
  since: number;
  isEmpty: boolean;
}

interface Kept {
  /** The entry before the oldest; null: this object has never compared itself with D1. */
  base: Position | null;
  /** In order; only the last may have another one of the same sequence number beside it. */
  entries: Entry[];
}

export const KEPT_MILLISECONDS = 31 * 86_400_000;

/** What the object's storage keeps, whoever writes it; it can be restored and lost. */
export class Journal {
  readonly #versions: Kept[] = [{ base: null, entries: [] }];
  kept: Kept = { base: null, entries: [] };

  change(change: (kept: Kept) => void): void {
    change(this.kept);
    this.#versions.push(copy(this.kept));
  }

  get top(): Position | null {
    return this.kept.entries.at(-1) ?? this.kept.base;
  }

  /** Those that D1 may name as its last. */
  get candidates(): Entry[] {
    return this.kept.entries.filter(({ sequence }) => sequence === this.top?.sequence);
  }

  restore(dice: Dice): void {
    this.kept = copy(dice.pick(this.#versions) ?? this.kept);
    this.change(() => {});
  }

  lose(): void {
    this.change((kept) => Object.assign(kept, { base: null, entries: [] }));
  }

  /** Forgets what D1 has had for longer than it can go back. */
  prune(now: number): void {
    const isOld = ({ since }: Entry) => since < now - KEPT_MILLISECONDS;
    const old = this.kept.entries.slice(0, -1).findIndex((entry) => !isOld(entry));
    const count = old === -1 ? Math.max(0, this.kept.entries.length - 2) : old;
    const last = this.kept.entries[count - 1];
    if (!last) return;
    const base = {
      sequence: last.sequence,
      entry: last.entry,
      fresh: last.fresh,
      list: last.list,
      change: last.change,
    };
    this.change((kept) => {
      kept.base = base;
      kept.entries = kept.entries.slice(count);
    });
  }
}

const copy = ({ base, entries }: Kept): Kept => ({ base, entries: entries.map((entry) => ({ ...entry })) });
