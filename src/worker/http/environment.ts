import type { RequestIdVariables } from "hono/request-id";
import type { ErrorCode } from "../../shared/error-table.ts";
import type { Context } from "../context.ts";
import type { Refusal } from "../refusal.ts";

/** What Hono carries through a request. */
export interface HttpEnv {
  Bindings: Env & {
    /** Only `npm start` sets it: /docs tries its calls with this application. */
    DEMO_APPLICATION_ID?: string;
  };
  Variables: RequestIdVariables & {
    context: Context;
    /** The body, where it had to be read to know its length. */
    body?: Uint8Array;
    /** For the log line of the request. */
    application?: string;
    code?: ErrorCode;
    detail?: Refusal["detail"];
  };
}
