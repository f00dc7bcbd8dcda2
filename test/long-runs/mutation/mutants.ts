import { mutateSql, SQL_START } from "./sql.ts";
import { child, isNode, type Node, parse, walk } from "./syntax.ts";

/** One small change of one file. */
export interface Mutant {
  file: string;
  line: number;
  operator: string;
  /** The changed piece of the text: from here, up to there. */
  start: number;
  end: number;
  original: string;
  replacement: string;
}

type Change = Pick<Mutant, "start" | "end" | "replacement" | "operator">;

/** What takes an operator's place; those of comparisons as Stryker has them: the bound, and the opposite. */
const OPERATORS: Readonly<Record<string, readonly string[]>> = {
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "===": ["!=="],
  "!==": ["==="],
  "==": ["!="],
  "!=": ["=="],
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
  "%": ["*"],
  "&&": ["||"],
  "||": ["&&"],
  "??": ["&&"],
  "+=": ["-="],
  "-=": ["+="],
  "??=": ["="],
};

/** Calls whose parameters only tell a person something. */
const TELLS = /^(log|noteLost|leftToSweep)\(|^new (\w*Error)\(/;

/** Functions that only say something to a person. */
const DESCRIBES = /^function describe/;

/** All mutants of a file, in the order of its text. */
export function mutantsOf(file: string, text: string): Mutant[] {
  const changes: Change[] = [];
  const isLimits = /(^|\/)limits\.ts$/.test(file);
  walk(parse(text), (node, ancestors) => {
    if (isLimits) {
      changes.push(...limitChanges(node));
      return;
    }
    if (ancestors.some((one) => DESCRIBES.test(text.slice(one.start, one.end)))) return;
    if (!ancestors.concat(node).some((one) => TELLS.test(text.slice(one.start, one.end)) && isCall(one))) {
      changes.push(...changesOf(node, ancestors, text));
    }
  });
  return changes
    .map((change) => ({
      file,
      line: text.slice(0, change.start).split("\n").length,
      original: text.slice(change.start, change.end),
      ...change,
    }))
    .sort((one, other) => one.start - other.start || one.end - other.end);
}

/** One more or less of a limit of the design changes nothing that anybody must notice; ten times more or less does. */
function limitChanges(node: Node): Change[] {
  const { type, value } = node;
  if (type !== "Literal" || typeof value !== "number" || value < 2) return [];
  const values = [10 * value, Math.max(1, Math.floor(value / 10))];
  return values.map((one) => ({ ...place(node), replacement: `(${one})`, operator: "limit" }));
}

const isCall = ({ type }: Node): boolean => type === "CallExpression" || type === "NewExpression";

function changesOf(node: Node, ancestors: readonly Node[], text: string): Change[] {
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression":
      return operatorChanges(node, text, "left", "right");
    case "AssignmentExpression":
      return operatorChanges(node, text, "left", "right");
    case "UpdateExpression":
      return replaced(text, node, node.operator === "++" ? ["++", "--"] : ["--", "++"], "update");
    case "UnaryExpression": {
      const operand = child(node, "argument");
      if (node.operator !== "!" || !operand) return [];
      return [{ start: node.start, end: operand.start, replacement: "", operator: "negation" }];
    }
    case "IfStatement":
    case "ConditionalExpression":
    case "WhileStatement":
      return conditionChanges(node);
    case "Literal":
      return literalChanges(node, ancestors, text);
    case "TemplateLiteral":
      return templateChanges(node, ancestors, text);
    case "ExpressionStatement":
      return [{ start: node.start, end: node.end, replacement: ";", operator: "statement" }];
    case "ReturnStatement":
      return isNode(node.argument) ? [] : [{ ...place(node), replacement: ";", operator: "statement" }];
    case "ContinueStatement":
    case "BreakStatement":
      return [{ ...place(node), replacement: ";", operator: "statement" }];
    case "CallExpression":
      return methodChanges(node, text);
    default:
      return [];
  }
}

const place = ({ start, end }: Node): { start: number; end: number } => ({ start, end });

function operatorChanges(node: Node, text: string, leftField: string, rightField: string): Change[] {
  const left = child(node, leftField);
  const right = child(node, rightField);
  const { operator } = node;
  if (!left || !right || typeof operator !== "string") return [];
  const start = text.indexOf(operator, left.end);
  if (start < 0 || start >= right.start) return [];
  const names = OPERATORS[operator] ?? [];
  return names.map((name) => ({ start, end: start + operator.length, replacement: name, operator: "operator" }));
}

/** Always so, and never so. An endless loop would only cost the time limit. */
function conditionChanges(node: Node): Change[] {
  const test = child(node, "test");
  if (!test) return [];
  const values = node.type === "WhileStatement" ? ["false"] : ["true", "false"];
  return values.map((replacement) => ({ ...place(test), replacement, operator: "condition" }));
}

function literalChanges(node: Node, ancestors: readonly Node[], text: string): Change[] {
  const { value } = node;
  if (typeof value === "boolean") return [{ ...place(node), replacement: String(!value), operator: "boolean" }];
  if (typeof value === "number") {
    return [value + 1, value - 1].map((one) => ({ ...place(node), replacement: `(${one})`, operator: "number" }));
  }
  if (typeof value !== "string" || !isLogic(node, ancestors)) return [];
  if (SQL_START.test(value)) return sqlChanges(node, text);
  return [{ ...place(node), replacement: value === "" ? '"mutant"' : '""', operator: "string" }];
}

/** Not a directive, a name of a field, or a type's own name, which only the compiler compares. */
function isLogic(node: Node, [parent]: readonly Node[]): boolean {
  if (!parent) return false;
  return !(parent.key === node && !parent.computed) && !/^(TS|Import|Export)/.test(parent.type);
}

function templateChanges(node: Node, [parent]: readonly Node[], text: string): Change[] {
  if (SQL_START.test(text.slice(node.start + 1, node.end))) return sqlChanges(node, text);
  if (parent?.type === "TaggedTemplateExpression") return [];
  return [{ ...place(node), replacement: "``", operator: "string" }];
}

/** The words between two `${…}` stay; only text that the database reads is changed. */
function sqlChanges(node: Node, text: string): Change[] {
  return mutateSql(text.slice(node.start, node.end)).map(({ from, to, replacement }) => ({
    start: node.start + from,
    end: node.start + to,
    replacement,
    operator: "sql",
  }));
}

/** One quantifier or bound for the other. */
const METHODS: Readonly<Record<string, string>> = {
  min: "max",
  max: "min",
  some: "every",
  every: "some",
  floor: "ceil",
};

function methodChanges(node: Node, text: string): Change[] {
  const property = child(child(node, "callee") ?? node, "property");
  const other = property && METHODS[text.slice(property.start, property.end)];
  return property && other ? [{ ...place(property), replacement: other, operator: "method" }] : [];
}

function replaced(text: string, node: Node, [from = "", to = ""]: readonly string[], operator: string): Change[] {
  const start = text.indexOf(from, node.start);
  return [{ start, end: start + from.length, replacement: to, operator }];
}
