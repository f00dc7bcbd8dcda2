import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { UserError } from "../command-line/errors.ts";
import { WRANGLER_CONFIG } from "./paths.ts";
import type { Wrangler } from "./wrangler.ts";

/**
 * Edits wrangler.toml in place and keeps its comments; wrangler itself does not edit a file that has comments. These functions
 * work on text, and know only the TOML that wrangler.toml uses: tables with a header on one line, and one key per line.
 */

/** Replaces the file by a rename. @throws UserError when wrangler does not understand the new text; the file stays as it was */
export function editWranglerToml(wrangler: Wrangler, environment: string, edit: (text: string) => string): void {
  const before = readFileSync(WRANGLER_CONFIG, "utf8");
  const after = edit(before);
  if (after === before) return;
  withDraft(
    () => after,
    (draft) => {
      try {
        wrangler.unstable_readConfig({ config: draft, env: environment }, { hideWarnings: true });
        renameSync(draft, WRANGLER_CONFIG);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new UserError(
          `wrangler.toml stays as it was, because wrangler would not read it after this command's change (${reason}). Write each of its tables with a header, and each key on a line of its own, and run the command again.`,
          { cause: error },
        );
      }
    },
  );
}

/** Calls `use` with a changed copy of wrangler.toml in the same folder, because its paths are relative. */
export function withDraft<Result>(edit: (text: string) => string, use: (path: string) => Result): Result {
  const draft = WRANGLER_CONFIG.replace(/\.toml$/, `.${process.pid}.toml`);
  try {
    writeFileSync(draft, edit(readFileSync(WRANGLER_CONFIG, "utf8")), { flush: true });
    return use(draft);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Sets a variable of an environment. */
export const withVariable = (text: string, environment: string, name: string, value: string): string => {
  const lines = text.split("\n");
  const table = tablesOf(lines).find(({ header }) => header === `[env.${environment}.vars]`);
  if (table === undefined) return `${text.trimEnd()}\n\n[env.${environment}.vars]\n${entry(name, value)}\n`;
  return setEntry(lines, table, name, value).join("\n");
};

/**
 * Sets the ID of the database that an environment binds under this name.
 *
 * @throws UserError when the text has the database in another form of TOML
 */
export function withDatabaseId(text: string, environment: string, binding: string, id: string): string {
  const lines = text.split("\n");
  const table = tablesOf(lines).find(
    ({ header, first, end }) =>
      header === `[[env.${environment}.d1_databases]]` &&
      lines.slice(first, end).some((line) => keyOf(line) === "binding" && line.includes(`"${binding}"`)),
  );
  if (table === undefined) {
    throw new UserError(
      `wrangler.toml has no table [[env.${environment}.d1_databases]] with binding = "${binding}" on lines of its own: write it so, and run the command again.`,
    );
  }
  return setEntry(lines, table, "database_id", id).join("\n");
}

/** Adds a table to an environment's array of tables, after its last one. @param name such as `d1_databases` */
export function withTable(
  text: string,
  environment: string,
  name: string,
  entries: Readonly<Record<string, string | number | undefined>>,
): string {
  const header = `[[env.${environment}.${name}]]`;
  const added = [
    header,
    ...Object.entries(entries).flatMap(([key, value]) => (value === undefined ? [] : [entry(key, value)])),
  ];
  const lines = text.split("\n");
  const last = tablesOf(lines).findLast((table) => table.header === header);
  if (last === undefined) return `${text.trimEnd()}\n\n${added.join("\n")}\n`;
  return lines.toSpliced(last.end, 0, "", ...added).join("\n");
}

interface Table {
  /** As in the file, without a comment. */
  header: string;
  /** Index of the line after the header. */
  first: number;
  /** Index of the line after the last key: comments that follow may belong to the next table. */
  end: number;
}

const HEADER = /^\s*(\[\[?[^\]]+\]\]?)\s*(?:#.*)?$/;

function tablesOf(lines: readonly string[]): Table[] {
  const tables: Table[] = [];
  for (const [index, line] of lines.entries()) {
    const header = HEADER.exec(line)?.[1];
    const current = tables.at(-1);
    if (header !== undefined) tables.push({ header, first: index + 1, end: index + 1 });
    else if (current !== undefined && keyOf(line) !== undefined) current.end = index + 1;
  }
  return tables;
}

const keyOf = (line: string): string | undefined => /^\s*([\w-]+)\s*=/.exec(line)?.[1];

const entry = (key: string, value: string | number): string => `${key} = ${JSON.stringify(value)}`;

function setEntry(lines: readonly string[], { first, end }: Table, key: string, value: string): string[] {
  const index = lines.findIndex((line, at) => at >= first && at < end && keyOf(line) === key);
  return index === -1 ? lines.toSpliced(end, 0, entry(key, value)) : lines.with(index, entry(key, value));
}
