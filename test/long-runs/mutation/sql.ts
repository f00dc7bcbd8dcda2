/** How a piece of SQL begins that one of our statements is, or is put together from. */
export const SQL_START = /^\s*(SELECT|INSERT|UPDATE|DELETE|EXISTS|FROM invitation|CREATE TABLE|\(application_id, id\))/;

/** A change of a query's text, by its place in it. */
export interface SqlChange {
  from: number;
  to: number;
  replacement: string;
}

const RULES: readonly { find: RegExp; replacement: string }[] = [
  { find: /\bORDER BY [\w, ]+?(?= LIMIT|\)|"|`|\n|$)/g, replacement: "" },
  { find: /<=/g, replacement: "<" },
  { find: /(?<![<>!])>(?![>=])/g, replacement: ">=" },
  { find: /<>/g, replacement: "=" },
  { find: /(?<![<>!=-])=(?!=)/g, replacement: "<>" },
  { find: /\bAND\b/g, replacement: "OR" },
  { find: /\bOR\b(?! IGNORE)/g, replacement: "AND" },
  { find: /\bIS NOT NULL\b/g, replacement: "IS NULL" },
  { find: /\bIS NULL\b/g, replacement: "IS NOT NULL" },
  { find: /\bNOT EXISTS\b/g, replacement: "EXISTS" },
  { find: /\bmax\(/g, replacement: "min(" },
  { find: /\bmin\(/g, replacement: "max(" },
  { find: / DESC\b/g, replacement: "" },
  { find: /\bON CONFLICT DO NOTHING\b/g, replacement: "" },
  { find: /\bOR IGNORE\b/g, replacement: "" },
  { find: /(?<=[ (])1 \+ /g, replacement: "" },
];

/** Definitions of tables stand in no condition. */
const DEFINITION = /^\W*CREATE TABLE/;

export function mutateSql(sql: string): SqlChange[] {
  if (DEFINITION.test(sql)) return [];
  // What stands in `${…}` is TypeScript, with operators of its own.
  const readable = sql.replaceAll(/\$\{[^}]*\}/g, (code) => "·".repeat(code.length));
  return RULES.flatMap(({ find, replacement }) =>
    [...readable.matchAll(find)].map(({ 0: found, index }) => ({ from: index, to: index + found.length, replacement })),
  );
}
