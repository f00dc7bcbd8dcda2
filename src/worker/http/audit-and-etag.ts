import type { Context as HonoContext } from "hono";
import type { AuditContext } from "../../shared/actor.ts";
import { reasonRequest } from "../../shared/requests.ts";
import type { ShownBadge } from "../badges/transitions.ts";
import { parseBody, readBody } from "./body.ts";
import type { HttpEnv } from "./environment.ts";
import { jsonResponse } from "./response.ts";

/** The context that the history records with a change. @param reason from the body of a `PATCH` */
export function auditContext(c: HonoContext<HttpEnv>, reason: string | null = null): AuditContext {
  return { actor: c.get("actor") ?? { kind: "device" }, requestId: c.get("requestId"), reason };
}

/**
 * The `reason` in the optional body of a `PATCH`. A reason that is not a text of valid length makes the whole body
 * invalid, because it has no code of its own.
 *
 * @throws ApiError INVALID_JSON
 */
export async function readReason(c: HonoContext<HttpEnv>): Promise<string | null> {
  return parseBody(reasonRequest, await readBody(c), {}).reason ?? null;
}

/**
 * The change numbers that the header `If-Match` allows (RFC 9110 section 13.1.1).
 *
 * @returns null if the header is missing or `*`; `[]`, which matches no badge, if it is malformed
 */
export function readIfMatch(c: HonoContext<HttpEnv>): readonly number[] | null {
  const text = c.req.raw.headers.get("if-match")?.trim() ?? "";
  if (text === "" || text === "*") return null;
  // Includes weak tags, because proxies that compress responses weaken them.
  const tags = text.split(",").map((tag) => /^(?:W\/)?"([1-9][0-9]{0,15})"$/.exec(tag.trim())?.[1]);
  return tags.filter((tag) => tag !== undefined).map(Number);
}

/** The `ETag` of a badge: its change number. */
const entityTag = (change: number): string => `"${change}"`;

/** A badge, with the change number that a later call sends as `If-Match`. */
export function badgeResponse(c: HonoContext<HttpEnv>, { view, change }: ShownBadge): Response {
  const response = jsonResponse(c, view);
  response.headers.set("ETag", entityTag(change));
  return response;
}
