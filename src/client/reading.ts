import { isObject } from "./json.ts";

/**
 * Readers of parsed JSON, written by hand so that an app does not bundle a schema library. A reader returns the value
 * with its type, without unknown fields, or throws `Malformed`, which `read` catches.
 */
export type Reader<T> = (value: unknown) => T;

class Malformed extends Error {}

const malformed = (): never => {
  throw new Malformed();
};

/** @returns null for a value that the reader does not accept */
export function read<T>(reader: Reader<T>, value: unknown): T | null {
  try {
    return reader(value);
  } catch (error) {
    if (error instanceof Malformed) return null;
    throw error;
  }
}

export const text: Reader<string> = (value) => (typeof value === "string" ? value : malformed());

export const number: Reader<number> = (value) => (typeof value === "number" ? value : malformed());

export const boolean: Reader<boolean> = (value) => (typeof value === "boolean" ? value : malformed());

/** An object with any fields. */
export const anyObject: Reader<Record<string, unknown>> = (value) => (isObject(value) ? value : malformed());

export function oneOf<T extends string>(...choices: readonly T[]): Reader<T> {
  return (value) => choices.find((choice) => choice === value) ?? malformed();
}

export function optional<T>(reader: Reader<T>): Reader<T | undefined> {
  return (value) => (value === undefined ? undefined : reader(value));
}

export function nullable<T>(reader: Reader<T>): Reader<T | null> {
  return (value) => (value === null ? null : reader(value));
}

export function list<T>(reader: Reader<T>): Reader<T[]> {
  return (value) => (Array.isArray(value) ? value.map((each) => reader(each)) : malformed());
}

/** An object with a reader for each field. Fields that read as undefined are left out. */
export function object<T extends object>(fields: { [Name in keyof T]-?: Reader<T[Name]> }): Reader<T> {
  return entriesOf<T>(Object.entries<Reader<unknown>>(fields));
}

/** An object with fields of one type. */
export function fieldsOf<Name extends string, T>(names: readonly Name[], reader: Reader<T>): Reader<Record<Name, T>> {
  return entriesOf<Record<Name, T>>(names.map((name) => [name, reader]));
}

/** @param readers one for every field of T, which the compiler cannot check here */
function entriesOf<T extends object>(
  readers: readonly (readonly [name: string, reader: Reader<unknown>])[],
): Reader<T> {
  return (value) => {
    if (!isObject(value)) return malformed();
    const fields = readers.map(([name, reader]) => [name, reader(value[name])] as const);
    return Object.fromEntries(fields.filter(([, field]) => field !== undefined)) as T;
  };
}
