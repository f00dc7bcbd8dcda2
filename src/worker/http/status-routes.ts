import { Hono } from "hono";
import { STATUS_LIST_TTL_SECONDS } from "../../shared/limits/status-list-limits.ts";
import { ApiError } from "../api-error.ts";
import { readStatusList } from "../badges/status-lists/read.ts";
import { clientAddress } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";
import { anyOrigin, publicResponse, rawResponse } from "./response.ts";

const PATH = "/v1/applications/:applicationId/status/:n";

/** The route from which doors get status lists. */
export const statusRoutes = new Hono<HttpEnv>().use(PATH, anyOrigin).get(PATH, async (c) => {
  if (c.req.query("time") !== undefined) throw new ApiError("NOT_IMPLEMENTED");
  const list = requireListNumber(c.req.param("n"));
  const [context, address] = [c.get("context"), clientAddress(c)];
  const jwt = await readStatusList(context, c.req.param("applicationId"), list, address);
  const response = rawResponse(c, jwt, 200, [["Content-Type", "application/statuslist+jwt"]]);
  return publicResponse(c, response, `public, max-age=${STATUS_LIST_TTL_SECONDS}`);
});

/** Ordinals have at most 16 digits, so list numbers have at most 11. */
function requireListNumber(text: string): number {
  if (!/^(0|[1-9]\d{0,10})$/.test(text)) throw new ApiError("UNKNOWN_STATUSLIST");
  return Number(text);
}
