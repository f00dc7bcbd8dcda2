import { isObject } from "./json.ts";
import type { Badge } from "./types.ts";

/** A field that is checked: of this type, or an array. */
type FieldKind = "string" | "number" | "boolean" | "array";

/** Reads parsed JSON; null if it is not what the service sends. */
export type Reader<T> = (value: unknown) => T | null;

/**
 * An object of the service. Only the fields are checked without which a caller would do the wrong thing, such as store
 * "undefined" as a badge number: what else it has is the service's word, as its schemas say (`/openapi.json`). The log-in page of
 * a hotel network, or another service at that address, does not get past this.
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
