import { type ErrorCode, PUBLIC_ERRORS } from "../../shared/error-table.ts";
import { MEANINGS } from "./meanings.ts";
import type { Example, Header, Json, MediaType, Reference, ResponseObject, Schema } from "./types.ts";

/** Building blocks of the route descriptions. */

export const headerRef = (name: string): Reference => ({ $ref: `#/components/headers/${name}` });

/** Headers of a response. */
type Headers = Record<string, Header | Reference>;

/** JSON content with its examples: summary to value. */
export function json(schema: Schema, examples: Record<string, Json>): Record<string, MediaType> {
  const named = Object.entries(examples).map(([summary, value]): [string, Example] => [
    slug(summary),
    { summary, value },
  ]);
  return { "application/json": { schema, examples: Object.fromEntries(named) } };
}

/** Names of examples: letters, digits and hyphens. */
function slug(summary: string): string {
  return summary
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replace(/-$/, "");
}

/** Headers of every response of a route. */
interface RouteHeaders {
  /** Whether web pages of any origin may call it, as for devices. */
  anyOrigin: boolean;
  cacheControl?: "NoStore" | "Cached" | "CachedBriefly";
}

export function commonHeaders({ anyOrigin, cacheControl = "NoStore" }: RouteHeaders): Headers {
  return {
    "X-Request-Id": headerRef("RequestId"),
    "Cache-Control": headerRef(cacheControl),
    ...(anyOrigin && { "Access-Control-Allow-Origin": headerRef("AnyOrigin") }),
  };
}

/** The error responses of a route, one per status, with exactly these codes and the common ones. */
export function errorResponses(route: RouteHeaders, codes: readonly ErrorCode[]): Record<string, ResponseObject> {
  const all: ErrorCode[] = [...codes, "METHOD_NOT_ALLOWED", "INTERNAL_ERROR"];
  const statuses = [...new Set(all.map((code) => PUBLIC_ERRORS[code].status))].sort();
  const headers = commonHeaders({ anyOrigin: route.anyOrigin });
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = all.filter((code) => PUBLIC_ERRORS[code].status === status);
      return [String(status), errorResponse(ofStatus, headers)];
    }),
  );
}

/** The error responses of a call by the application's server or a person. */
export const serverErrors = (...codes: ErrorCode[]): Record<string, ResponseObject> =>
  errorResponses({ anyOrigin: false }, [
    "INVALID_CREDENTIALS",
    "DOOR_ONLY",
    "INVALID_ACTOR",
    ...codes,
    "RATE_LIMITED",
    "UNAVAILABLE",
  ]);

function errorResponse(codes: readonly ErrorCode[], headers: Headers): ResponseObject {
  const waits = codes.filter((code) => PUBLIC_ERRORS[code].retryAfterSeconds !== undefined);
  const proof = codes.some((code) => PUBLIC_ERRORS[code].challenge !== undefined);
  const retryAfter = waits.length === codes.length ? "RetryAfter" : "RetryAfterSometimes";
  return {
    description: codes.map(describeError).join("\n\n"),
    headers: {
      ...headers,
      ...(proof && { "WWW-Authenticate": headerRef("WwwAuthenticate"), "DPoP-Nonce": headerRef("DpopNonce") }),
      ...(waits.length > 0 && { "Retry-After": headerRef(retryAfter) }),
      ...(codes.includes("METHOD_NOT_ALLOWED") && { Allow: headerRef("Allow") }),
    },
    content: {
      "application/json": {
        schema: errorSchema(codes),
        examples: Object.fromEntries(codes.map((code) => errorExample(code))),
      },
    },
  };
}

function errorExample(code: ErrorCode): [string, Example] {
  return [code, { summary: MEANINGS[code].meaning, value: { error: code } }];
}

function errorSchema(codes: readonly string[]): Schema {
  return {
    type: "object",
    properties: {
      error: {
        type: "string",
        enum: [...codes],
        description: "The error code.",
        examples: codes.slice(0, 1),
      },
    },
    required: ["error"],
  };
}

export function describeError(code: ErrorCode): string {
  const { meaning, remedy } = MEANINGS[code];
  return `**\`${code}\`** ${meaning} ${remedy}`;
}
