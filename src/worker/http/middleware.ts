import type { Context as HonoContext } from "hono";
import type { ApplicationId } from "../../shared/identifiers.ts";
import { ApiError } from "../api-error.ts";
import type { Application } from "../applications/application-cache.ts";
import { requireServer } from "./authentication.ts";
import type { HttpEnv } from "./environment.ts";

/** Checks credentials first, so that validation errors reveal nothing to strangers. */
export const authenticateServer = async (c: HonoContext<HttpEnv>, next: () => Promise<void>) => {
  await requireServer(c);
  await next();
};

/** Like `authenticateServer`, for data that only the server and operators may read (contract section 19). */
export const authenticateOperator = async (c: HonoContext<HttpEnv>, next: () => Promise<void>) => {
  await requireServer(c, "change");
  await next();
};

/** The ID of the application that `authenticateServer` has authenticated. */
export function authenticatedApplicationId(c: HonoContext<HttpEnv>): ApplicationId {
  const applicationId = c.get("application");
  if (applicationId === undefined) throw new ApiError("INVALID_CREDENTIALS");
  return applicationId;
}

/** The application that `authenticateServer` has authenticated, with its settings. */
export function authenticatedApplication(c: HonoContext<HttpEnv>): Application {
  const application = c.get("caller");
  if (application === undefined) throw new ApiError("INVALID_CREDENTIALS");
  return application;
}
