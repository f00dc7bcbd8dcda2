import { Hono, type Context as HonoContext } from "hono";
import { idempotencyKey, invitationRequest } from "../../shared/requests.ts";
import { createInvitation } from "../invitations/create.ts";
import { revokeInvitation } from "../invitations/revoke.ts";
import { Refusal } from "../refusal.ts";
import { header, identifyCaller, identifyRevoker, requireDevice, requireUdid } from "./authentication.ts";
import { requireValidUdid } from "./badge-routes.ts";
import { type FieldErrors, parseBody, readBody, requireFields } from "./body.ts";
import type { HttpEnv } from "./environment.ts";
import { limitDevice } from "./rate-limit.ts";
import { limitBody, methodNotAllowed } from "./resource.ts";

const INVITATION_FIELDS: FieldErrors = {
  expiresAt: { missing: "UNDEFINED_EXPIRESAT", invalid: "INVALID_EXPIRESAT" },
  badgeExpiresAt: { invalid: "INVALID_BADGEEXPIRESAT" },
};

/** What an application's server calls to invite visitors (contract section 5). */
export const invitationRoutes = new Hono<HttpEnv>()
  .post("/v1/invitation", limitBody, async (c) => {
    const context = c.get("context");
    const { kind, application } = await identifyCaller(c);
    const udid = requireUdid(c);
    const device = await requireDevice(c, application, udid);
    if (kind === "device") await limitDevice(c, application, device);
    const body = await readBody(c);
    requireFields(body, INVITATION_FIELDS);
    requireValidUdid(udid);
    const { expiresAt, badgeExpiresAt } = parseBody(invitationRequest, body, INVITATION_FIELDS);
    const created = await createInvitation(context, application, {
      device,
      withSecret: kind === "server",
      expiresAt,
      badgeExpiresAt: badgeExpiresAt ?? null,
      idempotencyKey: readIdempotencyKey(c),
    });
    const end = badgeExpiresAt != null ? { badgeExpiresAt } : {};
    return c.json({ id: created.id, badgeId: String(created.number), expiresAt, ...end }, 201);
  })
  .all("/v1/invitation", methodNotAllowed("POST"))

  .patch("/v1/invitation/:id/revoke", limitBody, async (c) => {
    const context = c.get("context");
    const caller = await identifyRevoker(c);
    const { application } = caller;
    const revoker =
      caller.kind === "device"
        ? ({ kind: "device", device: await requireDevice(c, application, caller.udid) } as const)
        : ({ kind: "server" } as const);
    const id = c.req.param("id");
    const { number, expiresAt, revokedAt } = await revokeInvitation(context, application, id, revoker);
    return c.json({ id, badgeId: String(number), expiresAt, revokedAt: new Date(revokedAt).toISOString() }, 200);
  })
  .all("/v1/invitation/:id/revoke", methodNotAllowed("PATCH"));

/** Printable ASCII, as an udid (contract section 12); null when none was sent. */
function readIdempotencyKey(c: HonoContext<HttpEnv>): string | null {
  const key = header(c, "idempotency-key");
  if (key !== null && !idempotencyKey.safeParse(key).success) throw new Refusal("INVALID_IDEMPOTENCYKEY");
  return key;
}
