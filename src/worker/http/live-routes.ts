import { Hono } from "hono";
import { pageQuery } from "../../shared/requests.ts";
import { ApiError } from "../api-error.ts";
import { DOOR_CURSOR, pageDoors } from "../live/door-list.ts";
import { holdCall } from "../live/hold-call.ts";
import { clientAddress, requireListener } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";
import { authenticateServer } from "./middleware.ts";
import { readCursor, readQuery } from "./queries.ts";
import { pageResponse, rawResponse } from "./response.ts";

/** Routes with which doors learn of changes within seconds, and staff list the doors. */
export const liveRoutes = new Hono<HttpEnv>()
  .get("/v1/live", async (c) => {
    const listener = await requireListener(c);
    const have = readChange(c.req.queries("have") ?? ["0"]);
    const jwt = await holdCall(c.get("context"), listener, clientAddress(c), have);
    return rawResponse(c, jwt, 200, [["Content-Type", "application/statusdelta+jwt"]]);
  })

  .get("/v1/doors", authenticateServer, readQuery(pageQuery), async (c) => {
    const { per_page: perPage, cursor } = c.req.valid("query");
    const page = { after: readCursor(DOOR_CURSOR, cursor), perPage };
    const { doors, next } = await pageDoors(c.get("context"), c.get("caller").id, page);
    return pageResponse(c, { doors }, DOOR_CURSOR, next);
  });

/** @param texts the parameter's values; only one is allowed @throws ApiError INVALID_CURSOR */
function readChange(texts: readonly string[]): number {
  // Several values are joined by commas, which no number has.
  const text = texts.join();
  const change = Number(text);
  if (!/^(0|[1-9]\d{0,15})$/.test(text) || !Number.isSafeInteger(change)) throw new ApiError("INVALID_CURSOR");
  return change;
}
