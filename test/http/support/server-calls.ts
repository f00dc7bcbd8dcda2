import { exports } from "cloudflare:workers";
import { newAddress } from "../../support/address.ts";
import type { TestApplication } from "../../support/application.ts";
import { type Answer, serverHeaders } from "../../support/http.ts";

/** Calls the Worker as an application's server does. */
export async function callAsServer(
  application: TestApplication,
  method: string,
  path: string,
  { headers = {}, body }: { headers?: Record<string, string>; body?: unknown } = {},
): Promise<Answer> {
  const response = await exports.default.fetch(`https://badges.example${path}`, {
    method,
    headers: { "cf-connecting-ip": newAddress(), ...serverHeaders(application), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? {} : JSON.parse(text), headers: response.headers };
}
