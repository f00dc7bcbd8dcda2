import { parseAst } from "vitest/node";

/** A node of the syntax tree (ESTree with TypeScript's additions), with its place in the text. */
export interface Node {
  type: string;
  start: number;
  end: number;
  [field: string]: unknown;
}

/** A node with all that it stands in, the nearest first. */
export type Visit = (node: Node, ancestors: readonly Node[]) => void;

export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

/** The tree of a TypeScript file. The parser is the one that comes with vitest. */
export function parse(text: string): Node {
  const tree: unknown = parseAst(text, { lang: "ts" });
  if (!isNode(tree)) throw new TypeError("the parser gave no tree");
  return tree;
}

/** What is only there for the compiler and the reader: no mutant of it can be told from the original. */
const NEVER_RUN = /^(TS(?!As|NonNull|Satisfies)|Import|ExportAll)/;

export function walk(node: Node, visit: Visit, ancestors: readonly Node[] = []): void {
  if (NEVER_RUN.test(node.type)) return;
  visit(node, ancestors);
  const around = [node, ...ancestors];
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) walk(child, visit, around);
  }
}

/** A field that holds a node. */
export function child(node: Node, field: string): Node | null {
  const value = node[field];
  return isNode(value) ? value : null;
}
