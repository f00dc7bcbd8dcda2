import type { TestApplication } from "../../support/application.ts";
import { type Answer, call, serverHeaders } from "../../support/http.ts";

/** Calls the Worker as an application's server does. */
export function callAsServer(
  application: TestApplication,
  method: string,
  path: string,
  { headers = {}, body }: { headers?: Record<string, string>; body?: unknown } = {},
): Promise<Answer> {
  return call(method, path, { headers: { ...serverHeaders(application), ...headers }, body });
}
