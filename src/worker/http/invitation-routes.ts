import { Hono, type Context as HonoContext } from "hono";
import { idempotencyKey, invitationRequest } from "../../shared/requests.ts";
import { createInvitation } from "../invitations/create.ts";
import { revokeInvitation } from "../invitations/revoke.ts";
import { Refusal } from "../refusal.ts";
import { header, requireInviter, requireRevoker } from "./authentication.ts";
import { requireValidUdid } from "./badge-routes.ts";
import { type FieldErrors, parseBody, readBody, requireFields } from "./body.ts";
import type { HttpEnv } from "./environment.ts";
import { countingRefused, limitAddress } from "./rate-limits.ts";
import { limitBody } from "./request-stream.ts";
import { jsonResponse, methodNotAllowed } from "./response.ts";

const INVITATION_FIELDS: FieldErrors = {
  expiresAt: { missing: "UNDEFINED_EXPIRESAT", invalid: "INVALID_EXPIRESAT" },
  badgeExpiresAt: { invalid: "INVALID_BADGEEXPIRESAT" },
  badgeStartsAt: { invalid: "INVALID_STARTSAT" },
  name: { invalid: "INVALID_NAME" },
  userId: { invalid: "INVALID_USERID" },
};

/** Routes with which an application's server invites visitors (contract section 5). */
export const invitationRoutes = new Hono<HttpEnv>()
  .post(
    "/v1/invitation",
    limitBody,
    countingRefused(async (c) => {
      const context = c.get("context");
      const { application, device, udid, inviter } = await requireInviter(c);
      const body = await readBody(c);
      requireFields(body, INVITATION_FIELDS);
      requireValidUdid(udid);
      const { expiresAt, badgeExpiresAt } = parseBody(invitationRequest, body, INVITATION_FIELDS);
      await limitAddress(c);
      const created = await createInvitation(context, application, {
        device,
        inviter,
        expiresAt,
        badgeExpiresAt: badgeExpiresAt ?? null,
        idempotencyKey: readIdempotencyKey(c),
      });
      const end = badgeExpiresAt != null ? { badgeExpiresAt } : {};
      return jsonResponse(c, { id: created.id, badgeId: String(created.number), expiresAt, ...end }, 201);
    }),
  )
  .all("/v1/invitation", methodNotAllowed("POST"))

  .patch("/v1/invitation/:id/revoke", limitBody, async (c) => {
    const { application, by } = await requireRevoker(c);
    const id = c.req.param("id");
    const { number, expiresAt, revokedAt } = await revokeInvitation(c.get("context"), application, id, by);
    return jsonResponse(c, { id, badgeId: String(number), expiresAt, revokedAt: new Date(revokedAt).toISOString() });
  })
  .all("/v1/invitation/:id/revoke", methodNotAllowed("PATCH"));

/** Printable ASCII, as an udid (contract section 12); null when none was sent. */
function readIdempotencyKey(c: HonoContext<HttpEnv>): string | null {
  const key = header(c, "idempotency-key");
  if (key !== null && !idempotencyKey.safeParse(key).success) throw new Refusal("INVALID_IDEMPOTENCYKEY");
  return key;
}
