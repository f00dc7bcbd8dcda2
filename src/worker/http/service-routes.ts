import { sql } from "drizzle-orm";
import { Hono } from "hono";
import { HEALTH_DEADLINE_MILLISECONDS, PUBLIC_CACHE_SECONDS } from "../../shared/limits.ts";
import { requirePublisher } from "../applications/authentication.ts";
import { publicJwks } from "../keys/jwks.ts";
import { clientAddress } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";
import { anyOrigin, cacheable, jsonResponse, methodNotAllowed } from "./response.ts";

/** Routes without credentials: the public keys and the health check. */
export const serviceRoutes = new Hono<HttpEnv>()
  .use("/v1/applications/:applicationId/jwks.json", anyOrigin)
  .get("/v1/applications/:applicationId/jwks.json", async (c) => {
    const application = await requirePublisher(c.get("context"), clientAddress(c), c.req.param("applicationId"));
    return cacheable(c, jsonResponse(c, await publicJwks(application)), `public, max-age=${PUBLIC_CACHE_SECONDS}`);
  })
  .all("/v1/applications/:applicationId/jwks.json", methodNotAllowed("GET", "HEAD", "OPTIONS"))

  .get("/health", async (c) => {
    await c.get("context").db.run((orm) => orm.run(sql`SELECT 1`), HEALTH_DEADLINE_MILLISECONDS);
    return jsonResponse(c, { status: "ok" });
  })
  .all("/health", methodNotAllowed("GET", "HEAD"));
