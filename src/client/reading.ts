import { isObject } from "./json.ts";
import type { Badge } from "./types.ts";

/** What a checked field has to be. */
type FieldKind = "string" | "number" | "boolean" | "array";

/** Reads parsed JSON; null if it is not what the service sends. */
export type Reader<T> = (value: unknown) => T | null;

/**
 * Reads an object of the service. It checks only fields whose absence would make a caller do the wrong thing, such as store
 * "undefined" as a badge number. The other fields are trusted to follow the service's schemas (`/openapi.json`). The log-in page
 * of a hotel network, or another service at that address, fails this check.
 *
 * @param required the fields that it must have
 */
export function object<T extends object>(required: { [Name in keyof T & string]?: FieldKind }): Reader<T> {
  const fields = Object.entries<FieldKind | undefined>(required);
  const isT = (value: unknown): value is T =>
    isObject(value) && fields.every(([name, kind]) => kindOf(value[name]) === kind);
  return (value) => (isT(value) ? value : null);
}

/** A badge in any state. */
export const badge = object<Badge>({ id: "string", userId: "string", state: "string" });

const kindOf = (value: unknown): string => (Array.isArray(value) ? "array" : typeof value);
