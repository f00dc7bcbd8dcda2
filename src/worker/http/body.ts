import type { Context as HonoContext } from "hono";
import type { z } from "zod";
import type { ErrorCode } from "../../shared/error-table.ts";
import { ApiError } from "../api-error.ts";
import { isObject } from "../json-object.ts";
import type { HttpEnv } from "./environment.ts";

/**
 * Reads the body as a JSON object and ignores its `Content-Type`; an absent or empty body counts as `{}`. Fields that
 * are null, empty or blank count as missing (contract section 2).
 */
export async function readBody(c: HonoContext<HttpEnv>): Promise<Record<string, unknown>> {
  return withoutMissing(await readWholeBody(c));
}

/** Like `readBody`, but keeps the fields that count as missing, for calls in which null is a value. */
export async function readWholeBody(c: HonoContext<HttpEnv>): Promise<Record<string, unknown>> {
  const bytes = await readBytes(c);
  if (bytes.byteLength === 0) return {};
  const body = parseJson(bytes);
  if (!isObject(body)) throw new ApiError("INVALID_JSON");
  return body;
}

/** The received body; a missing one counts as empty. It may be read again. */
export async function readBytes(c: HonoContext<HttpEnv>): Promise<Uint8Array<ArrayBuffer>> {
  const known = c.get("body");
  if (known) return known;
  const bytes = new Uint8Array(await readOrReportHangUp(() => c.req.raw.arrayBuffer()));
  c.set("body", bytes);
  return bytes;
}

/**
 * Reads a request's body. Reading fails only if the caller hangs up while sending. This is not a fault of the service:
 * the received part is not the JSON that was announced, and no caller waits for the response.
 *
 * @throws ApiError INVALID_JSON
 */
export async function readOrReportHangUp<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch {
    throw new ApiError("INVALID_JSON", { detail: "body-cut-off" });
  }
}

/** JSON is UTF-8 (RFC 8259 section 8.1); malformed bytes are refused. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

function parseJson(bytes: Uint8Array): unknown {
  try {
    const text = utf8.decode(bytes);
    return text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    throw new ApiError("INVALID_JSON");
  }
}

/** Removes fields that count as missing, also from nested objects such as `metadata`. */
export function withoutMissing(body: Record<string, unknown>): Record<string, unknown> {
  deleteMissing(body);
  for (const value of Object.values(body)) if (isObject(value)) deleteMissing(value);
  return body;
}

/** In place, because few bodies have such a field. */
function deleteMissing(object: Record<string, unknown>): void {
  for (const name of Object.keys(object)) {
    const value = object[name];
    if (value === null || (typeof value === "string" && value.trim() === "")) delete object[name];
  }
}

/** The codes for a missing and for an invalid field. A field without a `missing` code is optional. */
export type FieldErrors = Record<string, { missing?: ErrorCode; invalid: ErrorCode }>;

/** Parses a body with its schema. If several fields are invalid, the first one in `errors` is reported. */
export function parseBody<Schema extends z.ZodType>(
  schema: Schema,
  body: Record<string, unknown>,
  errors: FieldErrors,
): z.infer<Schema> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const faulty = new Set(parsed.error.issues.map(({ path }) => path[0]));
  for (const [field, { invalid }] of Object.entries(errors)) {
    if (faulty.has(field)) throw new ApiError(invalid);
  }
  throw new ApiError("INVALID_JSON");
}

/** Refuses a body that lacks a required field. Missing fields are reported before invalid ones. */
export function requireFields(body: Record<string, unknown>, errors: FieldErrors): void {
  for (const [field, { missing }] of Object.entries(errors)) {
    if (missing && !Object.hasOwn(body, field)) throw new ApiError(missing);
  }
}
