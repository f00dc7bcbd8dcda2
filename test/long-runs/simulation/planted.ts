import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

interface Fault {
  /** In src/worker. */
  file: string;
  /** Text that is there once, and what stands there instead. */
  from: string;
  to: string;
}

/** Faults that the simulation must find, by name: what the service then does, or does not do. The last two: with `--isolation`. */
export const PLANTED: Readonly<Record<string, Fault>> = {
  "abandons-without-an-empty-entry": {
    file: "core/group.ts",
    from: "this.#settlingEntry(toEntry(position, await this.#draft([], NOTHING_READ, position, now()), NOTHING_TOLD));",
    to: "",
  },
  "applies-what-was-given-up": {
    file: "core/journal.ts",
    from: "place = (SELECT max(place) FROM",
    to: "place = (SELECT max(journal_entry.place) FROM",
  },
  "keeps-what-D1-did-not-choose": { file: "core/journal.ts", from: "AND id <> ?", to: "AND id <> ? AND false" },
  "forgets-that-a-range-grew": { file: "storage/entry-writes.ts", from: "lastNumber === null", to: "lastNumber !== 0" },
  "forgets-signing-keys": { file: "storage/entry-writes.ts", from: "keys.length > 0", to: "keys.length < 0" },
  "ignores-that-D1-is-ahead": { file: "core/catch-up.ts", from: "at.sequence > last.sequence", to: "false" },
  "skips-an-entry": {
    file: "core/journal.ts",
    from: "lastPlace(sequence), this.#fromPlace - 1",
    to: "lastPlace(sequence + 1), this.#fromPlace - 1",
  },
  "notices-no-restoration": { file: "clock/home-clock.ts", from: "tick?.compareAfter == null", to: "tick !== null" },
  "blocks-without-pauses": { file: "core/allocator.ts", from: "USER_PAUSE_FACTOR * taken", to: "0" },
  "counts-in-one-chunk": { file: "../shared/limits.ts", from: "_CHUNK_ROWS = 2000;", to: "_CHUNK_ROWS = 200_000;" },
};

/** Puts a fault into the service. Called before anything of it is loaded. */
export function plant(name: string): void {
  const fault = PLANTED[name];
  if (!fault) throw new Error(`there is no fault ${name}`);
  const path = join(import.meta.dirname, "../../../src/worker", fault.file);
  const parts = readFileSync(path, "utf8").split(fault.from);
  if (parts.length !== 2) throw new Error(`${fault.file} has ${parts.length - 1} times: ${fault.from}`);
  const source = stripTypeScriptTypes(parts.join(fault.to));
  const { href } = pathToFileURL(path);
  registerHooks({
    load: (url, context, next) =>
      url === href ? { format: "module", source, shortCircuit: true } : next(url, context),
  });
}
