import { Hono } from "hono";
import { HEALTH_DEADLINE_MILLISECONDS } from "../../shared/limits/platform-limits.ts";
import { PUBLIC_CACHE_SECONDS } from "../../shared/limits/request-limits.ts";
import { ApiError } from "../api-error.ts";
import { readKeySet } from "../applications/key-set.ts";
import { clientAddress } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";
import { anyOrigin, jsonResponse, publicResponse, rawResponse } from "./response.ts";

/** Routes without credentials: the public keys and the health check. */
export const serviceRoutes = new Hono<HttpEnv>()
  .use("/v1/applications/:applicationId/jwks.json", anyOrigin)
  .get("/v1/applications/:applicationId/jwks.json", async (c) => {
    const { origin } = new URL(c.req.raw.url);
    const json = await readKeySet(c.get("context"), origin, c.req.param("applicationId"), clientAddress(c));
    const response = rawResponse(c, json, 200, [["Content-Type", "application/json"]]);
    return publicResponse(c, response, `public, max-age=${PUBLIC_CACHE_SECONDS}`);
  })

  .get("/health", async (c) => {
    const { health, db, now } = c.get("context");
    const ask = () => db.run((d1) => d1.prepare("SELECT 1").run(), HEALTH_DEADLINE_MILLISECONDS);
    if (!(await health.check(now(), ask))) throw new ApiError("UNAVAILABLE");
    const response = jsonResponse(c, { status: "ok" });
    if (c.env.RELEASE !== undefined) response.headers.set("Release", c.env.RELEASE);
    return response;
  });
