import { Column, is, Param, Placeholder, SQL, type SQLWrapper } from "drizzle-orm";
import { CasingCache } from "drizzle-orm/casing";

/** A compiled Drizzle query: its text, its parameters, and the decoders of its rows (statement.ts). */
export interface CompiledQuery {
  text: string;
  parameters: readonly Parameter[];
  fields: readonly Field[];
}

interface Parameter {
  name: string;
  /** Encodes it as D1 stores it. */
  encode(value: unknown): unknown;
}

interface Field {
  /** The field's name in the decoded row. */
  name: string;
  /** The column name in D1's rows. */
  column: string;
  /** Decodes D1's value; null if the value is used unchanged. */
  decode: ((stored: unknown) => unknown) | null;
}

const casing = new CasingCache();

/**
 * @param selection the fields in the order in which the query returns them
 * @param isNamed whether it returns them under the fields' names
 * @throws Error if two fields would have the same column name in D1's rows, or if a field would have none
 */
export function compileQuery(
  query: SQLWrapper,
  selection: Readonly<Record<string, unknown>>,
  isNamed: boolean,
): CompiledQuery {
  const sources: (Placeholder | Param)[] = [];
  const numberOf = (source: Placeholder | Param): number => {
    const known = sources.findIndex((one) => nameOf(one) === nameOf(source) && encoderOf(one) === encoderOf(source));
    return known < 0 ? sources.push(source) : known + 1;
  };
  const { sql: text } = query.getSQL().toQuery({
    casing,
    escapeName: (name) => `"${name}"`,
    escapeString,
    escapeParam: (_, value) => (is(value, Placeholder) || is(value, Param) ? `?${numberOf(value)}` : literal(value)),
  });
  const fields = Object.entries(selection).map(([name, source]): Field => {
    return { name, column: isNamed ? name : columnOf(name, source), decode: decoderOf(source) };
  });
  if (new Set(fields.map(({ column }) => column)).size < fields.length) throw new Error(`equal columns: ${text}`);
  return { text, parameters: sources.map(parameterOf), fields };
}

const nameOf = (source: Placeholder | Param): string => {
  const placeholder = is(source, Param) ? source.value : source;
  if (!is(placeholder, Placeholder)) throw new Error("a constant cannot be bound as a parameter");
  return placeholder.name;
};

const encoderOf = (source: Placeholder | Param) => (is(source, Param) ? source.encoder : null);

function parameterOf(source: Placeholder | Param): Parameter {
  const encoder = encoderOf(source);
  const encode = (value: unknown) => (value === null || encoder === null ? value : encoder.mapToDriverValue(value));
  return { name: nameOf(source), encode };
}

const escapeString = (text: string): string => `'${text.replaceAll("'", "''")}'`;

function literal(constant: unknown): string {
  if (constant === null || typeof constant === "number") return String(constant);
  if (typeof constant === "boolean") return constant ? "1" : "0";
  if (typeof constant === "string") return escapeString(constant);
  throw new Error(`a ${typeof constant} cannot stand in a statement`);
}

/** The name that Drizzle gives a field of a select. */
function columnOf(name: string, source: unknown): string {
  if (is(source, SQL.Aliased)) return source.fieldAlias;
  if (is(source, Column)) return source.name;
  throw new Error(`the field ${name} needs an alias`);
}

/** Drizzle maps most columns by a method that changes nothing. These columns are left unmapped. */
function decoderOf(source: unknown): Field["decode"] {
  if (is(source, Column)) {
    const isPlain = source.mapFromDriverValue === Column.prototype.mapFromDriverValue;
    return isPlain ? null : (stored) => source.mapFromDriverValue(stored);
  }
  // The argument of `mapWith`, which Drizzle's types do not declare.
  const decoder: unknown = Reflect.get(is(source, SQL.Aliased) ? source.sql : Object(source), "decoder");
  if (is(decoder, Column)) return decoderOf(decoder);
  if (decoder === noDecoder || !isDecoder(decoder)) return null;
  return (stored) => decoder.mapFromDriverValue(stored);
}

const noDecoder: unknown = Reflect.get(new SQL([]), "decoder");

const isDecoder = (value: unknown): value is { mapFromDriverValue(stored: unknown): unknown } =>
  typeof value === "object" && value !== null && "mapFromDriverValue" in value;

type Row = Record<string, unknown>;

/** @param values in the order of the fields */
export function rowOfArray(fields: readonly Field[], values: readonly unknown[]): Row {
  const row: Row = {};
  for (let place = 0; place < fields.length; place++) {
    const field = fields[place];
    if (field) row[field.name] = decoded(field, values[place]);
  }
  return row;
}

/** @param object by column names, as D1 returns rows of a batch */
export function rowOfObject(fields: readonly Field[], object: unknown): Row {
  const row: Row = {};
  for (const field of fields) row[field.name] = decoded(field, Reflect.get(Object(object), field.column));
  return row;
}

const decoded = ({ decode }: Field, stored: unknown): unknown =>
  decode === null || stored === null ? stored : decode(stored);
