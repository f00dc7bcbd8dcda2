import { parseAst } from "vitest/node";
import { Dice } from "../dice.ts";

/** One small change of one file. */
export interface Mutant {
  file: string;
  line: number;
  /** The changed piece of the text: from here, up to there. */
  start: number;
  end: number;
  original: string;
  replacement: string;
}

type Place = Pick<Mutant, "start" | "end">;
type Change = Place & Pick<Mutant, "replacement">;

/** A node of the syntax tree (ESTree with TypeScript's additions), with its place in the text. */
interface Node extends Place {
  type: string;
  [field: string]: unknown;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

/** Only there for the compiler and the reader: no mutant of it differs from the original. */
const NEVER_RUN = /^(TS(?!As|NonNull|Satisfies)|Import|ExportAll)/;

/** Calls and functions that only say something to a person, as in a log or in the reference. */
const TELLS =
  /^((log|noteLost|leftToSweep)\(|(counted|dateTime)\(\s*"[A-Z]|new (\w*Error|Unavailable)\(|function describe)/;
const TELLING = ["CallExpression", "NewExpression", "FunctionDeclaration"];

/** Fields of a schema that only the reference shows. */
const SHOWN = ["description", "examples"];

/** Four words of a sentence, which only a person reads. */
const PROSE = /\b[a-z]+[,:]? [a-z]+ [a-z]+ [a-z]+/;

/** Each is replaced by the other; comparisons, as Stryker has them, by the one with the other bound and by the opposite. */
const EXCHANGED = [
  ...["< <=", "< >=", "> >=", "> <=", "=== !==", "== !=", "+ -", "* /", "&& ||", "+= -=", "++ --"],
  ...["min max", "some every", "floor ceil"],
].map((pair) => pair.split(" "));

const REPLACED = ["% *", "?? &&", "??= =", "! "].map((pair) => pair.split(" "));

const replacementsOf = (word: string): string[] =>
  [...EXCHANGED, ...EXCHANGED.map((pair) => pair.toReversed()), ...REPLACED].flatMap(([one, other]) =>
    one === word && other !== undefined ? other : [],
  );

/** All mutants of a file, in the order of its text. The parser is the one that comes with vitest. */
export function mutantsOf(file: string, text: string): Mutant[] {
  const changesOf = file.startsWith("src/shared/limits/") ? limitChanges : codeChanges;
  const changes: Change[] = [];
  const walk = (node: Node, parent?: Node): void => {
    const tells = TELLING.includes(node.type) && TELLS.test(textOf(node, text));
    if (tells || NEVER_RUN.test(node.type)) return;
    changes.push(...changesOf(node, parent, text));
    for (const value of runParts(node)) if (isNode(value)) walk(value, node);
  };
  const tree: unknown = parseAst(text, { lang: file.endsWith("x") ? "tsx" : "ts" });
  if (!isNode(tree)) throw new TypeError("the parser returned no tree");
  walk(tree);
  const lineOf = ({ start }: Place) => text.slice(0, start).split("\n").length;
  return changes
    .map((change) => ({ file, line: lineOf(change), original: textOf(change, text), ...change }))
    .sort((one, other) => one.start - other.start || one.end - other.end);
}

/** What is inside a node, without the texts of the reference. */
function runParts(node: Node): unknown[] {
  const { type, callee, key, arguments: given } = node;
  if (type === "Property" && isNode(key) && SHOWN.some((name) => name === key.name)) return [];
  const isDescribed = type === "CallExpression" && isNode(callee) && callee.name === "described";
  return isDescribed && Array.isArray(given) ? given.slice(0, 1) : Object.values(node).flat();
}

const textOf = ({ start, end }: Place, text: string): string => text.slice(start, end);

/** @param replacements one mutant each */
const instead = ({ start, end }: Place, ...replacements: string[]): Change[] =>
  replacements.map((replacement) => ({ start, end, replacement }));

/** Nobody must notice one more or less of a limit of the design; but ten times as much or as little. */
function limitChanges(node: Node): Change[] {
  const { type, value } = node;
  if (type !== "Literal" || typeof value !== "number" || value < 2) return [];
  return instead(node, `(${10 * value})`, `(${Math.max(1, Math.floor(value / 10))})`);
}

function codeChanges(node: Node, parent: Node | undefined, text: string): Change[] {
  const { type, start, operator, left, test, callee, argument } = node;
  if (typeof operator === "string") {
    const at = text.indexOf(operator, isNode(left) ? left.end : start);
    return instead({ start: at, end: at + operator.length }, ...replacementsOf(operator));
  }
  switch (type) {
    case "IfStatement":
    case "ConditionalExpression":
    case "WhileStatement":
      // An endless loop would only cost the time limit.
      return isNode(test) ? instead(test, ...(type === "WhileStatement" ? [] : ["true"]), "false") : [];
    case "Literal":
      return literalChanges(node, parent, text);
    case "TemplateLiteral":
      if (SQL_START.test(text.slice(start + 1, node.end))) return sqlChanges(node, text);
      return parent?.type === "TaggedTemplateExpression" || PROSE.test(textOf(node, text)) ? [] : instead(node, "``");
    case "ExpressionStatement":
    case "ContinueStatement":
    case "BreakStatement":
      return instead(node, ";");
    case "ReturnStatement":
      return isNode(argument) ? [] : instead(node, ";");
    case "CallExpression": {
      const property = isNode(callee) && callee.property;
      return isNode(property) ? instead(property, ...replacementsOf(textOf(property, text))) : [];
    }
    default:
      return [];
  }
}

function literalChanges(node: Node, parent: Node | undefined, text: string): Change[] {
  const { value } = node;
  if (typeof value === "boolean") return instead(node, String(!value));
  // The name of a field or of a module, and what only the compiler compares, is no logic.
  const isName = !parent || (parent.key === node && !parent.computed) || /^(TS|Import|Export|JSX)/.test(parent.type);
  if (isName) return [];
  if (typeof value === "number") return instead(node, `(${value + 1})`, `(${value - 1})`);
  if (typeof value !== "string") return [];
  if (SQL_START.test(value)) return sqlChanges(node, text);
  return PROSE.test(value) ? [] : instead(node, value === "" ? '"mutant"' : '""');
}

/** How SQL begins that is one of our statements, or a piece of one. */
const SQL_START = /^\s*(SELECT|INSERT|UPDATE|DELETE|EXISTS|FROM invitation|CREATE TABLE|\(application_id, id\))/;

const SQL_RULES: readonly (readonly [find: RegExp, replacement: string])[] = [
  [/\bORDER BY [\w, ]+?(?= LIMIT|\)|"|`|\n|$)/g, ""],
  [/<=/g, "<"],
  [/(?<![<>!])>(?![>=])/g, ">="],
  [/<>/g, "="],
  [/(?<![<>!=-])=(?!=)/g, "<>"],
  [/\bAND\b/g, "OR"],
  [/\bOR\b(?! IGNORE)/g, "AND"],
  [/\bIS NOT NULL\b/g, "IS NULL"],
  [/\bIS NULL\b/g, "IS NOT NULL"],
  [/\bNOT EXISTS\b/g, "EXISTS"],
  [/\bmax\(/g, "min("],
  [/\bmin\(/g, "max("],
  [/ DESC\b|\bON CONFLICT DO NOTHING\b|\bOR IGNORE\b|(?<=[ (])1 \+ /g, ""],
];

/** Changes of the text that the database reads. */
function sqlChanges(node: Node, text: string): Change[] {
  const sql = textOf(node, text);
  // A table's definition has no condition; and what is in `${…}` is TypeScript, with operators of its own.
  if (/^\W*CREATE TABLE/.test(sql)) return [];
  const readable = sql.replaceAll(/\$\{[^}]*\}/g, (code) => "·".repeat(code.length));
  return SQL_RULES.flatMap(([find, replacement]) =>
    [...readable.matchAll(find)].flatMap(({ 0: found, index }) =>
      instead({ start: node.start + index, end: node.start + index + found.length }, replacement),
    ),
  );
}

/**
 * Draws mutants evenly over the files, so that a short file counts as much as a long one: one of each in turn, until there
 * are enough. If there are more files than that, the seed draws the files too.
 */
export function draw(mutants: readonly Mutant[], count: number, seed: number): Mutant[] {
  const dice = new Dice(seed);
  const files = [...Map.groupBy(mutants, ({ file }) => file).values()];
  const piles = dice.shuffled(files.map((file) => dice.shuffled(file)));
  const inTurn = piles.flatMap((pile) => pile.map((mutant, round) => ({ mutant, round })));
  const drawn = inTurn.toSorted((one, other) => one.round - other.round).slice(0, count);
  return drawn.map(({ mutant }) => mutant);
}
