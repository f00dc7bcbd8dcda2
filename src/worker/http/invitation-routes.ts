import { Hono, type Context as HonoContext } from "hono";
import type * as z from "zod";
import type { ErrorCode } from "../../shared/error-table.ts";
import { idempotencyKey, invitationPageQuery, invitationRequest, invitationsRequest } from "../../shared/requests.ts";
import { isoTime } from "../../shared/time.ts";
import { ApiError } from "../api-error.ts";
import { type CreatedInvitation, createInvitations, type InvitationRequest } from "../invitations/create.ts";
import { describeInvitation } from "../invitations/describe.ts";
import { invitationCursor, pageInvitations } from "../invitations/list.ts";
import { eraseInvitation, revokeInvitation } from "../invitations/revoke.ts";
import { isObject } from "../json-object.ts";
import { auditContext, readReason } from "./audit-and-etag.ts";
import {
  header,
  type InvitingCall,
  requireInvited,
  requireInviter,
  requireRevoker,
  requireServerInviter,
} from "./authentication.ts";
import { type FieldErrors, parseBody, readBody, requireFields, withoutMissing } from "./body.ts";
import { limitBody, limitInvitationsBody } from "./body-limit.ts";
import type { HttpEnv } from "./environment.ts";
import { authenticateServer } from "./middleware.ts";
import { requireValidUdid } from "./params.ts";
import { readCursor, readQuery, readTime } from "./queries.ts";
import { limitAddress, withRefusalLimit } from "./rate-limits.ts";
import { anyOriginMayRead, jsonResponse, pageResponse } from "./response.ts";

const INVITATION_FIELDS: FieldErrors = {
  expiresAt: { missing: "UNDEFINED_EXPIRESAT", invalid: "INVALID_EXPIRESAT" },
  badgeExpiresAt: { invalid: "INVALID_BADGEEXPIRESAT" },
  badgeStartsAt: { invalid: "INVALID_STARTSAT" },
  name: { invalid: "INVALID_NAME" },
  userId: { invalid: "INVALID_USERID" },
};

/**
 * Routes with which an application's server invites visitors, and visitors read their invitations (contract section
 * 27).
 */
export const invitationRoutes = new Hono<HttpEnv>()
  .use("/v1/invitation", anyOriginMayRead)

  .get(
    "/v1/invitation",
    withRefusalLimit(async (c) => {
      const { application, token } = await requireInvited(c);
      return jsonResponse(c, await describeInvitation(c.get("context"), application, token));
    }),
  )

  .post(
    "/v1/invitation",
    limitBody,
    withRefusalLimit(async (c) => {
      const caller = await requireInviter(c);
      const body = await readBody(c);
      requireFields(body, INVITATION_FIELDS);
      requireValidUdid(caller.udid);
      const request = parseBody(invitationRequest, body, INVITATION_FIELDS);
      await limitAddress(c);
      const [created] = await create(c, caller, [toRequest(request)]);
      if (!created || "code" in created) throw new ApiError(created?.code ?? "UNAVAILABLE");
      return jsonResponse(c, viewOf(created, request), 201);
    }),
  )

  .get("/v1/invitations", authenticateServer, readQuery(invitationPageQuery), async (c) => {
    const { per_page: perPage, cursor, state = null, q: text = null, from, until } = c.req.valid("query");
    const span = { from: readTime(from), until: readTime(until) };
    const codec = invitationCursor(span);
    const { invitations, next } = await pageInvitations(c.get("context"), {
      applicationId: c.get("caller").id,
      ...{ state, text, ...span, perPage },
      after: readCursor(codec, cursor),
    });
    return pageResponse(c, { invitations }, codec, next);
  })

  .post("/v1/invitations", limitInvitationsBody, async (c) => {
    const caller = await requireServerInviter(c);
    const body = await readBody(c);
    requireValidUdid(caller.udid);
    const { invitations } = parseBody(invitationsRequest, body, { invitations: { invalid: "INVALID_INVITATIONS" } });
    const requests = invitations.map(readOne);
    const created = await create(
      c,
      caller,
      requests.map((request) => ("code" in request ? request : toRequest(request))),
    );
    const views = created.map((one, index) => {
      const request = requests[index];
      if ("code" in one || !request || "code" in request) return { error: "code" in one ? one.code : "INVALID_JSON" };
      return viewOf(one, request);
    });
    return jsonResponse(c, { invitations: views });
  })

  .patch("/v1/invitation/:id/revoke", limitBody, async (c) => {
    const { application, by } = await requireRevoker(c);
    const id = c.req.param("id");
    // The body may have a reason; an unreadable body is ignored (contract section 5).
    const audit = auditContext(c, await readReason(c).catch(() => null));
    const { number, expiresAt, revokedAt } = await revokeInvitation(c.get("context"), application, id, by, audit);
    return jsonResponse(c, { id, badgeId: String(number), expiresAt, revokedAt: isoTime(revokedAt) });
  })

  .patch("/v1/invitation/:id/erase", limitBody, authenticateServer, async (c) => {
    const audit = auditContext(c, await readReason(c));
    const number = await eraseInvitation(c.get("context"), c.get("caller").id, c.req.param("id"), audit);
    return jsonResponse(c, { badgeId: String(number) });
  });

type ParsedRequest = z.infer<typeof invitationRequest>;

const toRequest = ({ expiresAt, badgeExpiresAt, badgeStartsAt, name, userId }: ParsedRequest): InvitationRequest => ({
  expiresAt,
  badgeExpiresAt: badgeExpiresAt ?? null,
  badgeStartsAt: badgeStartsAt ?? null,
  name: name ?? null,
  userId: userId ?? null,
});

function viewOf({ id, number }: Exclude<CreatedInvitation, { code: ErrorCode }>, request: ParsedRequest) {
  const { expiresAt, badgeExpiresAt, badgeStartsAt, name, userId } = request;
  return { id, badgeId: String(number), expiresAt, badgeExpiresAt, badgeStartsAt, name, userId };
}

/** An invalid item does not affect the other items. */
function readOne(body: unknown): ParsedRequest | { code: ErrorCode } {
  try {
    if (!isObject(body)) return { code: "INVALID_JSON" };
    const fields = withoutMissing(body);
    requireFields(fields, INVITATION_FIELDS);
    return parseBody(invitationRequest, fields, INVITATION_FIELDS);
  } catch (error) {
    if (error instanceof ApiError) return { code: error.code };
    throw error;
  }
}

function create(
  c: HonoContext<HttpEnv>,
  { application, device, inviter }: InvitingCall,
  requests: readonly (InvitationRequest | { code: ErrorCode })[],
): Promise<CreatedInvitation[]> {
  const caller = { device, inviter, idempotencyKey: readIdempotencyKey(c) };
  return createInvitations(c.get("context"), application, requests, caller, auditContext(c));
}

/** Printable ASCII, like a udid (contract section 12); null if none was sent. */
function readIdempotencyKey(c: HonoContext<HttpEnv>): string | null {
  const key = header(c, "idempotency-key");
  if (key !== null && !idempotencyKey.safeParse(key).success) throw new ApiError("INVALID_IDEMPOTENCYKEY");
  return key;
}
