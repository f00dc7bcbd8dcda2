import { Hono } from "hono";
import { listOwnBadges, suspendOwnBadge } from "../users/own-badges.ts";
import { requireBadgeNumber } from "./badge-routes.ts";
import type { HttpEnv } from "./environment.ts";
import { limitBody } from "./request-stream.ts";
import { anyOrigin, jsonResponse, methodNotAllowed } from "./response.ts";
import { requireUser } from "./user-token.ts";

/** Routes of people, who look after badges of their own from any device (contract section 22). */
export const userRoutes = new Hono<HttpEnv>()
  .use("/v1/user/badges", anyOrigin)
  .use("/v1/user/badges/:id/suspend", anyOrigin)

  .get("/v1/user/badges", async (c) => {
    const { application, userId } = await requireUser(c);
    return jsonResponse(c, {
      badges: await listOwnBadges(c.get("context"), { applicationId: application.id, userId }),
    });
  })
  .all("/v1/user/badges", methodNotAllowed("GET", "HEAD", "OPTIONS"))

  .patch("/v1/user/badges/:id/suspend", limitBody, async (c) => {
    const { application, userId } = await requireUser(c);
    const user = { applicationId: application.id, userId };
    const number = requireBadgeNumber(c.req.param("id"));
    return jsonResponse(c, await suspendOwnBadge(c.get("context"), user, number));
  })
  .all("/v1/user/badges/:id/suspend", methodNotAllowed("PATCH", "OPTIONS"));
