import { Hono } from "hono";
import { changeBadge } from "../badges/transitions.ts";
import { listOwnBadges } from "../users/own-badges.ts";
import { auditContext, badgeResponse, readReason } from "./audit-and-etag.ts";
import { limitBody } from "./body-limit.ts";
import type { HttpEnv } from "./environment.ts";
import { requireBadgeNumber } from "./params.ts";
import { withRefusalLimit } from "./rate-limits.ts";
import { anyOrigin, jsonResponse } from "./response.ts";
import { requireUser } from "./user-authentication.ts";

/** Routes with which users manage their own badges from any device. */
export const ownBadgeRoutes = new Hono<HttpEnv>()
  .use("/v1/user/badges", anyOrigin)
  .use("/v1/user/badges/:id/suspend", anyOrigin)

  .get(
    "/v1/user/badges",
    limitBody,
    withRefusalLimit(async (c) => {
      const { application, userId } = await requireUser(c);
      return jsonResponse(c, { badges: await listOwnBadges(c.get("context"), application.id, userId) });
    }),
  )

  .patch(
    "/v1/user/badges/:id/suspend",
    limitBody,
    withRefusalLimit(async (c) => {
      const { application, userId } = await requireUser(c);
      const number = requireBadgeNumber(c.req.param("id"));
      const change = { number, transition: { kind: "suspend" as const }, ifChange: null, ownedBy: userId };
      // A body that cannot be read is ignored: it must not keep a lost phone's badge active.
      const audit = auditContext(c, await readReason(c).catch(() => null));
      return badgeResponse(c, await changeBadge(c.get("context"), application.id, change, audit));
    }),
  );
