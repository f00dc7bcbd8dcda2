import type { MiddlewareHandler } from "hono";
import { requireServer } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";

/** Checks credentials first, so that validation errors reveal nothing to strangers. */
export const authenticateServer: MiddlewareHandler<HttpEnv> = async (c, next) => {
  await requireServer(c);
  await next();
};

/** Like `authenticateServer`, for data that only the server and operators may read (contract section 19). */
export const authenticateOperator: MiddlewareHandler<HttpEnv> = async (c, next) => {
  await requireServer(c, "change");
  await next();
};
