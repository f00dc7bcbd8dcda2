import type { Reason } from "../../shared/error-table.ts";
import { PUBLIC_ERRORS } from "../../shared/error-table.ts";
import { MEANINGS } from "./meanings.ts";
import type { Answer, Example, Header, Json, MediaType, Reference, Schema } from "./types.ts";

/** What the descriptions of all routes are put together from. */

export const headerRef = (name: string): Reference => ({ $ref: `#/components/headers/${name}` });

/** Which headers an answer has beside those of every answer. */
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

/** Headers of every answer of a route. */
export interface RouteHeaders {
  /** Called by devices: web pages of any origin may. */
  anyOrigin: boolean;
  cacheControl?: "NoStore" | "Cached";
}

export function commonHeaders({ anyOrigin, cacheControl = "NoStore" }: RouteHeaders): Headers {
  return {
    "X-Request-Id": headerRef("RequestId"),
    "Cache-Control": headerRef(cacheControl),
    ...(anyOrigin && { "Access-Control-Allow-Origin": headerRef("AnyOrigin") }),
  };
}

/** The answers of a route that went wrong, one for each status, of exactly these reasons and the common ones. */
export function errorAnswers(route: RouteHeaders, reasons: readonly Reason[]): Record<string, Answer> {
  const all: Reason[] = [...reasons, "method-not-allowed", "internal"];
  const statuses = [...new Set(all.map((reason) => PUBLIC_ERRORS[reason].status))].sort();
  const headers = commonHeaders({ anyOrigin: route.anyOrigin });
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = all.filter((reason) => PUBLIC_ERRORS[reason].status === status);
      return [String(status), errorAnswer(ofStatus, headers)];
    }),
  );
}

function errorAnswer(reasons: readonly Reason[], headers: Headers): Answer {
  const codes = reasons.map((reason) => PUBLIC_ERRORS[reason].code);
  const waits = reasons.filter((reason) => PUBLIC_ERRORS[reason].retryAfterSeconds !== undefined);
  const retryAfter = waits.length === reasons.length ? "RetryAfter" : "RetryAfterSometimes";
  return {
    description: reasons.map(describeReason).join("\n\n"),
    headers: {
      ...headers,
      ...(waits.length > 0 && { "Retry-After": headerRef(retryAfter) }),
      ...(reasons.includes("method-not-allowed") && { Allow: headerRef("Allow") }),
    },
    content: {
      "application/json": {
        schema: errorSchema(codes),
        examples: Object.fromEntries(reasons.map((reason) => errorExample(reason))),
      },
    },
  };
}

function errorExample(reason: Reason): [string, Example] {
  const { code } = PUBLIC_ERRORS[reason];
  return [code, { summary: MEANINGS[reason].meaning, value: { error: code } }];
}

export function errorSchema(codes: readonly string[]): Schema {
  return {
    type: "object",
    properties: {
      error: {
        type: "string",
        enum: [...codes],
        description: "What is wrong, as a code.",
        examples: codes.slice(0, 1),
      },
    },
    required: ["error"],
  };
}

export function describeReason(reason: Reason): string {
  const { meaning, remedy } = MEANINGS[reason];
  return `**\`${PUBLIC_ERRORS[reason].code}\`** ${meaning} ${remedy}`;
}
