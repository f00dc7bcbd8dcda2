import type { Actor } from "../../shared/actor.ts";
import type { ErrorCode } from "../../shared/error-table.ts";
import type { ApplicationId } from "../../shared/identifiers.ts";
import type { ApiError } from "../api-error.ts";
import type { Application, ConsoleUser } from "../applications/application-cache.ts";
import type { Context } from "../context.ts";
import type { LimitedAddress } from "./rate-limits.ts";

/** Hono's variables of a request. */
export interface HttpEnv {
  Bindings: Env & {
    /** Only `npm start` sets it; /docs makes its test calls with this application. */
    DEMO_APPLICATION_ID?: string;
    /** The release and its commit, such as `0.9.0+1f0c93ab77de`; only `deploy` sets it. */
    RELEASE?: string;
  };
  Variables: {
    /** The caller's `X-Request-Id` if it is well-formed, otherwise a UUID. */
    requestId: string;
    context: Context;
    /** Set on routes that a web page of any origin may call. */
    anyOrigin?: true;
    /** The body, after it was read. */
    body?: Uint8Array<ArrayBuffer>;
    /** Application and client address of a limited call, and its counts. */
    limitedAddress?: LimitedAddress;
    /** The history's actor of a server-side call; absent if a device calls. */
    actor?: Actor;
    /** The person of a call with a console secret. */
    consoleUser?: ConsoleUser;
    /** For the request's log line. If the call has no route, `route` is that of another method at the same path. */
    route?: string;
    application?: ApplicationId;
    /** The application of a server-side call; only where the route requires the secret. */
    caller: Application;
    code?: ErrorCode;
    detail?: ApiError["detail"];
  };
}
