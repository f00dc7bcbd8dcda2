import { Hono, type Context as HonoContext } from "hono";
import { badgeRequest, signRequest } from "../../shared/requests.ts";
import { withRecentSettings } from "../applications/recent-settings.ts";
import { issueBadge } from "../badges/issue.ts";
import { signBadge } from "../badges/sign.ts";
import { ACCEPTED, refusalOfUser } from "../users/user-check.ts";
import { auditContext } from "./audit-and-etag.ts";
import { hasServerSecret, type ProvingDevice, requireProvingDevice } from "./authentication.ts";
import { type FieldErrors, parseBody, readBody, requireFields } from "./body.ts";
import { limitBody } from "./body-limit.ts";
import { readBookmark, withBookmark } from "./bookmark.ts";
import type { HttpEnv } from "./environment.ts";
import { requireBadgeNumber, requireValidUdid } from "./params.ts";
import { requireKey } from "./proof.ts";
import { limitAddress, limitAddressApart, withRefusalLimit } from "./rate-limits.ts";
import { anyOrigin, jsonResponse } from "./response.ts";
import { checkUserOfLogin } from "./user-authentication.ts";

const BADGE_FIELDS: FieldErrors = {
  userId: { missing: "UNDEFINED_USERID", invalid: "INVALID_USERID" },
  metadata: { invalid: "INVALID_METADATA" },
  invitationToken: { invalid: "INVALID_INVITATIONTOKEN" },
};

const SIGN_FIELDS: FieldErrors = { base64: { missing: "UNDEFINED_BASE64", invalid: "INVALID_BASE64" } };

/** Routes of devices, which have the application ID and their udid but no secret. */
export const badgeRoutes = new Hono<HttpEnv>()
  .use("/v1/badge", anyOrigin)
  .use("/v1/badge/sign", anyOrigin)

  .post(
    "/v1/badge",
    limitBody,
    withRefusalLimit(
      serveDevice("UNDEFINED_APPLICATIONID", async (c, caller) => {
        const body = await readBody(c);
        requireFields(body, BADGE_FIELDS);
        requireValidUdid(caller.udid);
        const { userId, metadata, invitationToken } = parseBody(badgeRequest, body, BADGE_FIELDS);
        const user = caller.application.users === null ? ACCEPTED : await checkUserOfLogin(c, caller, userId);
        // An invitation may vouch for its user, which the allocator checks.
        if (!user.isAccepted && invitationToken === undefined) throw user.refusal;
        const key = await requireKey(c, caller);
        const request = {
          device: caller.device,
          userId,
          // The schema fixes the order of the fields, so equal metadata is equal text, and a comparison finds a change.
          metadata: metadata ? JSON.stringify(metadata) : null,
          keyThumbprint: key?.thumbprint ?? null,
          isVerified: user.isAccepted,
          isServer: caller.isServer,
          invitationToken: invitationToken ?? null,
          bookmark: readBookmark(c, caller.application),
        };
        const limits = { countFreshNumber: () => limitAddress(c), countGuess: () => limitAddressApart(c) };
        const badge = await issueBadge(c.get("context"), caller.application, request, auditContext(c), limits).catch(
          (error) => {
            throw refusalOfUser(user, error) ?? error;
          },
        );
        const badgeId = String(badge.number);
        const bound = badge.keyThumbprint !== null && { keyThumbprint: badge.keyThumbprint };
        const response =
          badge.kind === "created"
            ? jsonResponse(c, { badgeId, publicKey: badge.publicKey, ...bound }, 201)
            : jsonResponse(c, { badgeId, ...bound });
        return withBookmark(c, caller.application, response);
      }),
    ),
  )

  .post(
    "/v1/badge/sign",
    limitBody,
    withRefusalLimit(
      serveDevice("INVALID_APPLICATIONID", async (c, caller) => {
        const body = await readBody(c);
        requireFields(body, SIGN_FIELDS);
        requireValidUdid(caller.udid);
        const { base64, badgeId } = parseBody(signRequest, body, SIGN_FIELDS);
        const key = await requireKey(c, caller);
        const badgeNumber = badgeId === undefined ? null : requireBadgeNumber(badgeId);
        const bookmark = readBookmark(c, caller.application);
        const request = { device: caller.device, clientSignature: base64, badgeNumber, key, bookmark };
        const signature = await signBadge(c.get("context"), caller.application, request);
        return withBookmark(c, caller.application, jsonResponse(c, { signature }));
      }),
    ),
  );

/**
 * Identifies the device and serves its call. If cached settings may have caused a refusal, it serves the call again
 * with the newest ones.
 */
function serveDevice(
  missing: Parameters<typeof requireProvingDevice>[1],
  serve: (c: HonoContext<HttpEnv>, caller: ProvingDevice) => Promise<Response>,
): (c: HonoContext<HttpEnv>) => Promise<Response> {
  return async (c) => {
    const caller = await requireProvingDevice(c, missing);
    return withRecentSettings(c.get("context"), caller.application, async (application) => {
      const isServer = application === caller.application ? caller.isServer : await hasServerSecret(c, application);
      return serve(c, { ...caller, application, isServer });
    });
  };
}
